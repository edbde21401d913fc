"""Tables written as text."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from rejoinder.errors import InputError
from rejoinder.testing import Driver, from_table
from rejoinder.testing.tables import Change


def test_cells_are_values() -> None:
    (change,) = from_table("""
        i | f    | t    | q      | n    | e | b    | d          | w                   | l      | z
        7 | -0.5 | bare | 'a b ' | NULL |   | true | 2024-02-29 | 2024-02-29T12:30:00 | [1, 2] | a, b
    """)
    assert change.row == {
        "i": 7,
        "f": -0.5,
        "t": "bare",
        "q": "a b ",
        "n": None,
        "e": None,
        "b": True,
        "d": date(2024, 2, 29),
        "w": datetime(2024, 2, 29, 12, 30),
        "l": [1, 2],
        "z": "a, b",
    }
    assert (change.time, change.diff) == (0, 1)


def test_a_frame_around_the_table_is_no_cell() -> None:
    framed = from_table("""
        +---+---+
        | a | b |
        |---|---|
        | 1 |   |
        +---+---+
    """)
    assert framed == from_table("a | b\n1 | ") == [Change({"a": 1, "b": None})]


def test_changes_are_ordered_by_time() -> None:
    changes = from_table("""
        a | __time__ | __diff__
        1 | 4        | -1
        1 | 2        | 3
        2 | 2        | 1
    """)
    assert changes == [Change({"a": 1}, 2, 3), Change({"a": 2}, 2, 1), Change({"a": 1}, 4, -1)]
    assert from_table("") == from_table("\n  \n") == []


def test_a_line_of_other_length_is_refused() -> None:
    with pytest.raises(InputError) as raised:
        from_table("a | b\n1 | 2 | 3")
    assert raised.value.fact == "a line has 3 cells instead of 2"
    assert raised.value.detail == "1 | 2 | 3" and raised.value.hint == "columns: a, b"


def test_empty_cells_are_a_row_of_nulls() -> None:
    nulls = Change({"a": None, "b": None})
    assert from_table("a | b\n1 | 2\n  |  \n3 | 4") == [Change({"a": 1, "b": 2}), nulls, Change({"a": 3, "b": 4})]
    assert from_table("| a | b |\n|---|---|\n|   |   |") == [nulls]


@pytest.mark.parametrize("cell", ["1.5", "NULL", "true", "x"])
@pytest.mark.parametrize("name", ["__time__", "__diff__"])
def test_times_and_diffs_are_whole_numbers(name: str, cell: str) -> None:
    with pytest.raises(InputError, match=f"`{name}` of a line is ") as raised:
        from_table(f"a | {name}\n1 | 1\n2 | {cell}")
    assert raised.value.detail == f"2 | {cell}" and raised.value.hint


def test_a_table_can_be_loaded_epoch_by_epoch() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG a (k INT, s STRING); CREATE VIEW v AS SELECT s FROM a WHERE k > 1")
    changes = driver.load(
        "a",
        from_table("""
            k | s | __time__ | __diff__
            1 | x | 0        | 1
            2 | y | 1        | 2
            2 | y | 5        | -1
        """),
    )
    assert changes == [{"v": []}, {"v": [({"s": "y"}, 2)]}, {"v": [({"s": "y"}, -1)]}]
    assert driver.epoch == 2
