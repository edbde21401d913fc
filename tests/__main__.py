"""`make test-deep`: all random tests for longer and with a new seed, all kill points on Spark, many simulated worlds.

`python -m tests --seed 17` runs the same again. The seed is printed first; that of a run that fails is kept in
`build/failed-seeds`, with what failed.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path

from tests.deep import SEED_VARIABLE

FAILED_SEEDS = Path("build/failed-seeds")
SIMULATION = ["-m", "tests.simulation", "--processes", "2", "--keep-going"]
FOLDERS = ["-m", "not spark", "tests/unit", "tests/features", "tests/oracle", "tests/golden", "tests/simulation"]
ON_SPARK = ["-m", "spark", "tests/spark", "tests/faults", "tests/golden"]
GROUPED = ["--dist", "loadfile", "--no-loadscope-reorder"]


def main() -> int:
    """Run all parts, also when one fails; 1 if one does."""
    parser = argparse.ArgumentParser(prog="python -m tests", description=__doc__)
    parser.add_argument("--seed", type=int, help="the seed of an earlier run; a new one unless given")
    parser.add_argument("--worlds", type=int, default=10_000, help="how many worlds to simulate")
    given = parser.parse_args()
    seed = secrets.randbelow(10**9) if given.seed is None else given.seed
    again = f"make test-deep SEED={seed}"
    print(f"seed {seed}; to run the same again: {again}", flush=True)
    pytest = ["-m", "pytest", "-q", "-n", "2", f"--hypothesis-seed={seed}"]
    parts = {
        "simulation": [*SIMULATION, "--first", str(seed), "--seeds", str(given.worlds)],
        "mutants": ["-m", "tests.simulation.mutants"],
        "random tests": [*pytest, *FOLDERS],
        "Spark and faults": [*pytest, *GROUPED, *ON_SPARK],
    }
    failed = [name for name, arguments in parts.items() if not _passes(name, arguments, seed)]
    if failed:
        FAILED_SEEDS.parent.mkdir(exist_ok=True)
        with FAILED_SEEDS.open("a", encoding="utf-8") as file:
            file.write(f"{seed}  {', '.join(failed)}\n")
        print(f"failed: {', '.join(failed)}; the seed is kept in {FAILED_SEEDS}; to run the same again: {again}")
    return 1 if failed else 0


def _passes(name: str, arguments: list[str], seed: int) -> bool:
    start = time.monotonic()
    environment = {**os.environ, SEED_VARIABLE: str(seed)}
    code = subprocess.run([sys.executable, *arguments], env=environment, check=False).returncode
    print(f"{name}: {'passed' if code == 0 else 'FAILED'} after {time.monotonic() - start:.0f} s", flush=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
