"""Make a source from its definition, and check columns, keys and options against its kind and format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from rejoinder.connectors.connector import SourceSide
from rejoinder.connectors.envelopes import check_envelope
from rejoinder.connectors.registry import SOURCE_FORMATS, SOURCES, source_side
from rejoinder.errors import InvalidSql, UnknownName, Unsupported, near_misses
from rejoinder.ir.catalog import Kind, Source
from rejoinder.kernels.arrow.columns import RESERVED
from rejoinder.secret_options import refuse_clear
from rejoinder.sql.bind.computed_columns import computed_expression
from rejoinder.sql.bind.watermark_delay import delay_of
from rejoinder.sql.definitions.source_timing import RETAIN, TIMING, checked_timing

_POLICIES = ("malformed", "late")
_ALTERABLE = (*_POLICIES, "idle_after", "max_ahead")
"""Options of every source that ALTER … SET OPTIONS can change: they concern only rows that are read later."""
_EVERY_SOURCE = ("op", "diff", "order", RETAIN, *_POLICIES, *TIMING)


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
    """Check a definition and make the source. Raises a `PlanningError` that names the wrong column or option.

    `fields` are the columns that records have. `computed` are the others: position among all columns, name and text.
    """
    refuse_clear(f"`{name}`", options)  # before any check that quotes a value
    settings = {option: text.lower() if option in _POLICIES else text for option, text in options.items()}
    side = _checked_side(name, format_, settings)
    settings = side.normalized(name, kind, settings)
    op, diff, order = settings.pop("op", None), settings.pop("diff", None), settings.pop("order", None)
    marks = {mark.lower() for mark in (op, diff) if mark}
    kept = [f for f in fields if f.name.lower() not in marks]
    mark_at = next((position for position, f in enumerate(fields) if f.name.lower() in marks), None)
    listed = f"columns: {', '.join(f.name for f in fields) or 'none'}"
    recorded = list(kept)
    for position, column, text in computed:
        kept.insert(position, pa.field(column, computed_expression(name, column, text, recorded).type))
    _check_columns(name, [f.name for f in kept] if recorded else [], listed)
    _check_recorded(name, [*primary_key, *([order] if order else [])], [column for _, column, _ in computed], listed)
    key = tuple(_column(name, column, kept, listed) for column in primary_key)
    if order is not None:
        order = _column(name, order, kept, listed)
    has_diffs = side.takes_diffs or "envelope" in settings
    problem, hint = _misfit(kind, key, op, diff, order, has_diffs=has_diffs)
    if problem:
        raise InvalidSql(f"{kind} `{name}` {problem}", detail=listed, hint=hint)
    delays = {
        _column(name, column, kept, listed): delay_of(name, column, pa.schema(kept), text)
        for column, text in (watermarks or {}).items()
    }
    settings = checked_timing(name, settings, pa.schema(kept), delays)
    if kind == "table" and settings.get(RETAIN, "all") != "all":
        raise InvalidSql(
            f"table `{name}` cannot retain rows for a time only: it keeps the last row of each key",
            detail=listed,
            hint="RETAIN ALL keeps it up to date whether a view reads it or not",
        )
    texts = tuple((column, text) for _, column, text in computed)
    source = Source(name, kind, pa.schema(kept), key, order, op, diff, format_, settings, delays, mark_at, texts)
    return checked_source(source)


def checked_source(source: Source) -> Source:
    """Return a source whose columns and options fit each other. Raises a `PlanningError`."""
    listed = f"columns: {', '.join(source.schema.names) or 'none'}"
    _check_columns(source.name, source.schema.names if source.recorded.schema.names else [], listed)
    side = source_side(source)
    check_envelope(source, is_json=side.is_json(source.options))
    side.check(source.recorded)
    return source


def with_new_options(source: Source, options: Mapping[str, str]) -> Source:
    """Return a source with other values of some options. Raises a `PlanningError` that names the wrong one."""
    refuse_clear(f"`{source.name}`", options)
    side, given = source_side(source), {**options}
    settings = {option: text.lower() if option in _POLICIES else text for option, text in given.items()}
    _checked_side(source.name, source.format, {**source.options, **settings})
    settings = side.normalized(source.name, source.kind, {**source.options, **settings})
    changed = {option: value for option, value in settings.items() if source.options.get(option) != value}
    fixed = next((o for o in changed if o not in (*_ALTERABLE, *side.alterable) and not o.startswith("kafka.")), None)
    if fixed is not None:
        raise Unsupported(
            f"option `{fixed}` of `{source.name}` cannot be altered",
            detail=f"can be altered: {', '.join(sorted((*_ALTERABLE, *side.alterable)))}",
            hint="create another source, and replace the views that read this one",
        )
    timing = {option: value for option, value in changed.items() if option in TIMING}
    changed |= checked_timing(source.name, timing, source.schema, source.watermarks)
    return replace(source, options={**source.options, **changed})


def _checked_side(name: str, format_: str, settings: Mapping[str, str]) -> SourceSide:
    """Return how a format is read. Raises a `PlanningError` if it is not known, or an option does not fit it."""
    listed = f"options: {', '.join(settings) or 'none'}"
    side = SOURCES.get(format_)
    if side is None:
        raise Unsupported(
            f"format `{format_}` of `{name}` is not known",
            detail=f"known: {', '.join(SOURCE_FORMATS)}",
            hint=near_misses(format_, SOURCE_FORMATS) or "convert the data, or pass a DataFrame",
        )
    known = side.options.union(_EVERY_SOURCE)
    for option in settings:
        if option not in known and not option.startswith(side.prefixes):
            hint = near_misses(option, known) or f"one of {', '.join(sorted(known))}"
            raise UnknownName(f"option `{option}` of `{name}` is not known", detail=listed, hint=hint)
    if settings.get("malformed", "fail") not in ("fail", "divert"):
        fact = f"option `malformed` of `{name}` is `{settings['malformed']}`"
        raise InvalidSql(fact, detail=listed, hint="'fail' or 'divert'")
    if settings.get("late", "keep") not in ("keep", "drop", "fail"):
        fact = f"option `late` of `{name}` is `{settings['late']}`"
        raise InvalidSql(fact, detail=listed, hint="'keep' (in the late relation), 'drop' or 'fail'")
    missing = next((option for option in side.needs if option not in settings), None)
    if missing is not None:
        hint = f"add OPTIONS ({missing} '…')"
        raise InvalidSql(f"`{name}` USING {format_} has no {missing}", detail=listed, hint=hint)
    return side


def _check_columns(name: str, columns: list[str], listed: str) -> None:
    lowered = [column.lower() for column in columns]
    duplicate = next((column for column in columns if lowered.count(column.lower()) > 1), None)
    if duplicate is not None:
        hint = "names compare without case; rename one of them"
        raise InvalidSql(f"column `{duplicate}` of `{name}` is declared twice", detail=listed, hint=hint)
    for column in columns:
        if column.lower() in RESERVED:
            raise InvalidSql(
                f"column `{column}` of `{name}` has a reserved name",
                detail=f"reserved: {', '.join(sorted(RESERVED))}",
                hint="choose another name",
            )
    if not columns:
        raise InvalidSql(f"`{name}` has no columns", detail=listed, hint="declare at least one that contains data")


def _check_recorded(name: str, columns: list[str], computed: list[str], listed: str) -> None:
    """Raise `Unsupported` for a computed column where records must have the column themselves."""
    lowered = {column.lower() for column in computed}
    wrong = next((column for column in columns if column.lower() in lowered), None)
    if wrong is not None:
        raise Unsupported(
            f"computed column `{wrong}` of `{name}` is part of the primary key or of `order`",
            detail=listed,
            hint="use columns that the records have, or compute the key in a view",
        )


def _column(name: str, wanted: str, fields: list[pa.Field], listed: str) -> str:
    """Return the declared name of a column. Raises `UnknownName`."""
    field = next((f for f in fields if f.name.lower() == wanted.lower()), None)
    if field is None:
        hint = near_misses(wanted, [f.name for f in fields]) or "declare it among the columns"
        raise UnknownName(f"`{name}` has no column `{wanted}`", detail=listed, hint=hint)
    declared: str = field.name
    return declared


def _misfit(
    kind: Kind,
    key: tuple[str, ...],
    op: str | None,
    diff: str | None,
    order: str | None,
    *,
    has_diffs: bool,
) -> tuple[str, str]:
    """Return what does not fit the kind of a source, and a hint; empty if all fits.

    `has_diffs`: records say themselves whether a row is inserted or deleted.
    """
    other = "a STREAM (append-only) or a CHANGELOG (inserts and deletes)"
    cases = (
        (kind == "table" and not key, "has no primary key", f"add PRIMARY KEY (…), or declare {other}"),
        (kind != "table" and bool(key), "cannot have a primary key", "only a TABLE has one"),
        (len(set(key)) < len(key), "names a column of its primary key twice", "name each once"),
        (kind == "stream" and bool(op or diff), "is append-only and has no op or diff", "declare a CHANGELOG"),
        (bool(op and diff), "has both op and diff", "give one of them"),
        (
            kind == "changelog" and not (op or diff) and not has_diffs,
            "does not say which column distinguishes inserts from deletes",
            "add OPTIONS (op 'column') or OPTIONS (diff 'column')",
        ),
        (kind == "table" and bool(diff), "has a diff column", "a table takes op; a CHANGELOG takes diff"),
        (kind != "table" and order is not None, "has an order column", "only a TABLE has one"),
    )
    return next(((problem, hint) for is_wrong, problem, hint in cases if is_wrong), ("", ""))
