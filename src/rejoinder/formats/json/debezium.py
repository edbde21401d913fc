"""Debezium envelopes: decode the changes of a database into deltas, all records at once.

An envelope has `op`, `before` and `after`, at the top level or in the `payload` beside a `schema`. In a changelog a
create or read inserts `after`, a delete retracts `before`, and an update does both. In a table the key identifies the
row: `after` replaces it, a delete removes it, and `before` may consist of the key only. If an update changes the key,
the row of the old key is removed. A tombstone means nothing.
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
    """The decoded rows of some records."""

    rows: pa.Table
    """Rows with `__diff`, in the order of their records."""
    record: Int64
    """The number of the record of each row."""
    malformed: list[tuple[int, str]]
    """The numbers of malformed records, with the reason."""


def decode_debezium(values: pa.Array, source: Source, schema: pa.Schema) -> Decoded:
    """Decode the envelopes of some records, given as text; NULL and `null` are tombstones.

    `schema` has the columns that are in the envelope. Rows are in the order of their records. Raises `MalformedInput`
    if the table of the database was truncated.
    """
    reasons: dict[int, str] = {}
    is_json = are_json(values)
    has_value = np.asarray(values.is_valid())
    reasons |= dict.fromkeys(np.flatnonzero(has_value & ~is_json).tolist(), "it is not JSON")
    records = np.flatnonzero(is_json)
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
            f"the table behind `{source.name}` was truncated",
            values=f"record {values[int(records[ops == TRUNCATED][0])].as_py()[:200]}",
            hint="a truncation does not name the removed rows: DROP the source and its views, and start with a new "
            "snapshot; or omit such events with Debezium's skipped.operations=t",
        )
    inserts = np.isin(ops, (*CREATED, UPDATED))
    has_before, has_after = np.asarray(parts["before"].is_valid()), np.asarray(parts["after"].is_valid())
    uses_before = has_before if source.kind == "table" and _has_key(source, schema) else source.kind == "changelog"
    retracts = (ops == DELETED) | ((ops == UPDATED) & uses_before)
    for mask, reason in (
        (~inserts & ~retracts & (ops != MESSAGE) & ~is_tombstone, "it has no `op` of c, r, u or d"),
        (inserts & ~has_after, "it has no `after`"),
        (retracts & ~has_before, _no_before(source)),
    ):
        for number in np.flatnonzero(mask).tolist():
            reasons.setdefault(int(records[number]), reason)
    exact, misfits = _decimals(values.take(pa.array(records)), source, schema)
    for number, reason in misfits.items():
        reasons.setdefault(int(records[number]), reason)
    is_valid = ~np.isin(records, np.array(sorted(reasons), np.int64))
    sides = []
    for mask, name in ((retracts & is_valid, "before"), (inserts & is_valid, "after")):
        numbers = np.flatnonzero(mask)
        table, misfitting = _side(name, parts[name].take(pa.array(numbers)), take(exact[name], numbers), source, schema)
        for column, rows in misfitting.items():
            reason = f"the value of `{column}` in `{name}` does not fit its type{_remedy(source, column)}"
            reasons |= dict.fromkeys(records[numbers[rows]].tolist(), reason)
        reasons |= _without_key(name, table, records[numbers], ops[numbers] == UPDATED, source)
        sides.append((table, records[numbers]))
    (old, of_old), (new, of_new) = sides
    if source.kind == "table":
        removed = np.isin(of_old, records[ops == DELETED]) | _key_changes(old, of_old, new, of_new, source.primary_key)
        old, of_old = take(old, np.flatnonzero(removed)), of_old[removed]
    signs = np.repeat(np.array([-1, 1]), [len(of_old), len(of_new)])
    return _assembled([old, new], np.concatenate([of_old, of_new]), signs, reasons)


def _side(
    name: str, texts: pa.Array, exact: pa.Table, source: Source, schema: pa.Schema
) -> tuple[pa.Table, dict[str, Mask]]:
    """Return the rows of `before` or `after`, and by column the rows whose value does not fit its type.

    The columns of `exact` were parsed before; the others are parsed from text.
    """
    rest = pa.schema([field for field in schema if field.name not in exact.column_names])
    if not len(rest):
        return exact.select(schema.names), {}
    table, misfits = typed(texts_of(texts, dict.fromkeys(rest.names)), rest, unit_of(source))
    if source.kind == "table" and name == "before":  # only the key of the old row is used
        misfits = {column: rows for column, rows in misfits.items() if column in source.primary_key}
    for column in exact.schema:
        table = table.append_column(column, exact.column(column.name))
    return table.select(schema.names), misfits


def _without_key(side: str, rows: pa.Table, record: Int64, updated: Mask, source: Source) -> dict[int, str]:
    """Return the records whose row has NULL in the primary key. The `before` of an update may lack the key."""
    reasons: dict[int, str] = {}
    for name in source.primary_key:
        if name in rows.column_names:
            is_null = np.asarray(rows.column(name).is_null(), bool) & ~(updated & (side == "before"))
            reason = f"`{name}` in `{side}` is NULL, and part of the primary key"
            reasons |= dict.fromkeys(record[is_null].tolist(), reason)
    return reasons


def _decimals(values: pa.Array, source: Source, schema: pa.Schema) -> tuple[dict[str, pa.Table], dict[int, str]]:
    """Return the columns with decimals of both sides of envelopes, and the records with misfits, with the reason.

    They are parsed from the original records: a number that was converted to text would have the digits of a double.
    """
    exact = [f for f in schema if has_type(f.type, pa.types.is_decimal) and not has_type(f.type, pa.types.is_map)]
    of_old = [f for f in exact if source.kind == "changelog" or f.name in source.primary_key]
    fields = [pa.field(side, pa.struct(held)) for side, held in (("before", of_old), ("after", exact)) if held]
    empty = pa.table({"": pa.nulls(len(values))}).select([])
    if not fields or not len(values):
        return {"before": empty, "after": empty}, {}
    is_object = pc.starts_with(pc.utf8_ltrim_whitespace(values), "{")
    wrapped = pa.schema([pa.field("payload", pa.struct(fields)), *fields])
    table, misfits = parse_fitting(pc.if_else(is_object, values, "{}"), wrapped)
    table = table.combine_chunks()
    read = {"before": empty, "after": empty}
    for side, column in ((field.name, inner) for field in fields for inner in field.type):
        inner = pc.struct_field(table.column("payload"), [side, column.name])
        value = pc.coalesce(inner, pc.struct_field(table.column(side), [column.name]))
        read[side] = read[side].append_column(column, value)
    remedy = "let Debezium write decimals as text, with decimal.handling.mode=string"
    return read, {
        number: Reason.saying(
            f"a value does not fit its type: {remedy}", f"a value does not fit its type: {reason}: {remedy}"
        )
        for number, reason in misfits.items()
    }


def _has_key(source: Source, schema: pa.Schema) -> bool:
    """Whether the envelope contains the primary key, as opposed to the key of the record."""
    return set(source.primary_key) <= set(schema.names)


def _key_changes(old: pa.Table, of_old: Int64, new: pa.Table, of_new: Int64, key: tuple[str, ...]) -> Mask:
    """Return a mask of the old rows whose key differs from that of the new row; False for old rows without a key."""
    places = np.searchsorted(of_new, of_old)
    places[places == len(of_new)] = 0
    has_new = np.isin(of_old, of_new)
    changes: Mask = np.zeros(len(of_old), bool)
    if not has_new.any():
        return changes
    for name in key:
        before, after = old.column(name), new.column(name).take(pa.array(places))
        changes |= np.asarray(pc.fill_null(pc.not_equal(before, after), True), bool)
        has_new &= np.asarray(before.is_valid(), bool)
    changes &= has_new
    return changes


def unit_of(source: Source) -> str | None:
    """Return the unit of numeric timestamps, if the source declares one."""
    return source.options.get("time_unit")


def _assembled(tables: list[pa.Table], record: Int64, signs: Int64, reasons: dict[int, str]) -> Decoded:
    """Return all rows in the order of their records, without those of malformed records."""
    kept = ~np.isin(record, np.array(sorted(reasons), np.int64))
    order = np.flatnonzero(kept)[np.argsort(record[kept], kind="stable")]
    rows = take(pa.concat_tables(tables).combine_chunks(), order)
    return Decoded(replaced(rows, DIFF, signs[order]), record[order], sorted(reasons.items()))


def _no_before(source: Source) -> str:
    if source.kind == "table":
        return "it is a delete without `before`, which contains the key"
    return (
        "it is an update or delete without `before`: let the database log old rows (in PostgreSQL REPLICA IDENTITY "
        "FULL), or declare a TABLE with its PRIMARY KEY"
    )


def _remedy(source: Source, column: str) -> str:
    kind = source.schema.field(column).type
    if pa.types.is_timestamp(kind) and unit_of(source) is None:
        return ": if it is a number, set OPTIONS (time_unit 'milliseconds'), 'microseconds' or 'nanoseconds'"
    return ""


def read_debezium(file: Any, path: str, source: Source, chunk_rows: int) -> Iterator[tuple[bool, pa.Table]]:
    """Yield the changes of a file with an envelope per line, and malformed lines if the source diverts them."""
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
        if decoded.malformed and not source.diverts:
            number, reason = decoded.malformed[0]
            raise MalformedInput(
                f"line {start + number + 1} of `{path}` of `{source.name}` is malformed",
                detail=plain_reason(reason),
                values=f"{reason}: {chunk[number].as_py()[:200]}",
                hint="fix the line and run again, or set OPTIONS (malformed 'divert') to send such lines to "
                f"`{source.rejected}`",
            )
        yield True, decoded.rows
        if decoded.malformed:
            lines_at_fault = [
                (start + number + 1, chunk[number].as_py(), reason) for number, reason in decoded.malformed
            ]
            yield False, rejected_lines(path, lines_at_fault)
