"""HTML and SVG as text in which every name and value is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping

from rejoinder.formats.text.neutral_text import neutral

LONGEST_TEXT = 400
VOID = frozenset({"br", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already. Everything else is escaped when it becomes part of HTML."""


Content = str | int | Iterable["Content"] | None


def escaped(value: str | int) -> Markup:
    """Return a value as HTML. Control characters and marks of direction are shown, not obeyed."""
    return value if isinstance(value, Markup) else Markup(html.escape(neutral(str(value))))


def cut(text: str, longest: int = LONGEST_TEXT) -> str:
    """Return the beginning of a long text.

    >>> cut("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """Return an element. `class_` and `data_key` become `class` and `data-key`; None and False are left out.

    >>> tag("b", "<i>", class_="x", title=None)
    '<b class="x">&lt;i&gt;</b>'
    """
    listed = "".join(
        f" {_attribute(key)}{_value(value)}" for key, value in attributes.items() if value not in (None, False)
    )
    return Markup(f"<{name}{listed}>" if name in VOID else f"<{name}{listed}>{join(content)}</{name}>")


def join(content: Content) -> Markup:
    """Return the content one after the other."""
    if content is None:
        return Markup()
    if isinstance(content, str | int):
        return escaped(content)
    return Markup("".join(map(join, content)))


def name_of(text: str) -> Markup:
    """Return a name of the user: isolated, so that its direction changes nothing around it; cut if it is long."""
    shown = cut(text, 120)
    return tag("bdi", shown, title=cut(text) if shown != text else None)


def table(columns: Iterable[str], rows: Iterable[Iterable[Content]], numeric: frozenset[int] = frozenset()) -> Markup:
    """Return a table. Cells of `numeric` columns are aligned to the right."""

    def cells(kind: str, values: Iterable[Content]) -> Iterable[Markup]:
        return (
            tag(kind, value, class_="number" if at in numeric else None, scope="col" if kind == "th" else None)
            for at, value in enumerate(values)
        )

    head = tag("thead", tag("tr", cells("th", map(name_of, columns))))
    return tag("table", head, tag("tbody", (tag("tr", cells("td", row)) for row in rows)))


def facts(entries: Mapping[str, Content]) -> Markup:
    """Return a list of facts by name; those that are None are left out."""
    return tag("dl", ((tag("dt", key), tag("dd", value)) for key, value in entries.items() if value is not None))


def _attribute(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: str | float | bool | None) -> str:
    if value is True:
        return ""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f'="{html.escape(neutral(shown), quote=True)}"'
