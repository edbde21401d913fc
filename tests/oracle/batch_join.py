"""DuckDB's answer to a join of two tables, `l` and `r`, of any kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

KINDS = ["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "FULL ANTI"]


def batch_join(
    tables: Mapping[str, tuple[str, Sequence[Mapping[str, Any]]]],
    kind: str,
    on: str,
    shown: Sequence[str],
    query: str,
) -> Counter[tuple[Any, ...]]:
    """The rows of a join. `tables`: what columns `l` and `r` have, and their rows; `shown`: columns of each side.

    DuckDB's own SEMI and ANTI joins on a range were seen to give wrong rows: these are asked for by conditions. Of the
    other kinds the `query` is asked.
    """
    oracle = duckdb.connect()
    for side, (columns, rows) in tables.items():
        oracle.execute(f"CREATE TABLE {side} ({columns})")
        for row in rows:
            oracle.execute(f"INSERT INTO {side} VALUES ({', '.join('?' * len(row))})", [*row.values()])
    left, right = (f"{side}.rowid IN (SELECT {side}.rowid FROM l JOIN r ON {on})" for side in "lr")
    names, nulls = ", ".join(shown), ", ".join(["NULL"] * len(shown))
    asked = {
        "LEFT SEMI": f"SELECT {names} FROM l WHERE {left}",
        "LEFT ANTI": f"SELECT {names} FROM l WHERE NOT {left}",
        "FULL ANTI": f"SELECT {names}, {nulls} FROM l WHERE NOT {left}"
        f" UNION ALL SELECT {nulls}, {names} FROM r WHERE NOT {right}",
    }.get(kind, query)
    return Counter(oracle.execute(asked).fetchall())
