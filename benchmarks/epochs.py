"""`python -m benchmarks.epochs`: what a small epoch costs, what a second view adds, how the state is kept.

All contenders live in one process and one Spark session with the settings that Rejoinder gives it. They take turns in
short rounds, so that whatever else the machine does hits them alike; the first epoch of a round pays for starting the
query and is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from benchmarks.feeds import PRELOAD_FILES, SECOND_VIEW, Bare, Stopwatch, View

OUT = Path(__file__).resolve().parent / "out"
TWO_INPUTS_LIMIT, THREE_INPUTS_LIMIT = 3.0, 4.0
STATE_SIZE_LIMIT = 1.5
SECOND_VIEW_LIMIT = 0.05
RUNS_PER_LOG2_ROWS = 2.0


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.epochs")
    parser.add_argument("--rows", type=int, default=1000, help="rows of a small epoch, over all inputs")
    parser.add_argument(
        "--small", type=int, default=int(os.environ.get("SMALL") or 100_000), help="rows of small state"
    )
    parser.add_argument("--large", type=int, default=int(os.environ.get("LARGE") or 10_000_000), help="of large state")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=10, help="measured epochs per round")
    return parser.parse_args(arguments)


def small_epochs(contenders: dict[str, Bare | View], options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Let the contenders take turns; return the quantiles of each one's wall time per epoch, in milliseconds."""
    stopwatch = Stopwatch()
    SparkSession.builder.getOrCreate().streams.addListener(stopwatch)
    times: dict[str, list[int]] = {name: [] for name in contenders}
    for turn in range(options.rounds + 1):  # one more round, in which everybody warms up
        for name, contender in contenders.items():
            with console.status(f"round {turn} of {options.rounds}: {name}"):
                contender.feed.add(options.rows, options.epochs + 1)
                contender.run()
                seen = stopwatch.take(options.epochs + 1)[1:]
            if turn:
                times[name] += seen
    return {name: _quantiles(values) for name, values in times.items()}


def second_view(view: View) -> dict[str, Any]:
    """State before and after another view over the same inputs and keys; no row arrives meanwhile."""
    before, folder_before = view.arrangement_bytes(), view.folder_bytes()
    view.flow.sql(f"CREATE VIEW second AS {SECOND_VIEW}")
    view.run()
    if not view.flow.arrow("second").num_rows:
        raise RuntimeError("the second view has no rows: it was not hydrated")
    after, folder_after = view.arrangement_bytes(), view.folder_bytes()
    return {
        "bytes_before": before,
        "bytes_after": after,
        "added": round(after / before - 1, 4),
        "folder_bytes_before": folder_before,
        "folder_bytes_after": folder_after,
    }


def state(view: View) -> dict[str, Any]:
    """Runs of each arrangement, and bytes written per input row while loading and in small epochs."""
    epochs = [epoch for epoch in view.flow.progress if epoch["rows_in"]]
    return {
        "arrangements": [
            {
                "name": arrangement["name"],
                "rows": arrangement["rows"],
                "bytes": arrangement["bytes"],
                "runs": arrangement["runs"],
                "runs_per_log2_rows": round(arrangement["runs"] / math.log2(max(2, arrangement["rows"])), 2),
            }
            for arrangement in view.flow.arrangements()
        ],
        "bytes_written_per_row_loading": _bytes_per_row(epochs[:PRELOAD_FILES]),
        "bytes_written_per_row_small_epochs": _bytes_per_row(epochs[PRELOAD_FILES:]),
    }


def verdicts(report: dict[str, Any]) -> list[dict[str, Any]]:
    """Compare with the targets."""
    epochs, runs = report["epochs"], [a for s in report["state"].values() for a in s["arrangements"]]
    measured = [
        ("two-input epoch / bare, p50", _ratio(epochs, "two", "bare", "p50_ms"), TWO_INPUTS_LIMIT),
        ("three-input epoch / bare, p50", _ratio(epochs, "three", "bare", "p50_ms"), THREE_INPUTS_LIMIT),
        ("large state / small state, p50", _ratio(epochs, "two, large", "two", "p50_ms"), STATE_SIZE_LIMIT),
        ("second view, added share of state bytes", report["second_view"]["added"], SECOND_VIEW_LIMIT),
        ("runs / log2(rows), most", max(a["runs_per_log2_rows"] for a in runs), RUNS_PER_LOG2_ROWS),
    ]
    return [{"target": t, "limit": limit, "measured": m, "met": m <= limit} for t, m, limit in measured]


def run(options: argparse.Namespace, folder: Path, console: Console) -> dict[str, Any]:
    """Load the states, take turns, then look at the state."""
    views: dict[str, View] = {}
    for name, shape, rows in (
        ("two", "two", options.small),
        ("three", "three", options.small),
        ("two, large", "two", options.large),
    ):
        with console.status(f"loading {rows:,} rows: {name}"):
            views[name] = View(folder / name.replace(", ", "-"), shape, rows)
            views[name].run()
    epochs = small_epochs({"bare": Bare(folder / "bare"), **views}, options, console)
    for name, values in epochs.items():
        for quantile in ("p50", "p99"):
            values[f"{quantile}_to_bare"] = _ratio(epochs, name, "bare", f"{quantile}_ms")
    report = {
        "rows_per_epoch": options.rows,
        "state_rows": {"small": options.small, "large": options.large},
        "epochs": epochs,
        "state": {name: state(view) for name, view in views.items()},
        "second_view": second_view(views["two"]),
    }
    return report | {"targets": verdicts(report)}


def show(report: dict[str, Any], console: Console) -> None:
    table = Table(title=f"epochs of {report['rows_per_epoch']:,} rows, wall time of the whole trigger")
    for heading in ("contender", "epochs", "p50 ms", "p99 ms", "p50 / bare", "p99 / bare"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for name, v in report["epochs"].items():
        row = (v["count"], v["p50_ms"], v["p99_ms"], v["p50_to_bare"], v["p99_to_bare"])
        table.add_row(name, *map(str, row))
    console.print(table)
    for name, s in report["state"].items():
        loading, small = s["bytes_written_per_row_loading"], s["bytes_written_per_row_small_epochs"]
        console.print(f"{name}: bytes written per input row {loading} while loading, {small} in small epochs")
        for a in s["arrangements"]:
            console.print(f"  {a['name']}: {a['rows']:,} rows, {a['bytes']:,} bytes, {a['runs']} runs", soft_wrap=True)
    for v in report["targets"]:
        met = "met" if v["met"] else "NOT met"
        console.print(f"target {v['target']} at most {v['limit']}, measured {v['measured']}, {met}", soft_wrap=True)


def _quantiles(milliseconds: list[int]) -> dict[str, Any]:
    p50, p99 = np.quantile(milliseconds, [0.5, 0.99])
    return {"count": len(milliseconds), "p50_ms": round(float(p50), 1), "p99_ms": round(float(p99), 1)}


def _ratio(epochs: dict[str, Any], one: str, other: str, quantile: str) -> float:
    return round(float(epochs[one][quantile]) / float(epochs[other][quantile]), 2)


def _bytes_per_row(epochs: list[dict[str, Any]]) -> float:
    rows = sum(sum(epoch["rows_in"].values()) for epoch in epochs)
    written = sum(epoch["bytes_written"] for epoch in epochs)
    return round(float(written) / max(1, rows), 1)


def main() -> int:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 140)
    folder = OUT / "epochs"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        report = run(options, folder, console)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (OUT / "epochs.json").write_text(json.dumps(report, indent=1) + "\n")
    show(report, console)
    console.print("written: benchmarks/out/epochs.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
