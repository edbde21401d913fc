"""What the soak's views must hold, by batch queries of DuckDB over all input; and what the flow holds at a time."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import psutil

from benchmarks.soak_flow import BOUND
from rejoinder.state.flow_state import State
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver

_TIMELY = "(SELECT * FROM read_parquet('{0}/{1}/*.parquet') WHERE id > 0)"
_LAST = "(SELECT id, arg_max({2}, version) AS {2} FROM read_parquet('{0}/{1}/*.parquet') GROUP BY id)"
_WITHIN = f"ON o.id = d.id AND d.t BETWEEN o.t AND o.t + {BOUND}"


def wrong(folder: Path, late_rows: int) -> list[str]:
    """Compare all views with the batch answer; name those that differ, and how. Nobody else may be at work."""
    driver = Driver(store=folder / "state")
    source = folder / "in"
    orders, deliveries = (_TIMELY.format(source, name) for name in ("orders", "deliveries"))
    customers, regions = _LAST.format(source, "customers", "region"), _LAST.format(source, "regions", "name")
    passed = driver._engine.version.watermarks.values.get("deliveries", {}).get("t", -1)
    queries = {
        "served": f"SELECT o.id, o.t, d.t FROM {orders} o LEFT JOIN {deliveries} d {_WITHIN} "
        f"WHERE d.t IS NOT NULL OR o.t + {BOUND} < {passed}",
        "met": f"SELECT o.id, o.t FROM {orders} o JOIN {deliveries} d {_WITHIN}",
        "homes": f"SELECT c.id, r.name FROM {customers} c LEFT JOIN {regions} r ON c.region = r.id",
        "extra": f"SELECT r.name, count(*) FROM {customers} c JOIN {regions} r ON c.region = r.id GROUP BY r.name",
    }
    result = []
    for view, query in queries.items():
        if driver._engine.version.catalog.find(view) is None:
            continue
        found = Counter(tuple(row.values()) for row in driver.table(view))
        expected = Counter(duckdb.connect().execute(query).fetchall())
        if found != expected:
            more, less = found - expected, expected - found
            result.append(f"{view}: {more.total()} too many {list(more)[:3]}, {less.total()} missing {list(less)[:3]}")
    late = [json.loads(row["row"])["id"] for row in driver.late("served")]
    on_time = sum(number > 0 for number in late)
    if on_time or len(late) != late_rows:
        result.append(f"served.late: {len(late)} rows, {on_time} of them on time; {late_rows} late rows were written")
    return result


def held(folder: Path) -> dict[str, Any]:
    """State rows and bytes, and files on disk, as of the last commit."""
    manifest = latest(open_store(str(folder / "state")))
    if manifest is None:
        return {"epoch": -1, "rows": 0, "bytes": 0, "files": 0, "manifest": 0}
    state = State.from_json(manifest.spines)
    spines = [part for parts in state.arrangements.values() for part in parts]
    # os.walk passes over folders that garbage collection removes meanwhile
    files = sum(name.endswith(".arrow") for _, _, names in os.walk(folder / "state" / "runs") for name in names)
    return {
        "epoch": manifest.epoch,
        "rows": sum(part.rows for part in spines),
        "bytes": sum(part.bytes for part in spines),
        "files": files,
        "manifest": len(json.dumps(manifest.spines)),
    }


def memory(pid: int) -> dict[str, int]:
    """Resident memory in MB: of the driver, of its JVM, and of the largest Python worker."""
    result = {"driver": 0, "jvm": 0, "worker": 0}
    try:
        process = psutil.Process(pid)
        result["driver"] = process.memory_info().rss >> 20
        for child in process.children(recursive=True):
            name = "jvm" if "java" in child.name() else "worker" if is_worker(child) else ""
            if name:
                result[name] = max(result[name], child.memory_info().rss >> 20)
    except psutil.Error:  # it ended meanwhile
        return result
    return result


def is_worker(process: psutil.Process) -> bool:
    """Whether a process is a Python worker: a child of the daemon that the JVM started."""
    parent = process.parent()
    return parent is not None and "pyspark.daemon" in parent.cmdline() and "pyspark.daemon" in process.cmdline()
