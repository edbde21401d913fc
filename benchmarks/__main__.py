"""`python -m benchmarks`: every engine on every workload, one after the other, checked, measured, compared.

Options can also be given as environment variables of the same name in capitals, which is how `make bench` passes them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import run, targets
from benchmarks.generate import generate
from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK
from benchmarks.truth import Truth, inputs, truths

ENGINES = ("rejoinder", "spark", "pathway", "flink", "kafka-streams")
RUNNABLE = ("W1", "W1L", "W2", "W2L", "W2F", "W3", "W4", *NEXMARK)
WARM_N = 1000


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read options, then environment, then defaults."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=RUNNABLE, default=_words("WORKLOADS", RUNNABLE))
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=_words("ENGINES", ENGINES))
    parser.add_argument("--n", type=_count, default=_count(os.environ.get("N") or "1000000"))
    parser.add_argument("--repeat", type=int, default=int(os.environ.get("REPEAT") or 1))
    parser.add_argument("--cores", type=int, default=int(os.environ.get("CORES") or 2))
    options = parser.parse_args(arguments)
    for name, allowed in (("workloads", RUNNABLE), ("engines", ENGINES)):
        unknown = [word for word in getattr(options, name) if word not in allowed]
        if unknown:  # argparse checks options, not defaults that come from the environment
            parser.error(f"unknown {name}: {' '.join(unknown)} (there are: {' '.join(allowed)})")
    return options


def present(engines: list[str], workloads: list[str], console: Console) -> list[str]:
    """The engines that have something to run, and can run here; says of those that cannot why they are left out."""
    asked = [engine for engine in engines if any(run.contestants(engine, workload) for workload in workloads)]
    obstacles = {engine: run.obstacle(engine) for engine in asked}
    for engine, obstacle in obstacles.items():
        if obstacle:
            console.print(f"[yellow]{engine} is left out: {obstacle}[/yellow]", soft_wrap=True)
    return [engine for engine, obstacle in obstacles.items() if not obstacle]


def contest(options: argparse.Namespace, console: Console) -> list[dict[str, Any]]:
    """Prepare the inputs, then run everybody, one process at a time."""
    data, out = run.HERE / "data", run.HERE / "out"
    results = []
    for workload in options.workloads:
        with console.status(f"{workload}: input for n = {options.n:,} and its truth"):
            rows = inputs(workload)
            folder, warm = generate(rows, options.n, data), generate(rows, WARM_N, data)
            truth = truths(folder)
        for engine in options.engines:
            for who in run.contestants(engine, workload):
                for repetition in range(options.repeat):
                    with console.status(f"{workload}: {who.engine}, run {repetition + 1} of {options.repeat}"):
                        line = _run(who, truth, options, folder, warm, out)
                    results.append(line | {"run": repetition})
                    console.print(json.dumps(line), soft_wrap=True, highlight=False)
    return results


def table(results: list[dict[str, Any]]) -> Table:
    """One row per run; CPU seconds are compared with Rejoinder's median."""
    view = Table(title="incremental joins, same rows, same cores", caption="CPU ratio: CPU s / Rejoinder's CPU s")
    view.add_column("workload")
    view.add_column("engine")
    for heading in ("n", "rows in", "rows out", "rows/s", "seconds", "CPU s", "CPU ratio", "peak RSS MB", "written MB"):
        view.add_column(heading, justify="right")
    view.add_column("ok")
    view.add_column("note", overflow="fold")
    seconds = targets.cpu_seconds(results)
    for line in results:
        ours = seconds.get(("rejoinder", line["workload"]))
        view.add_row(
            line["workload"],
            line["engine"],
            f"{line['n']:,}",
            f"{line['rows_in']:,}",
            "-" if line["rows_out"] is None else f"{line['rows_out']:,}",
            f"{line['rows_in'] / line['seconds']:,.0f}" if line["seconds"] else "-",
            f"{line['seconds']:.1f}",
            f"{line['cpu_s']:.1f}",
            f"{line['cpu_s'] / ours:.2f}" if ours else "-",
            f"{line['peak_rss_mb']:,}",
            f"{line['bytes_written'] / 1e6:,.1f}",
            "yes" if line["ok"] else "-" if "stopped" in line else "[red]NO[/red]",
            ", ".join(line[key] for key in ("note", "stopped") if key in line),
        )
    return view


def main() -> int:
    options = parse()
    console = Console(width=None if sys.stdout.isatty() else 180)
    options.engines = present(options.engines, options.workloads, console)
    results = contest(options, console)
    console.print(table(results))
    verdicts = targets.judge(results, options.n)
    for verdict in verdicts or [f"no target can be judged from n = {options.n:,} with {' '.join(options.engines)}"]:
        console.print(verdict, soft_wrap=True)
    path = run.HERE / "out" / "results.json"
    path.write_text(json.dumps(results, indent=1) + "\n")
    console.print(f"written: {path.relative_to(run.HERE.parent)}")
    return 0 if all(line["ok"] or _beyond(line) for line in results) else 1


def _beyond(line: dict[str, Any]) -> bool:
    """Whether a workload was too much for a peer; that is a result and no failure."""
    return "stopped" in line and line["engine"] != "rejoinder"


def _run(
    who: run.Contestant, truth: dict[str, Truth], options: argparse.Namespace, folder: Path, warm: Path, out: Path
) -> dict[str, Any]:
    return run.run(who, truth[who.truth], n=options.n, data=folder, warm=warm, out=out, cores=options.cores)


def _words(variable: str, default: tuple[str, ...]) -> list[str]:
    return os.environ.get(variable, "").split() or list(default)


def _count(text: str) -> int:
    return int(text.replace("_", "").replace(",", ""))


if __name__ == "__main__":
    sys.exit(main())
