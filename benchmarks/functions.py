"""Evaluate every function of the registry on N rows, and compare each with `upper` in the same run.

    python -m benchmarks.functions --n 1000000

Expressions come from the corpus that Spark answers (`tests/spark/*expressions.yaml`): for each function, the first one
that starts with its name and fails on no row. The times are CPU seconds. `*` marks what is evaluated outside DuckDB.
"""

from __future__ import annotations

import argparse
import re
import sys
import time

import pyarrow as pa

from rejoinder.errors import RejoinderError
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.functions.function_registry import FUNCTIONS
from tests.spark.awkward_values import awkward_table
from tests.spark.conformance import TableScope, parsed
from tests.spark.corpus import CLOSE, EQUAL

LIMIT = 20
BASELINE = "upper"
"""One of the cheapest functions that makes a text; cheaper ones do not touch every byte."""


def main() -> None:
    """Print the functions with their ratios to `upper`, the slowest first, and those that no expression evaluates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=1_000_000)
    rows = parser.parse_args().n
    small = awkward_table()
    table = pa.concat_tables([small] * -(-rows // small.num_rows)).slice(0, rows).combine_chunks()
    outside = {name for function in FUNCTIONS if function.outside_duckdb for name in function.signatures}
    times = {}
    chosen = _expressions(small)
    for name, (text, expression) in chosen.items():
        start = time.process_time()
        project(table, [("value", expression)])
        times[name] = time.process_time() - start, text
    least = times[BASELINE][0]
    for name, (seconds, text) in sorted(times.items(), key=lambda item: -item[1][0]):
        ratio, mark = seconds / least, "*" if name in outside else " "
        sys.stdout.write(f"{seconds:8.3f} s {ratio:7.1f} {mark} {name:24} {text}\n")
    slow = [name for name, (seconds, _) in times.items() if seconds > LIMIT * least]
    missing = sorted({name for function in FUNCTIONS for name in function.signatures} - chosen.keys())
    sys.stdout.write(f"{len(times)} functions on {rows:,} rows; {len(slow)} over {LIMIT} times `{BASELINE}`\n")
    sys.stdout.write(f"without an expression that fails on no row: {', '.join(missing)}\n")


def _expressions(table: pa.Table) -> dict[str, tuple[str, Expression]]:
    names = {name for function in FUNCTIONS for name in function.signatures}
    scope, chosen = TableScope(table.schema), dict[str, tuple[str, Expression]]()
    for text in (text for texts in (*EQUAL.values(), CLOSE) for text in texts):
        call = re.match(r"[a-z_0-9]+(?=\()", text)
        if call is None or call[0] not in names or call[0] in chosen:
            continue
        try:
            expression = compile_expression(parsed(text), scope)
            if expression.columns:
                project(table, [("value", expression)])
                chosen[call[0]] = text, expression
        except RejoinderError:
            continue
    return chosen


if __name__ == "__main__":
    main()
