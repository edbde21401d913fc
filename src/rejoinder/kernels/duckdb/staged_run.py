"""Texts over a table in DuckDB, deep ones stage by stage (`staged_text`); also those under TRY."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.ir.expression import quoted
from rejoinder.kernels.arrow.columns import replaced, single_chunk
from rejoinder.kernels.duckdb.duckdb_session import session
from rejoinder.kernels.duckdb.staged_text import is_deep, stage_name, staged

_OPEN, _STRUCT, _CLOSE = "TRY(", "struct_pack(v := ", ")"
_IS_NULL = " IS NULL"


@dataclass(frozen=True)
class Attempt:
    """A text under TRY: `attempted(sql)` is NULL where it fails, `failure(sql)` TRUE there."""

    sql: str
    is_test: bool

    @classmethod
    def of(cls, text: str) -> Attempt | None:
        """Read what `attempted` and `failure` write; None for other texts."""
        if text.startswith(_OPEN + _STRUCT) and text.endswith(_CLOSE * 2 + _IS_NULL):
            return cls(text[len(_OPEN + _STRUCT) : -len(_CLOSE * 2 + _IS_NULL)], is_test=True)
        if text.startswith(_OPEN) and text.endswith(_CLOSE):
            return cls(text[len(_OPEN) : -len(_CLOSE)], is_test=False)
        return None


def attempted(sql: str) -> str:
    """The text that is NULL on the rows on which another fails."""
    return f"{_OPEN}{sql}{_CLOSE}"


def failure(sql: str) -> str:
    """The text that says on which rows another fails. A struct is NULL if its field fails, and not if that is NULL."""
    return f"{_OPEN}{_STRUCT}{sql}{_CLOSE}{_CLOSE}{_IS_NULL}"


def run_texts(source: pa.Table, sqls: Sequence[str]) -> pa.Table:
    """Evaluate texts over a table, one column each. Raises `duckdb.Error`."""
    careful = any(_OPEN in sql for sql in sqls)
    texts = []
    for number, sql in enumerate(sqls):
        texts.append(sql)
        if is_deep(sql):
            column = _run_deep(source, sql, careful=careful)
            if column is not None:
                name = f"__whole_{number}"
                source, texts[-1] = replaced(source, name, column), quoted(name)
    listed = ", ".join(f"{text} AS {quoted(str(index))}" for index, text in enumerate(texts))
    return session(careful=careful).run(source, f"SELECT {listed}")


def _run_deep(source: pa.Table, sql: str, *, careful: bool) -> pa.Array | None:
    """Evaluate a text stage by stage; None if it cannot be cut."""
    attempt = Attempt.of(sql)
    stages = staged(sql if attempt is None else attempt.sql)
    if len(stages) == 1:
        return None
    failed = np.zeros(source.num_rows, bool)
    values = pa.nulls(source.num_rows)
    for number, stage in enumerate(stages):
        text = stage if attempt is None else f"{_OPEN}{_STRUCT}{stage}{_CLOSE}{_CLOSE}"
        values = single_chunk(session(careful=careful).run(source, f"SELECT {text} AS value").column(0))
        if attempt is not None:
            failed |= np.asarray(values.is_null())
            values = pc.struct_field(values, 0)
        source = replaced(source, stage_name(number), values)
    if attempt is None:
        return values
    return pa.array(failed) if attempt.is_test else pc.if_else(pa.array(failed), pa.scalar(None, values.type), values)
