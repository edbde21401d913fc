"""`python -m benchmarks.soak --minutes 10`: random faults for as long as asked; the result checked at each recovery.

Input goes on all the time. A driver is killed, or a Python worker, or it is stopped and goes on with another number of
buckets; files come late, a source falls silent, a view comes and goes. After each restart the views are compared with
batch queries over all input. State, files and memory are sampled; they must not grow with time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.soak_check import held, is_worker, memory, wrong
from benchmarks.soak_flow import EXTRA, Input

OUT = Path(__file__).resolve().parent / "out"
SAMPLE_SECONDS, START_SECONDS = 2.0, 300.0
FAULTS = ("driver killed", "worker killed", "worker killed", "other parallelism", "silence", "definition")
MEMORY = ("driver", "jvm", "worker")
FLAT = {"rows": 1.5, "bytes": 1.5, "files": 1.5, "manifest": 1.5, "driver": 1.3, "jvm": 1.3, "worker": 1.3}


class Soak:
    """One run: the process under test, what is done to it, and what was seen."""

    def __init__(self, folder: Path, seed: int, pace: float) -> None:
        self.folder, self.pace = folder, pace
        self.chance = random.Random(seed)
        (folder / "commands").mkdir(parents=True)
        self.input = Input(folder / "in", self.chance)
        self.process: subprocess.Popen[bytes] | None = None
        self.samples: list[dict[str, Any]] = []
        self.events: list[tuple[float, str]] = []
        self.problems: list[str] = []
        self.done: Counter[str] = Counter()
        self.started = time.monotonic()
        self.commands = self.checks = self.silent = 0
        self._next_input = self._next_sample = 0.0

    # -- the process under test ---------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a driver, let it catch up, check, and let it follow."""
        for name in ("go", "stop", "caught-up"):
            (self.folder / name).unlink(missing_ok=True)
        parallelism = self.chance.choice((1, 2, 3, 5))
        with (self.folder / "driver.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak_flow", str(self.folder), str(parallelism)],
                stdout=log,
                stderr=log,
                env={**os.environ, "TMPDIR": str(self.folder / "tmp")},
                start_new_session=True,
            )
        self.note(f"driver starts with parallelism {parallelism}")
        self.caught_up()
        (self.folder / "go").touch()

    def caught_up(self) -> None:
        """Wait for the driver to have read everything that is there, and check. No input comes meanwhile."""
        end = time.monotonic() + START_SECONDS
        while not (self.folder / "caught-up").exists():
            if self.is_dead() or time.monotonic() > end:
                self.problems.append("the driver did not catch up; see driver.log")
                raise SoakError
            time.sleep(0.1)
        self.check()

    def check(self) -> None:
        """Compare with the batch answer."""
        found = wrong(self.folder, self.input.late_rows)
        self.checks += 1
        self.problems += found
        self.note("checked: " + ("; ".join(found) or "as in batch"))

    def is_dead(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        """SIGKILL the driver; its JVM and workers find out by themselves, as after a crash."""
        assert self.process is not None
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        _, alive = psutil.wait_procs(children, timeout=60)
        self.problems += [f"process {child.pid} outlived its driver" for child in alive]

    def stop(self) -> None:
        """Let the driver end by itself, all input read, and check."""
        assert self.process is not None
        (self.folder / "caught-up").unlink(missing_ok=True)
        (self.folder / "stop").touch()
        self.process.wait(START_SECONDS)
        self.caught_up()

    # -- what happens -------------------------------------------------------------------------------------------------

    def go_on(self, seconds: float) -> None:
        """Let input come for a while, and sample."""
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            if self.is_dead():
                self.problems.append("the driver ended by itself; see driver.log")
                raise SoakError
            if now >= self._next_input:
                self.silent = max(0, self.silent - 1)
                self.input.step(idle=self.silent > 0, late=self.chance.random() < 0.1)
                self._next_input = now + self.pace
            if now >= self._next_sample:
                assert self.process is not None
                at = round(now - self.started, 1)
                self.samples.append({"at": at, **held(self.folder), **memory(self.process.pid)})
                self._next_sample = now + SAMPLE_SECONDS
            time.sleep(0.05)

    def fault(self) -> None:
        """Do one of the bad things."""
        what = self.chance.choice(FAULTS)
        self.done[what] += 1
        self.note(what)
        assert self.process is not None
        if what == "driver killed":
            self.kill()
            self.start()
        elif what == "other parallelism":
            self.stop()
            self.start()
        elif what == "worker killed":
            workers = [p for p in psutil.Process(self.process.pid).children(recursive=True) if is_worker(p)]
            if workers:
                self.chance.choice(workers).kill()
        elif what == "silence":
            self.silent = 8
        else:
            self.commands += 1
            text = EXTRA if self.commands % 2 else "DROP VIEW IF EXISTS extra"
            (self.folder / "commands" / f"{self.commands:04d}.sql").write_text(text)

    def note(self, what: str) -> None:
        self.events.append((round(time.monotonic() - self.started, 1), what))

    def run(self, seconds: float) -> None:
        """Faults at random until the time is over; then the whole is checked once more."""
        self.start()
        while time.monotonic() - self.started < seconds:
            self.go_on(self.chance.uniform(5, 25))
            self.fault()
        self.go_on(5)
        self.stop()


class SoakError(Exception):
    """The run cannot go on."""


def flatness(samples: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each measure in the middle and in the last third of the run: it may not have grown.

    State is compared by its upper quartile. Memory starts low after each restart and then reaches a plateau, so it is
    compared by its maximum: how much of a third a young process fills is chance.
    """
    third = len(samples) // 3
    result = {}
    for name, factor in FLAT.items():
        middle, last = (
            max(values) if name in MEMORY else statistics.quantiles(values, n=4)[2]
            for values in (
                [sample[name] for sample in part] for part in (samples[third : 2 * third], samples[2 * third :])
            )
        )
        largest = max(each[name] for each in samples)
        result[name] = {"middle": middle, "last": last, "largest": largest, "flat": last <= factor * max(middle, 1)}
    return result


def report(soak: Soak, seconds: float, console: Console) -> bool:
    """Print a summary, write it down, and say whether all is well."""
    measures = flatness(soak.samples) if len(soak.samples) >= 12 else {}
    table = Table(title=f"soak of {seconds / 60:.1f} minutes, {soak.checks} checks, {len(soak.problems)} problems")
    for heading in ("measure", "middle third", "last third", "largest", "flat"):
        table.add_column(heading, justify="left" if heading == "measure" else "right")
    for name, values in measures.items():
        plain = (f"{values[key]:,.0f}" for key in ("middle", "last", "largest"))
        table.add_row(name, *plain, "yes" if values["flat"] else "NO")
    console.print(table)
    console.print("faults: " + ", ".join(f"{what} {count}" for what, count in sorted(soak.done.items())))
    epochs = max((each["epoch"] for each in soak.samples), default=-1) + 1
    console.print(f"{epochs} epochs, {soak.input.number} steps of input, {soak.input.late_rows} late rows")
    for problem in soak.problems:
        console.print(f"problem: {problem}", style="red")
    well = not soak.problems and bool(measures) and all(values["flat"] for values in measures.values())
    OUT.mkdir(exist_ok=True)
    told = {"ok": well, "seconds": seconds, "epochs": epochs, "steps": soak.input.number, "checks": soak.checks}
    told |= {"late_rows": soak.input.late_rows, "faults": dict(soak.done), "measures": measures}
    told |= {"problems": soak.problems, "events": soak.events, "samples": soak.samples}
    (OUT / "soak.json").write_text(json.dumps(told, indent=1))
    return well


def main() -> int:
    """Run, report, and leave the folder there if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak")
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("MINUTES") or 10))
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--pace", type=float, default=0.5, help="seconds between two steps of input")
    options = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    seed = options.seed if options.seed is not None else random.randrange(1 << 30)
    console.print(f"seed {seed}")
    folder = OUT / "soak"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "tmp").mkdir(parents=True)
    soak = Soak(folder, seed, options.pace)
    try:
        soak.run(60 * options.minutes)
    except SoakError:
        pass
    finally:
        if not soak.is_dead():
            soak.kill()
    well = report(soak, time.monotonic() - soak.started, console)
    if well:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
