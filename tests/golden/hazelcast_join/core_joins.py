"""Joins of the golden data as `rejoinder.core.StreamJoin`, built from the fields of the data alone (HZJ-API-03)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from rejoinder.core import JoinCondition, LateRows, Message, Rows, StreamJoin, Watermark
from rejoinder.core.stream_join import Formula
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.text_expression import text_expression

DATA = Path(__file__).parent.parent / "data" / "hazelcast_join" / "traces.yaml"
GOLDEN: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
NAME = re.compile(r"\b([a-z]\w*\.\w+)\b")
TEXTS = {"id", "k", "address"}


def value(given: Any) -> Any:
    """A value of the data: ISO times are milliseconds since 1970, and minus infinity is long ago."""
    if isinstance(given, str) and re.match(r"\d{4}-\d\d-\d\dT", given):
        return int(datetime.fromisoformat(given).replace(tzinfo=timezone.utc).timestamp() * 1000)
    return -(10**9) if isinstance(given, float) and math.isinf(given) else given


def expression(text: str) -> Expression:
    """A condition of the data over quoted names."""
    text = re.sub(r"\w+\['([^']*)'\]", r"\1", text).replace("INTERVAL '1' HOUR", "3600000")
    return text_expression(
        NAME.sub(lambda found: quoted(found.group()), text), pa.bool_(), tuple(NAME.findall(text)), text
    )


def condition(join: Mapping[str, Any], rows: Iterable[tuple[int, Mapping[str, Any]]], *, on: bool) -> JoinCondition:
    """A join of the data; `rows` show columns that it does not name. `on`: equalities are keys, not only condition."""
    sides: list[dict[str, None]] = [{}, {}]
    for at, given in enumerate(join["inputs"]):
        names = [*given.get("columns", []), *(mark["column"] for mark in given["wm"])]
        names += [name for name in NAME.findall(join["condition"]) if name.split(".")[0] == given["name"]]
        sides[at] |= dict.fromkeys(names)
    for at, row in rows:
        sides[at] |= dict.fromkeys(row)
    schemas = [
        pa.schema([(name, pa.string() if name.split(".")[1] in TEXTS else pa.int64()) for name in names])
        for names in sides
    ]
    equal = [(a, b) if a in sides[0] else (b, a) for a, b in re.findall(r"(\w+\.\w+) = (\w+\.\w+)", join["condition"])]
    single = join.get("single_input_conditions", {})
    return JoinCondition(
        join["kind"],
        (schemas[0], schemas[1]),
        tuple({mark["column"]: mark["key"] for mark in given["wm"]} for given in join["inputs"]),  # type: ignore[arg-type]
        join["postpone_time_map"],
        expression(join["condition"]),
        on=equal if on else (),
        single={at: expression(text) for at, text in single.items()} if isinstance(single, dict) else {},
    )


def trace_join(trace: Mapping[str, Any], formula: Formula, *, on: bool = False) -> StreamJoin:
    """The join of a trace."""
    rows = [(step["in"]["ordinal"], step["in"]["item"]) for step in trace["steps"] if "item" in step["in"]]
    join = trace["join"]
    return StreamJoin(condition(join, rows, on=on), max_rows=join.get("max_accumulated_records"), formula=formula)


def feed(join: StreamJoin, ordinal: int, row: Mapping[str, Any]) -> list[Message]:
    """Put one row in."""
    plain = {name: value(given) for name, given in row.items()}
    return join.rows(ordinal, pa.Table.from_pylist([plain], schema=join._join.schemas[ordinal]))


def play(join: StreamJoin, happening: Mapping[str, Any]) -> list[Message]:
    """Let one row or watermark come."""
    if "item" in happening:
        return feed(join, happening["ordinal"], happening["item"])
    mark = happening["watermark"]
    return join.watermark(happening["ordinal"], mark["key"], mark["ts"])


def shown(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages as the data writes them; joined rows of one step in the order of their text, since theirs is free."""
    result: list[dict[str, Any]] = []
    for message in messages:
        if isinstance(message, Rows):
            rows = [{"row": row} | ({"padded": True} if message.padded else {}) for row in message.table.to_pylist()]
            result += sorted(rows, key=str)
        elif isinstance(message, LateRows):
            result += [{"late": row} for row in message.table.to_pylist()]
        else:
            assert isinstance(message, Watermark)
            result.append({"watermark": {"key": message.key, "ts": message.time}})
    return result


def wanted(join: StreamJoin, out: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a step of the data gives, with all columns."""
    names = [name for schema in join._join.schemas for name in schema.names]
    result = []
    for entry in out:
        plain = dict(entry)
        if "row" in entry:
            plain["row"] = {name: value(entry["row"].get(name)) for name in names}
        result.append(plain)
    return result
