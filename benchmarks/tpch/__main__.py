"""`python -m benchmarks.tpch`: refresh the 22 views of TPC-H after changes, against computing them again.

CPU seconds of one epoch, the mean over the epochs of a rate: of each view in a flow of its own, and of all 22 in one
flow. Of the latter, a view has the part that corresponds to what it costs alone. Options can also be given as
environment variables, as `make bench-tpch` does.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import targets
from benchmarks.tpch.tpch_recompute import by_duckdb, by_spark
from benchmarks.tpch.tpch_refresh import InProcess, OnSpark, Refreshed, load, refresh
from benchmarks.tpch.tpch_rows import RATES, WARM_EPOCHS, Epochs, prepare
from tests.oracle.tpch_answers import QUERIES, are_equal

HERE = Path(__file__).resolve().parents[1]
ALL = "all 22"
PEERS = {"Spark": "spark_cpu_s", "DuckDB": "duckdb_cpu_s"}


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=float, default=float(os.environ.get("SF") or 1), help="scale factor")
    parser.add_argument("--repeat", type=int, default=int(os.environ.get("REPEAT") or 3), help="epochs of each rate")
    parser.add_argument("--cores", type=int, default=int(os.environ.get("CORES") or 2))
    parser.add_argument("--in-process", action="store_true", help="Rejoinder's operators without Spark; needs no Java")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, out: Path, console: Console) -> dict[str, Any]:
    """Load, refresh each view alone and all together, compute them again; check every answer."""
    folder = out / "tpch"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    load_average = os.getloadavg()[0]
    with console.status(f"rows at scale {options.scale:g}"):
        epochs = prepare(options.scale, options.repeat, HERE / "data")
    engine = InProcess if options.in_process else OnSpark
    with console.status("loading all views into one flow"):
        flow, load_cpu_s = load(engine, epochs, folder)
    with console.status(f"refreshing {ALL}"):
        together = refresh(engine, epochs, folder, QUERIES)
    flow.close()
    seconds = _by_rate(epochs, together.cpu_s)
    console.print(json.dumps({"query": ALL, "together_cpu_s": seconds}), soft_wrap=True, highlight=False)
    queries: dict[str, dict[str, Any]] = {}
    answers = {name: [rows] for name, rows in together.rows.items()}
    for name in QUERIES:
        with console.status(f"refreshing {name}"):
            refreshed = refresh(InProcess, epochs, folder, [name])
        answers[name].append(refreshed.rows[name])
        line: dict[str, Any] = {"alone_cpu_s": _by_rate(epochs, refreshed.cpu_s), "state_bytes": refreshed.state_bytes}
        queries[name] = line
        console.print(json.dumps({"query": name} | line), soft_wrap=True, highlight=False)
    shutil.rmtree(folder)
    with console.status("DuckDB"):
        duckdb_s, truth = by_duckdb(epochs.folder, options.cores)
    spark_s = dict[str, float]()
    if not options.in_process:
        with console.status("batch Spark"):
            spark_s, spark_rows = by_spark(epochs.folder, options.cores, out / "tpch-spark.log")
        for name, rows in spark_rows.items():
            answers[name].append(rows)
    for name, line in queries.items():
        line["spark_cpu_s"], line["duckdb_cpu_s"] = spark_s.get(name), duckdb_s[name]
        line["ok"] = all(are_equal(rows, truth[name]) for rows in answers[name])
        line["shared_cpu_s"] = {
            rate: line["alone_cpu_s"][rate] * total / sum(other["alone_cpu_s"][rate] for other in queries.values())
            for rate, total in seconds.items()
        }
    return {
        "scale": options.scale,
        "in_process": options.in_process,
        "load1": round(load_average, 1),
        "changed_rows": _by_rate(epochs, epochs.changed_rows[1:]),
        "load_cpu_s": round(load_cpu_s, 1),
        "queries": queries,
        "together_cpu_s": seconds,
        "sharing": sharing(together, queries),
    }


def sharing(together: Refreshed, queries: dict[str, Any]) -> dict[str, Any]:
    """How much of the state the views share."""
    alone = sum(line["state_bytes"] for line in queries.values())
    users = [len(set(arrangement["used_by"]) & set(QUERIES)) for arrangement in together.arrangements]
    shared = [a["bytes"] for a, count in zip(together.arrangements, users, strict=True) if count > 1]
    return {
        "bytes_in_flows_of_their_own": alone,
        "bytes_in_one_flow": together.state_bytes,
        "saved": round(1 - together.state_bytes / alone, 3),
        "arrangements": len(users),
        "shared_arrangements": len(shared),
        "shared_bytes": sum(shared),
    }


def show(report: dict[str, Any], console: Console) -> None:
    """Print a line for each query, the sums, and the targets."""
    title = f"TPC-H at scale {report['scale']:g}: CPU ms to refresh a view after changes, and to compute it again"
    caption = "each view: in a flow of its own / its part of one flow with all 22; ratios: of that part, at each rate"
    table = Table(title=title, caption=caption)
    table.add_column("query")
    for heading in (*(f"{rate:.2%}" for rate in RATES), *PEERS, *(f"x {peer}" for peer in PEERS), "state MB", "ok"):
        table.add_column(heading, justify="right")
    for name, line in report["queries"].items():
        pairs = zip(line["alone_cpu_s"].values(), line["shared_cpu_s"].values(), strict=True)
        peers = [line[column] for column in PEERS.values()]
        cells = [*(f"{_ms(alone)} / {_ms(shared)}" for alone, shared in pairs), *map(_ms, peers)]
        cells += [_ratios(line["shared_cpu_s"].values(), peer) for peer in peers]
        table.add_row(name, *cells, f"{line['state_bytes'] / 1e6:,.0f}", "yes" if line["ok"] else "[red]NO[/red]")
    lines = report["queries"].values()
    sums = [sum(line[column] or 0 for line in lines) or None for column in PEERS.values()]
    together = report["together_cpu_s"].values()
    cells = [*map(_ms, together), *map(_ms, sums), *(_ratios(together, total) for total in sums)]
    table.add_row(ALL, *cells, f"{report['sharing']['bytes_in_one_flow'] / 1e6:,.0f}", "")
    console.print(table)
    facts = {key: report[key] for key in ("changed_rows", "load_cpu_s", "load1", "sharing")}
    console.print(json.dumps(facts), soft_wrap=True, highlight=False)
    for verdict in targets.judge_refresh(report["queries"], report["scale"]):
        console.print(verdict, soft_wrap=True)


def _ratios(values: Iterable[float], peer: float | None) -> str:
    """What a refresh costs at each rate, as a share of computing it again."""
    return "-" if peer is None else " ".join(f"{value / peer:.2f}" for value in values)


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:,.0f}"


def main() -> int:
    options = parse()
    warnings.simplefilter("ignore")  # a trailing ORDER BY has no effect in a view
    console = Console(width=None if sys.stdout.isatty() else 150)
    out = HERE / "out"
    out.mkdir(exist_ok=True)
    report = run(options, out, console)
    (out / "tpch.json").write_text(json.dumps(report, indent=1) + "\n")
    show(report, console)
    console.print("written: benchmarks/out/tpch.json")
    return 0 if all(line["ok"] for line in report["queries"].values()) else 1


def _by_rate(epochs: Epochs, values: Any) -> dict[str, float]:
    """The mean over the measured epochs of each rate; `values` lacks that of the first epoch."""
    groups: dict[str, list[float]] = {}
    for rate, value in zip(epochs.rates[WARM_EPOCHS:], values[WARM_EPOCHS - 1 :], strict=True):
        groups.setdefault(f"{rate:g}", []).append(value)
    return {rate: round(statistics.fmean(group), 4) for rate, group in groups.items()}


if __name__ == "__main__":
    sys.exit(main())
