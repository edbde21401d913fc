"""Expressions over a table in DuckDB, deep ones stage by stage; also attempts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.expressions.nodes import Attempt, Node
from rejoinder.kernels.arrow.columns import replaced, single_chunk
from rejoinder.kernels.duckdb.duckdb_session import Session, session
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.render import attempt_text, render, stage_name, tried


def run_nodes(source: pa.Table, nodes: Sequence[Node]) -> pa.Table:
    """Evaluate expressions over a table, one column each. Raises `duckdb.Error`."""
    connection = session(careful=any(isinstance(node, Attempt) for node in nodes))
    texts = []
    for number, node in enumerate(nodes):
        text = attempt_text(node) if isinstance(node, Attempt) else None
        stages = () if isinstance(node, Attempt) else render(node)
        if text is None and len(stages) == 1:
            text = stages[0]
        if text is None:
            name = f"__whole_{number}"
            values = _attempted(connection, source, node) if isinstance(node, Attempt) else None
            source = replaced(source, name, _staged(connection, source, stages) if values is None else values)
            text = quoted(name)
        texts.append(text)
    listed = ", ".join(f"{text} AS {quoted(str(index))}" for index, text in enumerate(texts))
    return connection.run(source, f"SELECT {listed}")


def _staged(connection: Session, source: pa.Table, stages: Sequence[str]) -> pa.Array:
    values = pa.nulls(source.num_rows)
    for number, stage in enumerate(stages):
        values = single_chunk(connection.run(source, f"SELECT {stage} AS value").column(0))
        source = replaced(source, stage_name(number), values)
    return values


def _attempted(connection: Session, source: pa.Table, attempt: Attempt) -> pa.Array:
    """Evaluate a deep attempt: a row fails if one of its stages does."""
    failed = np.zeros(source.num_rows, bool)
    values = pa.nulls(source.num_rows)
    for number, stage in enumerate(render(attempt.parts[0], under_try=True)):
        packed = single_chunk(connection.run(source, f"SELECT {tried(stage)} AS value").column(0))
        failed |= np.asarray(packed.is_null())
        values = pc.struct_field(packed, 0)
        source = replaced(source, stage_name(number), values)
    if attempt.is_test:
        return pa.array(failed)
    return pc.if_else(pa.array(failed), pa.scalar(None, values.type), values)
