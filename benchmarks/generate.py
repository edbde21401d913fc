"""Write the inputs of the workloads: fixed seed, any size, 20 part files per table as Parquet and as CSV.

| workload | tables for size n | join |
|---|---|---|
| W1 | orders n, deliveries n, over ten hours, less than 5 s out of order | delivered within the hour |
| W2 | left n/2, right n/2 events over n/4 keys, one in ten a delete | equal keys, with retractions |
| W3 | customer 0.03 n, orders 0.3 n, lineitem 1.2 n, shuffled | three-way on two keys |
| W4 | orders n, rates n/10 versions of 1000 currencies | the rate valid at the order's time |
| N | n events of Nexmark: person, auction, bid, 10,000 a second, at most 1 s out of order | Nexmark's queries |

A row's position is its arrival; part files get rising modification times, because file sources order by them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks.nexmark.events import events

Column = npt.NDArray[Any]
Columns = dict[str, Column]
Tables = dict[str, Columns]

PARTS = 20
SEED = 42
START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
HOUR_MS = 3_600_000
SPAN_MS = 10 * HOUR_MS
FAR_MS = START_MS + SPAN_MS + 6 * HOUR_MS  # behind all rows and what they can meet
DISORDER_MS = 5_000
SEGMENTS = np.array(["AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"])


def generate(workload: str, n: int, root: Path, *, parts: int = PARTS, seed: int = SEED, csv: bool = True) -> Path:
    """Return the workload's folder under `root/n`, written now unless it is there already.

    The folder appears whole or not at all: it is filled under another name and renamed.
    """
    target = root / str(n) / workload
    if (target / "meta.json").exists():
        return target
    partial = target.with_name(f"{workload}.partial-{os.getpid()}")
    shutil.rmtree(partial, ignore_errors=True)
    number, make = WORKLOADS[workload]
    for name, columns in make(np.random.default_rng([seed, number]), n).items():
        _write_parts(partial, name, columns, parts, csv)
    if workload == "W1":
        _write_sentinels(partial, parts, csv)
    (partial / "meta.json").write_text(json.dumps({"workload": workload, "n": n, "seed": seed, "parts": parts}))
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    return target


def interval_tables(rng: np.random.Generator, n: int) -> Tables:
    """W1: 80 % delivered within the hour, 10 % later, 5 % before the order, 5 % of unknown orders."""
    order_id = np.arange(n, dtype=np.int64)
    ordered = START_MS + np.sort(rng.integers(0, SPAN_MS, n))
    customer = rng.integers(0, max(1, n // 10), n)
    kind = rng.random(n)
    delivered = ordered + rng.integers(0, HOUR_MS + 1, n)
    late = (kind >= 0.80) & (kind < 0.90)
    delivered[late] = ordered[late] + HOUR_MS + 1 + rng.integers(0, HOUR_MS // 2, late.sum())
    early = (kind >= 0.90) & (kind < 0.95)
    delivered[early] = ordered[early] - 1 - rng.integers(0, HOUR_MS // 6, early.sum())
    delivered_id = order_id + np.where(kind >= 0.95, n, 0)
    orders = {"order_id": order_id, "cust": customer, "ts": ordered}
    deliveries = {"order_id": delivered_id, "ts": delivered}
    by_order, by_delivery = _arrival(rng, ordered), _arrival(rng, delivered)
    return {"orders": _take(orders, by_order), "deliveries": _take(deliveries, by_delivery)}


def retracting_tables(rng: np.random.Generator, n: int) -> Tables:
    """W2: two event logs (seq, op, id, k, v)."""
    return {side: event_log(rng, n // 2, max(1, n // 4)) for side in ("left", "right")}


def event_log(rng: np.random.Generator, n: int, keys: int) -> Columns:
    """Inserts, and one event in ten a delete (op -1) that repeats an earlier row which is still live.

    Deletes choose among all rows inserted before them, all at once: who picks a row that is taken, or that an earlier
    delete picks in the same round, picks again. A tenth of the rows die at most, so a few rounds are enough.
    """
    deletes, quiet = n // 10, n // 50
    is_delete = np.zeros(n, dtype=bool)
    is_delete[quiet + rng.choice(n - quiet, deletes, replace=False)] = True
    row = np.cumsum(~is_delete) - 1
    key = rng.integers(0, keys, n - deletes)
    value = rng.integers(0, 1_000_000, n - deletes)

    pending = np.flatnonzero(is_delete)
    born_before = row.copy()
    dead = np.zeros(n - deletes, dtype=bool)
    while len(pending):
        pick = rng.integers(0, born_before[pending] + 1)
        _, first = np.unique(pick, return_index=True)
        chosen = np.zeros(len(pending), dtype=bool)
        chosen[first] = True
        chosen &= ~dead[pick]
        row[pending[chosen]] = pick[chosen]
        dead[pick[chosen]] = True
        pending = pending[~chosen]
    return {"seq": np.arange(n), "op": np.where(is_delete, -1, 1), "id": row, "k": key[row], "v": value[row]}


def order_tables(rng: np.random.Generator, n: int) -> Tables:
    """W3: one to seven lines per order, a fifth of the customers in each segment."""
    customers, orders, lines = n * 3 // 100, n * 3 // 10, n * 12 // 10
    customer = {"c_custkey": np.arange(customers), "c_mktsegment": SEGMENTS[rng.integers(0, 5, customers)]}
    order = {"o_orderkey": np.arange(orders), "o_custkey": rng.integers(0, customers, orders)}
    per_order = rng.integers(1, 8, orders)
    order_key = np.repeat(np.arange(orders), per_order)
    number = np.arange(len(order_key)) - np.repeat(np.cumsum(per_order) - per_order, per_order)
    missing = lines - len(order_key)
    if missing > 0:
        order_key = np.concatenate([order_key, rng.integers(0, orders, missing)])
        number = np.concatenate([number, 7 + np.arange(missing)])
    line = {
        "l_orderkey": order_key[:lines],
        "l_linenumber": number[:lines],
        "l_extendedprice": np.round(rng.uniform(900, 105_000, lines), 2),
        "l_discount": np.round(rng.integers(0, 11, lines) / 100, 2),
    }
    tables = {"customer": customer, "orders": order, "lineitem": line}
    return {name: _take(columns, rng.permutation(_rows(columns))) for name, columns in tables.items()}


def rate_tables(rng: np.random.Generator, n: int, currencies: int = 1000) -> Tables:
    """W4: no two versions of a currency at the same time."""
    versions = n // 10
    ordered = START_MS + np.sort(rng.integers(0, SPAN_MS, n))
    currency, amount = rng.integers(0, currencies, n), rng.integers(1, 10_000, n)
    orders = {"order_id": np.arange(n), "cur": currency, "amount": amount, "ts": ordered}
    cells = np.unique(rng.integers(0, currencies * SPAN_MS, versions + versions // 100))
    cells = rng.permutation(cells)[:versions]
    valid_from = START_MS + cells // currencies
    order = np.argsort(valid_from, kind="stable")
    rates = {
        "ver": np.arange(len(cells)),
        "cur": (cells % currencies)[order],
        "rate": np.round(rng.uniform(0.5, 2, len(cells)), 6),
        "ts": valid_from[order],
    }
    return {"orders": _take(orders, _arrival(rng, orders["ts"])), "rates": _take(rates, _arrival(rng, rates["ts"]))}


def auction_tables(rng: np.random.Generator, n: int) -> Tables:
    """N: the events of Nexmark."""
    tables = events(n, seed=int(rng.integers(1 << 32)), disorder_ms=1000)
    return {name: {c: table[c].to_numpy() for c in table.column_names[1:]} for name, table in tables.items()}


WORKLOADS: dict[str, tuple[int, Callable[[np.random.Generator, int], Tables]]] = {
    "W1": (0, interval_tables),
    "W2": (1, retracting_tables),
    "W3": (2, order_tables),
    "W4": (3, rate_tables),
    "N": (4, auction_tables),
}


def _arrival(rng: np.random.Generator, time: Column) -> Column:
    """Rows in the order of their time plus a delay below 5 s."""
    return np.argsort(time + rng.integers(0, DISORDER_MS, len(time)), kind="stable")


def _take(columns: Columns, order: Column) -> Columns:
    return {name: column[order] for name, column in columns.items()}


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _write_sentinels(folder: Path, parts: int, csv: bool) -> None:
    """Two rows per W1 table far past the end, one file each: they move watermarks and match nothing.

    Two, because Spark applies a batch's watermark in the next batch. Their order_id is negative.
    """
    rows: Tables = {
        "orders": {"order_id": np.array([-1]), "cust": np.array([-1]), "ts": np.array([FAR_MS])},
        "deliveries": {"order_id": np.array([-2]), "ts": np.array([FAR_MS])},
    }
    for name, columns in rows.items():
        for i in range(2):
            _write_part(folder, name, f"part-ZZ-sentinel-{i}", _typed(columns), parts + i, csv)


def _write_parts(folder: Path, name: str, columns: Columns, parts: int, csv: bool) -> None:
    table = _typed(columns)
    cuts = np.linspace(0, table.num_rows, parts + 1).astype(int)
    for i in range(parts):
        _write_part(folder, name, f"part-{i:02d}", table.slice(cuts[i], cuts[i + 1] - cuts[i]), i, csv)


def _write_part(folder: Path, name: str, part: str, table: Any, position: int, csv: bool) -> None:
    moment = START_MS // 1000 + position
    for kind in ("parquet", "csv") if csv else ("parquet",):
        path = folder / kind / name / f"{part}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "parquet":
            pa.parquet.write_table(table, path)
        else:
            pa.csv.write_csv(_untyped(table), path, pa.csv.WriteOptions(quoting_style="none"))
        os.utime(path, (moment, moment))


def _typed(columns: Columns) -> Any:
    """Parquet carries times as timestamps in UTC."""
    arrays = {name: pa.array(column) for name, column in columns.items()}
    moments = {name for name, array in arrays.items() if name == "ts" or pa.types.is_timestamp(array.type)}
    return pa.table(
        {n: array.cast(pa.timestamp("ms", "UTC")) if n in moments else array for n, array in arrays.items()}
    )


def _untyped(table: Any) -> Any:
    """CSV carries times as milliseconds since 1970."""
    fields = [field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generate", description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1_000_000)
    parser.add_argument("--workloads", nargs="+", choices=list(WORKLOADS), default=["W2", "W3"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    options = parser.parse_args()
    for workload in options.workloads:
        print(generate(workload, options.n, options.out))


if __name__ == "__main__":
    main()
