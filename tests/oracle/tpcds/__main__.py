"""Ask all 99 queries of TPC-DS as views: how many are accepted, and whether each equals DuckDB after each epoch.

    make tpcds
    python -m tests.oracle.tpcds build/tpcds.json [--seed 1] [--epochs 5] [--queries 1,17]

Each query has a flow and a small random database of its own, with inserts, updates and deletes in each epoch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import defaultdict
from pathlib import Path

from rejoinder.errors import PlanningError, RejoinderError
from tests.oracle.tpcds.tpcds_data import Tables
from tests.oracle.tpcds.tpcds_flow import Play


def main() -> int:
    """Print one line per query, then the score. Returns 1 if an answer is wrong or fewer than 90 are accepted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exported", type=Path, help="what export_tpcds.py wrote")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--queries", help="numbers, separated by commas; default: all")
    options = parser.parse_args()
    exported = json.loads(options.exported.read_text(encoding="utf-8"))
    tables: Tables = exported["tables"]
    chosen = options.queries.split(",") if options.queries else list(exported["queries"])
    accepted, wrong, empty, refused = 0, [], [], defaultdict(list)
    warnings.simplefilter("ignore")  # ORDER BY without LIMIT has no effect on a view
    for number in chosen:
        query = exported["queries"][number].strip().rstrip(";")
        started = time.process_time()
        try:
            play = Play(options.seed, tables, query)
        except PlanningError as refusal:
            refused[refusal.fact].append(number)
            print(f"q{number:3} refused: {refusal}", flush=True)
            continue
        accepted += 1
        try:
            rows = max(play.epoch() for _ in range(options.epochs))
        except (AssertionError, RejoinderError):
            wrong.append(number)
            print(f"q{number:3} WRONG\n{traceback.format_exc(limit=-2)[-3000:]}", flush=True)
            continue
        if rows == 0:
            empty.append(number)
        seconds = time.process_time() - started
        print(f"q{number:3} right after {options.epochs} epochs, up to {rows} rows, {seconds:.1f} s CPU", flush=True)
    print(f"{len(chosen)} queries, {accepted} accepted, {accepted - len(wrong)} right, {len(wrong)} wrong: {wrong}")
    print(f"{len(empty)} right without ever having a row: {', '.join(empty)}")
    for fact, numbers in sorted(refused.items(), key=lambda item: -len(item[1])):
        print(f"{len(numbers):3} refused ({', '.join(numbers)}): {fact}")
    return 1 if wrong or accepted < min(90, len(chosen)) else 0


if __name__ == "__main__":
    sys.exit(main())
