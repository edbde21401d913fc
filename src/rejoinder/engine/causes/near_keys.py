"""Keys that are nearly the expected ones: other case, white space, type or spelling."""

from __future__ import annotations

import difflib

import pyarrow as pa

from rejoinder.formats.text.row_text import text
from rejoinder.kernels.arrow.columns import single_chunk

CANDIDATES = 10_000
SHOWN = 3


def near_keys(wanted: pa.Table, rows: pa.Table) -> str | None:
    """Return which values of the first differing column are near the wanted one; None if there is nothing near.

    >>> near_keys(pa.table({"0.k": ["tea"]}), pa.table({"0.k": ["Tea", "milk"]}))
    "the nearest values are 'Tea' (differs in case)"
    """
    for name in wanted.column_names:
        value = wanted.column(name)[0].as_py()
        known = [v for v in single_chunk(rows.column(name)).unique().to_pylist()[:CANDIDATES] if v is not None]
        if value is None or value in known:
            continue
        if not isinstance(value, str):
            numbers = sorted((v for v in known if _is_number(v) and _is_number(value)), key=lambda v: abs(v - value))
            listed = ", ".join(text(v) for v in numbers[:SHOWN])
            return f"the nearest values are {listed}" if listed else None
        folded = {v: _difference(value, v) for v in known if _folded(v) == _folded(value)}
        similar = difflib.get_close_matches(value, [v for v in known if v not in folded], n=SHOWN, cutoff=0.75)
        shown = [f"'{v}' ({difference})" for v, difference in folded.items()] + [f"'{v}'" for v in similar]
        return f"the nearest values are {', '.join(shown[:SHOWN])}" if shown else None
    return None


def _folded(value: str) -> str:
    return "".join(value.split()).casefold().lstrip("0")


def _difference(one: str, other: str) -> str:
    if one.casefold() == other.casefold():
        return "differs in case"
    if "".join(one.split()) == "".join(other.split()):
        return "differs in white space"
    return "differs in case, white space or leading zeros"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
