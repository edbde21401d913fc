"""Rows of TPC-H at a scale, and random changes of them, as the files that a flow reads epoch by epoch.

`input/<table>` has the files of the load, `changes/<table>` one file for each epoch after it, and `final` the tables
after all changes, from which views are computed again. tpchgen-cli makes the rows.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.oracle.tpch_data import SCHEMA

LOADED_ROWS = 300_000  # lines in an epoch of the load
RATES = (0.0001, 0.001, 0.01)
WARM_RATE, WARM_EPOCHS = 0.0001, 3
TABLES = tuple(SCHEMA)

# An order is placed (a copy of another one), deleted or changed with its lines, as often each.
_CHANGED_ORDERS = """
CREATE OR REPLACE TEMP TABLE chosen AS
SELECT o_orderkey AS key, row_number() OVER () % 3 AS what,
  (SELECT max(o_orderkey) FROM orders) + row_number() OVER () AS fresh
FROM (SELECT o_orderkey FROM orders ORDER BY hash(o_orderkey + {seed}), o_orderkey LIMIT {count});
CREATE OR REPLACE TEMP TABLE orders_changes AS
SELECT 'D' AS op, o.* FROM orders o JOIN chosen ON key = o_orderkey WHERE what = 0
UNION ALL
SELECT 'I', o.* REPLACE (fresh AS o_orderkey) FROM orders o JOIN chosen ON key = o_orderkey WHERE what = 1
UNION ALL
SELECT 'I', o.* REPLACE (
  o_totalprice + 1 AS o_totalprice,
  CASE o_orderstatus WHEN 'O' THEN 'F' ELSE 'O' END AS o_orderstatus,
  CASE o_orderpriority WHEN '1-URGENT' THEN '5-LOW' ELSE '1-URGENT' END AS o_orderpriority,
  o_orderdate + 1 AS o_orderdate
) FROM orders o JOIN chosen ON key = o_orderkey WHERE what = 2;
CREATE OR REPLACE TEMP TABLE lineitem_changes AS
SELECT 'D' AS op, l.* FROM lineitem l JOIN chosen ON key = l_orderkey WHERE what = 0
UNION ALL
SELECT 'I', l.* REPLACE (fresh AS l_orderkey) FROM lineitem l JOIN chosen ON key = l_orderkey WHERE what = 1
UNION ALL
SELECT 'I', l.* REPLACE (
  51 - l_quantity AS l_quantity,
  l_extendedprice + 1 AS l_extendedprice,
  0.1 - l_discount AS l_discount,
  CASE l_returnflag WHEN 'R' THEN 'A' ELSE 'R' END AS l_returnflag,
  l_shipdate + 1 AS l_shipdate,
  l_receiptdate + 2 AS l_receiptdate
) FROM lineitem l JOIN chosen ON key = l_orderkey WHERE what = 2
"""
# The other tables are updated at the same rate: balances, prices, costs and stocks.
_UPDATES = {
    "customer": "1000 - c_acctbal AS c_acctbal",
    "supplier": "1000 - s_acctbal AS s_acctbal",
    "part": "p_retailprice + 1 AS p_retailprice",
    "partsupp": "10000 - ps_availqty AS ps_availqty, ps_supplycost + 1 AS ps_supplycost",
}


@dataclass(frozen=True)
class Epochs:
    """The files of a scale: how many epochs load them, and the rate and rows of each epoch of changes."""

    folder: Path
    loaded: int
    rates: tuple[float, ...]  # the first WARM_EPOCHS of them are not measured
    changed_rows: tuple[int, ...]


def prepare(scale: float, repeat: int, data: Path) -> Epochs:
    """Make the files of a scale, with `repeat` epochs for each rate, unless they are there."""
    folder = data / f"tpch-{scale:g}-{repeat}"
    made = folder / "made.json"
    if not made.exists():
        shutil.rmtree(folder, ignore_errors=True)
        made_now = _make(folder, scale, [*[WARM_RATE] * WARM_EPOCHS, *[rate for rate in RATES for _ in range(repeat)]])
        made.write_text(json.dumps(made_now))
    facts = json.loads(made.read_text())
    return Epochs(folder, facts["loaded"], tuple(facts["rates"]), tuple(facts["changed_rows"]))


def declaration(table: str, folder: Path) -> str:
    """The statement that declares a table over its files, one of them per epoch."""
    path = (folder / table).as_posix().replace("'", "''")
    return (
        f"CREATE TABLE {table} ({SCHEMA[table]}) USING parquet OPTIONS (path '{path}', op 'op', maxFilesPerTrigger '1')"
    )


def final_table(folder: Path, table: str) -> Path:
    """The file with the rows of a table after all changes."""
    return folder / "final" / f"{table}.parquet"


def _make(folder: Path, scale: float, rates: Sequence[float]) -> dict[str, object]:
    for part in ("base", "final", *(f"{kind}/{table}" for kind in ("input", "changes") for table in TABLES)):
        (folder / part).mkdir(parents=True)
    generator = Path(sysconfig.get_path("scripts")) / "tpchgen-cli"
    target = str(folder / "base")
    subprocess.run([generator, "parquet", "--quiet", "-s", f"{scale:g}", "--output-dir", target], check=True)
    database = duckdb.connect(config={"threads": 2})
    for table, columns in SCHEMA.items():
        database.execute(f"CREATE TABLE {table} ({columns.rpartition(', PRIMARY')[0].replace('STRING', 'VARCHAR')})")
        database.execute(f"INSERT INTO {table} FROM '{folder / 'base' / table}.parquet'")
    shutil.rmtree(folder / "base")
    parts = max(1, _count(database, "lineitem") // LOADED_ROWS)
    clock = int(time.time()) - 1_000_000  # files are read in the order of their modification times
    for table in TABLES:
        rows = _count(database, table)
        for number in range(parts if rows >= LOADED_ROWS else 1):
            low, high = rows * number // parts, rows * (number + 1) // parts if rows >= LOADED_ROWS else rows
            part = f"SELECT 'I' AS op, * FROM {table} WHERE rowid >= {low} AND rowid < {high}"
            _write(database, part, folder / "input" / table / f"{number:04}.parquet", clock + number)
    changed_rows = []
    for number, rate in enumerate(rates):
        changes = _change(database, rate, number + 1)
        for table in changes:
            path = folder / "changes" / table / f"{parts + number:04}.parquet"
            _write(database, f"FROM {table}_changes", path, clock + parts + number)
        changed_rows.append(sum(_count(database, f"{table}_changes") for table in changes))
    for table in TABLES:
        _write(database, f"FROM {table}", final_table(folder, table), clock)
    return {"loaded": parts, "rates": list(rates), "changed_rows": changed_rows}


def _change(database: duckdb.DuckDBPyConnection, rate: float, seed: int) -> list[str]:
    """Change the tables; `<table>_changes` has the records of each table that is returned."""
    database.execute(_CHANGED_ORDERS.format(seed=seed, count=max(3, int(_count(database, "orders") * rate))))
    for table, update in _UPDATES.items():
        key = _key(table)
        chosen = f"FROM {table} ORDER BY hash({' + 7 * '.join(key)} + {seed}), {', '.join(key)}"
        chosen += f" LIMIT {max(1, int(_count(database, table) * rate))}"
        database.execute(
            f"CREATE OR REPLACE TEMP TABLE {table}_changes AS SELECT 'I' AS op, * REPLACE ({update}) FROM ({chosen})"
        )
    changed = ["orders", "lineitem", *_UPDATES]
    for table in changed:
        columns = ", ".join(_key(table))
        database.execute(f"DELETE FROM {table} WHERE ({columns}) IN (SELECT ({columns}) FROM {table}_changes)")
        database.execute(f"INSERT INTO {table} SELECT * EXCLUDE (op) FROM {table}_changes WHERE op = 'I'")
    return changed


def _key(table: str) -> list[str]:
    return SCHEMA[table].rpartition("PRIMARY KEY (")[2].rstrip(")").split(", ")


def _count(database: duckdb.DuckDBPyConnection, table: str) -> int:
    counted = database.execute(f"SELECT count(*) FROM {table}").fetchone()
    assert counted is not None
    return int(counted[0])


def _write(database: duckdb.DuckDBPyConnection, query: str, path: Path, modified: int) -> None:
    database.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    os.utime(path, (modified, modified))
