"""Debezium's envelopes: what a database told of each change, as changes of ours, all records at once.

An envelope has `op`, `before` and `after`, alone or as the `payload` beside a `schema`. In a changelog a created or
read row comes (`after`), a deleted one goes (`before`), and an updated one does both. In a table the key says which row
is meant: `after` replaces it, a delete takes it out, and `before` may be no more than the key. Where an update changes
the key, the row of the old one goes. A tombstone is nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.errors import MalformedInput
from rejoinder.formats.compressed import read_text
from rejoinder.formats.json.chunk_sizes import chunk_limits
from rejoinder.formats.json.json_fields import are_json, lines_of, texts_of, typed
from rejoinder.formats.json.json_lines import parse_fitting
from rejoinder.formats.rejected_records import rejected_lines
from rejoinder.formats.unreadable import Reason, plain_reason
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import DIFF, Int64, replaced, take
from rejoinder.kernels.arrow.hashing import Mask
from rejoinder.kernels.duckdb.leaves import has_type

ENVELOPE = {"op": None, "before": None, "after": None}
CREATED, UPDATED, DELETED, TRUNCATED, MESSAGE = ("c", "r"), "u", "d", "t", "m"


@dataclass(frozen=True)
class Decoded:
    """Rows with `__diff`, the number of the record that each came from, and the records at fault with the reason."""

    rows: pa.Table
    record: Int64
    odd: list[tuple[int, str]]


def decode_debezium(values: pa.Array, source: Source, schema: pa.Schema) -> Decoded:
    """Take apart the envelopes of some records, given as text; NULL and `null` are tombstones.

    `schema` has the columns that are in the envelope. Rows are in the order of their records. Raises `MalformedInput`
    if the origin was truncated.
    """
    reasons: dict[int, str] = {}
    sound = are_json(values)
    there = np.asarray(values.is_valid())
    reasons |= dict.fromkeys(np.flatnonzero(there & ~sound).tolist(), "it is not JSON")
    records = np.flatnonzero(sound)
    envelope = texts_of(values.take(pa.array(records)), {"payload": ENVELOPE, **ENVELOPE})
    inner = envelope.field("payload")
    parts = {
        name: pc.coalesce(pc.if_else(inner.is_valid(), inner.field(name), None), envelope.field(name))
        for name in ENVELOPE
    }
    is_tombstone = np.asarray(envelope.is_null())
    ops = np.asarray(pc.fill_null(parts["op"], "").to_numpy(zero_copy_only=False), str)
    if (ops == TRUNCATED).any():
        raise MalformedInput(
            f"the origin of `{source.name}` was truncated",
            values=f"record {values[int(records[ops == TRUNCATED][0])].as_py()[:200]}",
            hint="a truncation does not name the removed rows: DROP the source and its views, and begin with a new "
            "snapshot; or leave such events out with Debezium's skipped.operations=t",
        )
    comes = np.isin(ops, (*CREATED, UPDATED))
    has_before, has_after = np.asarray(parts["before"].is_valid()), np.asarray(parts["after"].is_valid())
    told = has_before if source.kind == "table" and _has_key(source, schema) else source.kind == "changelog"
    goes = (ops == DELETED) | ((ops == UPDATED) & told)
    for mask, reason in (
        (~comes & ~goes & (ops != MESSAGE) & ~is_tombstone, "it has no `op` of c, r, u or d"),
        (comes & ~has_after, "it has no `after`"),
        (goes & ~has_before, _no_before(source)),
    ):
        for at in np.flatnonzero(mask).tolist():
            reasons.setdefault(int(records[at]), reason)
    exact, misfits = _decimals(values.take(pa.array(records)), source, schema)
    for at, reason in misfits.items():
        reasons.setdefault(int(records[at]), reason)
    good = ~np.isin(records, np.array(sorted(reasons), np.int64))
    sides = []
    for mask, name in ((goes & good, "before"), (comes & good, "after")):
        at = np.flatnonzero(mask)
        table, odd = _side(name, parts[name].take(pa.array(at)), take(exact[name], at), source, schema)
        for column, found in odd.items():
            reason = f"the value of `{column}` in `{name}` does not fit its type{_remedy(source, column)}"
            reasons |= dict.fromkeys(records[at[found]].tolist(), reason)
        reasons |= _without_key(name, table, records[at], ops[at] == UPDATED, source)
        sides.append((table, records[at]))
    (old, of_old), (new, of_new) = sides
    if source.kind == "table":
        meant = np.isin(of_old, records[ops == DELETED]) | _moves(old, of_old, new, of_new, source.primary_key)
        old, of_old = take(old, np.flatnonzero(meant)), of_old[meant]
    signs = np.repeat(np.array([-1, 1]), [len(of_old), len(of_new)])
    return _assembled([old, new], np.concatenate([of_old, of_new]), signs, reasons)


def _side(
    name: str, texts: pa.Array, exact: pa.Table, source: Source, schema: pa.Schema
) -> tuple[pa.Table, dict[str, Mask]]:
    """Rows before or after, from text but for the columns that were read already, and what of them does not fit."""
    rest = pa.schema([field for field in schema if field.name not in exact.column_names])
    if not len(rest):
        return exact.select(schema.names), {}
    table, misfits = typed(texts_of(texts, dict.fromkeys(rest.names)), rest, unit_of(source))
    if source.kind == "table" and name == "before":  # of the old row only the key counts
        misfits = {column: found for column, found in misfits.items() if column in source.primary_key}
    for column in exact.schema:
        table = table.append_column(column, exact.column(column.name))
    return table.select(schema.names), misfits


def _without_key(side: str, rows: pa.Table, record: Int64, updated: Mask, source: Source) -> dict[int, str]:
    """The records whose row has NULL in the primary key. What was before an update need not tell it."""
    reasons: dict[int, str] = {}
    for name in source.primary_key:
        if name in rows.column_names:
            found = np.asarray(rows.column(name).is_null(), bool) & ~(updated & (side == "before"))
            reasons |= dict.fromkeys(record[found].tolist(), f"`{name}` in `{side}` is NULL, and of the primary key")
    return reasons


def _decimals(values: pa.Array, source: Source, schema: pa.Schema) -> tuple[dict[str, pa.Table], dict[int, str]]:
    """Columns with decimals of both sides of envelopes, and which records have some that do not fit, with the reason.

    They are read from the records as they came: as text, a number would have the digits of a double.
    """
    exact = [f for f in schema if has_type(f.type, pa.types.is_decimal) and not has_type(f.type, pa.types.is_map)]
    of_old = [f for f in exact if source.kind == "changelog" or f.name in source.primary_key]
    fields = [pa.field(side, pa.struct(held)) for side, held in (("before", of_old), ("after", exact)) if held]
    empty = pa.table({"": pa.nulls(len(values))}).select([])
    if not fields or not len(values):
        return {"before": empty, "after": empty}, {}
    is_object = pc.starts_with(pc.utf8_ltrim_whitespace(values), "{")
    wrapped = pa.schema([pa.field("payload", pa.struct(fields)), *fields])
    table, odd = parse_fitting(pc.if_else(is_object, values, "{}"), wrapped)
    table = table.combine_chunks()
    read = {"before": empty, "after": empty}
    for side, column in ((field.name, inner) for field in fields for inner in field.type):
        inner = pc.struct_field(table.column("payload"), [side, column.name])
        value = pc.coalesce(inner, pc.struct_field(table.column(side), [column.name]))
        read[side] = read[side].append_column(column, value)
    remedy = "let Debezium write decimals as text, with decimal.handling.mode=string"
    return read, {
        at: Reason.saying(
            f"a value does not fit its type: {remedy}", f"a value does not fit its type: {reason}: {remedy}"
        )
        for at, reason in odd.items()
    }


def _has_key(source: Source, schema: pa.Schema) -> bool:
    """Whether the key is in the envelope, and not that of the record."""
    return set(source.primary_key) <= set(schema.names)


def _moves(old: pa.Table, of_old: Int64, new: pa.Table, of_new: Int64, key: tuple[str, ...]) -> Mask:
    """Which old rows have another key than the new row of their record; one without a key has none."""
    places = np.searchsorted(of_new, of_old)
    places[places == len(of_new)] = 0
    has_new = np.isin(of_old, of_new)
    moves: Mask = np.zeros(len(of_old), bool)
    if not has_new.any():
        return moves
    for name in key:
        before, after = old.column(name), new.column(name).take(pa.array(places))
        moves |= np.asarray(pc.fill_null(pc.not_equal(before, after), True), bool)
        has_new &= np.asarray(before.is_valid(), bool)
    moves &= has_new
    return moves


def unit_of(source: Source) -> str | None:
    """The unit of timestamps that are numbers, if the source says one."""
    return source.options.get("time_unit")


def _assembled(tables: list[pa.Table], record: Int64, signs: Int64, reasons: dict[int, str]) -> Decoded:
    """All rows in the order of their records, those of records at fault left out."""
    kept = ~np.isin(record, np.array(sorted(reasons), np.int64))
    order = np.flatnonzero(kept)[np.argsort(record[kept], kind="stable")]
    rows = take(pa.concat_tables(tables).combine_chunks(), order)
    return Decoded(replaced(rows, DIFF, signs[order]), record[order], sorted(reasons.items()))


def _no_before(source: Source) -> str:
    if source.kind == "table":
        return "it is a delete and has no `before`, which tells the key"
    return (
        "it updates or deletes and has no `before`: let the database tell old rows (in PostgreSQL REPLICA IDENTITY "
        "FULL), or declare a TABLE with its PRIMARY KEY"
    )


def _remedy(source: Source, column: str) -> str:
    kind = source.schema.field(column).type
    if pa.types.is_timestamp(kind) and unit_of(source) is None:
        return ": if it is a number, say OPTIONS (time_unit 'milliseconds'), 'microseconds' or 'nanoseconds'"
    return ""


def read_debezium(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield the changes of a file with an envelope per line, and what cannot be read if the source diverts it."""
    try:
        lines = lines_of(read_text(file, path, source))
    except pa.ArrowInvalid as failure:
        raise MalformedInput(
            f"`{path}` of `{source.name}` is not UTF-8 text",
            hint="replace the file and run again",
        ) from failure
    chunk_rows, _ = chunk_limits(source.schema, chunk_rows)
    for start in range(0, len(lines), chunk_rows):
        chunk = lines.slice(start, chunk_rows)
        blank = pc.equal(pc.utf8_trim_whitespace(chunk), "")
        decoded = decode_debezium(pc.if_else(blank, None, chunk), source, source.schema)
        if decoded.odd and not source.diverts:
            at, reason = decoded.odd[0]
            raise MalformedInput(
                f"line {start + at + 1} of `{path}` of `{source.name}` is malformed",
                detail=plain_reason(reason),
                values=f"{reason}: {chunk[at].as_py()[:200]}",
                hint="fix the line and run again, or set OPTIONS (malformed 'divert') to send such lines to "
                f"`{source.rejected}`",
            )
        yield True, decoded.rows
        if decoded.odd:
            yield False, rejected_lines(path, [(start + at + 1, chunk[at].as_py(), why) for at, why in decoded.odd])
