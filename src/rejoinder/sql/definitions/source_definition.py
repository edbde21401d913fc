"""A source's definition, checked: columns, keys and options that fit its kind and format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Kind, Source
from rejoinder.kernels.arrow.columns import RESERVED
from rejoinder.secret_options import refuse_clear
from rejoinder.sql.bind.computed_columns import computed_expression
from rejoinder.sql.bind.watermark_delay import delay_of
from rejoinder.sql.definitions.envelope_definition import check_envelope
from rejoinder.sql.definitions.feed_definition import DELTA, FEED_OPTIONS, feed_options
from rejoinder.sql.definitions.file_definition import FILE_OPTIONS, check_files
from rejoinder.sql.definitions.source_timing import RETAIN, TIMING, checked_timing
from rejoinder.sql.definitions.topic_definition import KAFKA, PREFIXES, TOPIC_OPTIONS, check_layout, topic_options

_FORMATS = ("arrow", "csv", DELTA, "json", KAFKA, "memory", "parquet")
_POLICIES = ("malformed", "late")
_MARKS = ("op", "diff", "order", RETAIN, *_POLICIES)
_OPTIONS = frozenset((*_MARKS, *TIMING, *FILE_OPTIONS))
_TOPIC_OPTIONS = frozenset((*_MARKS, *TIMING, *TOPIC_OPTIONS, "subscribe", "envelope", "time_unit"))
_FEED_OPTIONS = frozenset((*_MARKS, *TIMING, *FEED_OPTIONS))


def make_source(
    name: str,
    kind: Kind,
    fields: list[pa.Field],
    primary_key: tuple[str, ...],
    format_: str,
    options: Mapping[str, str],
    watermarks: Mapping[str, str] | None = None,
    computed: Sequence[tuple[int, str, str]] = (),
) -> Source:
    """Check a definition and make the source. Raises `PlanningError`s that name the column or option at fault.

    `fields` are the columns that records have. `computed` are the others: where they stand among all, name and text.
    """
    refuse_clear(f"`{name}`", options)  # before any check that quotes a value
    given = {option: text.lower() if option in _POLICIES else text for option, text in options.items()}
    _check_options(name, format_, given)
    if format_ == KAFKA:
        given = topic_options(name, given)
    if format_ == DELTA:
        given = feed_options(name, kind, given)
    op, diff, order = given.pop("op", None), given.pop("diff", None), given.pop("order", None)
    marks = {mark.lower() for mark in (op, diff) if mark}
    kept = [f for f in fields if f.name.lower() not in marks]
    mark_at = next((at for at, f in enumerate(fields) if f.name.lower() in marks), None)
    listed = f"columns: {', '.join(f.name for f in fields) or 'none'}"
    recorded = list(kept)
    for at, column, text in computed:
        kept.insert(at, pa.field(column, computed_expression(name, column, text, recorded).type))
    _check_columns(name, [f.name for f in kept] if recorded else [], listed)
    _check_recorded(name, [*primary_key, *([order] if order else [])], [column for _, column, _ in computed], listed)
    key = tuple(_column(name, column, kept, listed) for column in primary_key)
    if order is not None:
        order = _column(name, order, kept, listed)
    problem, hint = _misfit(kind, key, op, diff, order, format_, is_enveloped="envelope" in given)
    if problem:
        raise InvalidSql(f"{kind} `{name}` {problem}", detail=listed, hint=hint)
    delays = {
        _column(name, column, kept, listed): delay_of(name, column, pa.schema(kept), text)
        for column, text in (watermarks or {}).items()
    }
    given = checked_timing(name, given, pa.schema(kept), delays)
    if kind == "table" and given.get(RETAIN, "all") != "all":
        raise InvalidSql(
            f"table `{name}` cannot retain rows for a time only: it keeps the last row of each key",
            detail=listed,
            hint="RETAIN ALL keeps it up to date whether a view reads it or not",
        )
    texts = tuple((column, text) for _, column, text in computed)
    source = Source(name, kind, pa.schema(kept), key, order, op, diff, format_, given, delays, mark_at, texts)
    check_envelope(source)
    if format_ == KAFKA:
        check_layout(source.recorded)
    elif format_ != DELTA:
        check_files(source.recorded)
    return source


def _check_options(name: str, format_: str, given: Mapping[str, str]) -> None:
    listed = f"options: {', '.join(given) or 'none'}"
    if format_ not in (*_FORMATS, "dataframe"):
        raise Unsupported(
            f"format `{format_}` of `{name}` is not known",
            detail=f"known: {', '.join(_FORMATS)}",
            hint=near_misses(format_, _FORMATS) or "convert the data, or hand a DataFrame over",
        )
    known = _TOPIC_OPTIONS if format_ == KAFKA else _FEED_OPTIONS if format_ == DELTA else _OPTIONS
    for option in given:
        if option not in known and not (format_ == KAFKA and option.startswith(PREFIXES)):
            hint = near_misses(option, known) or f"one of {', '.join(sorted(known))}"
            raise UnknownName(f"option `{option}` of `{name}` is not known", detail=listed, hint=hint)
    if given.get("malformed", "fail") not in ("fail", "divert"):
        fact = f"option `malformed` of `{name}` is `{given['malformed']}`"
        raise InvalidSql(fact, detail=listed, hint="'fail' or 'divert'")
    if given.get("late", "keep") not in ("keep", "drop", "fail"):
        fact = f"option `late` of `{name}` is `{given['late']}`"
        raise InvalidSql(fact, detail=listed, hint="'keep' (in the late relation), 'drop' or 'fail'")
    if format_ not in ("memory", "dataframe", KAFKA) and "path" not in given:
        raise InvalidSql(f"`{name}` USING {format_} has no path", detail=listed, hint="add OPTIONS (path '…')")


def _check_columns(name: str, columns: list[str], listed: str) -> None:
    lowered = [column.lower() for column in columns]
    double = next((column for column in columns if lowered.count(column.lower()) > 1), None)
    if double is not None:
        hint = "names compare without case; rename one of them"
        raise InvalidSql(f"column `{double}` of `{name}` is declared twice", detail=listed, hint=hint)
    for column in columns:
        if column.lower() in RESERVED:
            raise InvalidSql(
                f"column `{column}` of `{name}` has a reserved name",
                detail=f"reserved: {', '.join(sorted(RESERVED))}",
                hint="choose another name",
            )
    if not columns:
        raise InvalidSql(f"`{name}` has no columns", detail=listed, hint="declare at least one that holds data")


def _check_recorded(name: str, columns: list[str], computed: list[str], listed: str) -> None:
    """Refuse a computed column where records must have the column themselves."""
    lowered = {column.lower() for column in computed}
    found = next((column for column in columns if column.lower() in lowered), None)
    if found is not None:
        raise Unsupported(
            f"computed column `{found}` of `{name}` is part of the primary key or of `order`",
            detail=listed,
            hint="take columns that the records have, or compute the key in a view",
        )


def _column(name: str, wanted: str, fields: list[pa.Field], listed: str) -> str:
    """The declared name of a column."""
    found = next((f for f in fields if f.name.lower() == wanted.lower()), None)
    if found is None:
        hint = near_misses(wanted, [f.name for f in fields]) or "declare it among the columns"
        raise UnknownName(f"`{name}` has no column `{wanted}`", detail=listed, hint=hint)
    declared: str = found.name
    return declared


def _misfit(
    kind: Kind,
    key: tuple[str, ...],
    op: str | None,
    diff: str | None,
    order: str | None,
    format_: str,
    *,
    is_enveloped: bool,
) -> tuple[str, str]:
    """What does not fit the kind of a source, and what to do about it; empty if all is well."""
    other = "a STREAM (rows only come) or a CHANGELOG (rows come and go)"
    cases = (
        (kind == "table" and not key, "has no primary key", f"add PRIMARY KEY (…), or declare {other}"),
        (kind != "table" and bool(key), "cannot have a primary key", "only a TABLE has one"),
        (len(set(key)) < len(key), "names a column of its primary key twice", "name each once"),
        (kind == "stream" and bool(op or diff), "is append-only and has no op or diff", "declare a CHANGELOG"),
        (bool(op and diff), "has both op and diff", "give one of them"),
        (
            kind == "changelog" and not (op or diff) and format_ != "memory" and not is_enveloped,
            "does not say which column tells inserts from deletes",
            "add OPTIONS (op 'column') or OPTIONS (diff 'column')",
        ),
        (kind == "table" and bool(diff), "has a diff column", "a table takes op; a CHANGELOG takes diff"),
        (kind != "table" and order is not None, "has an order column", "only a TABLE has one"),
    )
    return next(((problem, hint) for holds, problem, hint in cases if holds), ("", ""))
