"""A source's definition, checked: columns, keys and options that fit its kind and format."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.kernels.columns import RESERVED
from rejoinder.plan.catalog import Kind, Source

_FORMATS = ("arrow", "csv", "json", "memory", "parquet")
_MARKS = ("op", "diff", "order", "malformed")
_READING = ("path", "header", "sep", "delimiter", "quote", "nullvalue", "multiline")
_PICKING = ("maxfilespertrigger", "maxbytespertrigger", "pathglobfilter", "recursivefilelookup", "maxfileage")
_TIDYING = ("cleansource", "sourcearchivedir", "latestfirst")
_OPTIONS = frozenset((*_MARKS, *_READING, *_PICKING, *_TIDYING))


def make_source(
    name: str,
    kind: Kind,
    fields: list[pa.Field],
    primary_key: tuple[str, ...],
    format_: str,
    options: Mapping[str, str],
) -> Source:
    """Check a definition and make the source. Raises `PlanningError`s that name the column or option at fault."""
    given = dict(options)
    for option in given:
        if option not in _OPTIONS:
            hint = near_misses(option, _OPTIONS) or f"one of {', '.join(sorted(_OPTIONS))}"
            raise UnknownName(f"option `{option}` of `{name}` is not known", hint=hint)
    if given.get("malformed", "fail") not in ("fail", "divert"):
        raise InvalidSql(f"option `malformed` of `{name}` is `{given['malformed']}`", hint="'fail' or 'divert'")
    op, diff, order = given.pop("op", None), given.pop("diff", None), given.pop("order", None)
    marks = {mark for mark in (op, diff) if mark}
    kept = [f for f in fields if f.name not in marks]
    names = [f.name for f in kept]
    if len({n.lower() for n in names}) != len(names):
        double = next(n for n in names if sum(n.lower() == other.lower() for other in names) > 1)
        raise InvalidSql(f"column `{double}` of `{name}` is declared twice")
    for reserved in RESERVED.intersection(names):
        raise InvalidSql(f"column `{reserved}` of `{name}` has a reserved name", hint="choose another name")
    if not names:
        raise InvalidSql(f"`{name}` has no columns")
    if format_ not in (*_FORMATS, "dataframe"):
        hint = near_misses(format_, _FORMATS) or f"one of {', '.join(_FORMATS)}"
        raise Unsupported(f"format `{format_}` of `{name}` is not known", hint=hint)
    if format_ not in ("memory", "dataframe") and "path" not in given:
        raise InvalidSql(f"`{name}` USING {format_} has no path", hint="add OPTIONS (path '…')")
    if kind == "table" and not primary_key:
        raise InvalidSql(
            f"table `{name}` has no primary key",
            hint="add PRIMARY KEY (…), or declare a STREAM (rows only come) or a CHANGELOG (rows come and go)",
        )
    if kind != "table" and primary_key:
        raise InvalidSql(f"{kind} `{name}` cannot have a primary key", hint="only a TABLE has one")
    for column in (*primary_key, *([order] if order else [])):
        if column not in names:
            raise InvalidSql(f"`{name}` has no column `{column}`", hint=near_misses(column, names))
    if kind == "stream" and marks:
        raise InvalidSql(f"stream `{name}` is append-only and has no op or diff", hint="declare a CHANGELOG")
    if op and diff:
        raise InvalidSql(f"`{name}` has both op and diff", hint="give one of them")
    if kind == "changelog" and not marks and format_ not in ("memory",):
        raise InvalidSql(
            f"changelog `{name}` does not say which column tells inserts from deletes",
            hint="add OPTIONS (op 'column') or OPTIONS (diff 'column')",
        )
    if kind == "table" and diff:
        raise InvalidSql(f"table `{name}` has a diff column", hint="a table takes op; a CHANGELOG takes diff")
    if order and kind != "table":
        raise InvalidSql(f"{kind} `{name}` has an order column", hint="only a TABLE has one")
    return Source(name, kind, pa.schema(kept), primary_key, order, op, diff, format_, given)
