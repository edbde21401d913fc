"""HTML of the page: everything that comes from a flow is escaped."""

from __future__ import annotations

from rejoinder.web.panels.markup import join, name_of, table, tag


def test_content_and_attributes_are_escaped() -> None:
    assert tag("b", "<script>", title='"><script>') == '<b title="&quot;&gt;&lt;script&gt;">&lt;script&gt;</b>'


def test_markup_is_not_escaped_twice() -> None:
    assert tag("p", tag("b", "&")) == "<p><b>&amp;</b></p>"
    assert join(["a", None, [1, tag("br")]]) == "a1<br>"


def test_marks_of_direction_are_shown() -> None:
    assert "\u202e" not in name_of("a\u202eb") and "\ufffd" in name_of("a\u202eb")


def test_a_long_name_is_cut() -> None:
    assert len(name_of("x" * 10_000)) < 1_000


def test_tables_escape_names_and_cells() -> None:
    assert "<i>" not in table(["<i>"], [["<i>"]])
