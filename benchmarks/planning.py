"""What it costs to plan joins of many inputs: CPU seconds of CREATE VIEW, in the test driver, without Spark.

python -m benchmarks.planning
"""

from __future__ import annotations

import time
from collections.abc import Callable

from rejoinder.testing import Driver

SIZES = (8, 16, 32, 64)


def chain(inputs: int) -> tuple[list[str], str]:
    """Each input is joined with the one before it."""
    sources = [f"CREATE STREAM s{i} (a{i} BIGINT, b{i} BIGINT, v{i} BIGINT)" for i in range(inputs)]
    joins = " ".join(f"JOIN s{i} ON s{i - 1}.b{i - 1} = s{i}.a{i}" for i in range(1, inputs))
    return sources, f"SELECT {', '.join(f'v{i}' for i in range(inputs))} FROM s0 {joins}"


def star(inputs: int) -> tuple[list[str], str]:
    """A stream is joined with tables by their primary keys."""
    tables = [f"CREATE TABLE s{i} (a{i} BIGINT, v{i} BIGINT, PRIMARY KEY (a{i}))" for i in range(1, inputs)]
    facts = f"CREATE STREAM s0 ({', '.join(f'k{i} BIGINT' for i in range(inputs))})"
    joins = " ".join(f"JOIN s{i} ON s0.k{i} = s{i}.a{i}" for i in range(1, inputs))
    return [facts, *tables], f"SELECT k0, {', '.join(f'v{i}' for i in range(1, inputs))} FROM s0 {joins}"


def self_join(inputs: int) -> tuple[list[str], str]:
    """A stream is joined with itself, each row with its children."""
    joins = " ".join(f"JOIN s s{i} ON s{i - 1}.k = s{i}.parent" for i in range(1, inputs))
    shown = ", ".join(f"s{i}.v AS v{i}" for i in range(inputs))
    return ["CREATE STREAM s (k BIGINT, parent BIGINT, v BIGINT)"], f"SELECT {shown} FROM s s0 {joins}"


SHAPES: dict[str, Callable[[int], tuple[list[str], str]]] = {"chain": chain, "star": star, "self": self_join}


def seconds(shape: str, inputs: int) -> float:
    """CPU seconds in which a view on so many inputs is created."""
    sources, query = SHAPES[shape](inputs)
    driver = Driver()
    driver.sql("; ".join(sources))
    start = time.process_time()
    driver.sql(f"CREATE VIEW v AS {query}")
    return time.process_time() - start


if __name__ == "__main__":
    seconds("chain", 2)  # loads what is loaded on first use
    print("inputs " + "".join(f"{shape:>9}" for shape in SHAPES))
    for inputs in SIZES:
        print(f"{inputs:>6} " + "".join(f"{seconds(shape, inputs):>7.2f} s" for shape in SHAPES), flush=True)
