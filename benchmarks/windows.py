"""One row into a partition of 1 M rows against one of 1,000: the CPU of an epoch for LAG, RANK <= 10 and LIMIT.

Needs no Java. Each epoch inserts one row, with a key that is spread over the partition. The first epochs after the load
are left out, and so are those that compact runs: the median counts, and the mean is printed beside it. Epochs of the
sizes take turns, so that other load on the machine does not change their ratio. The last column is the CPU of the load
of the largest size, in epochs of 100,000 rows; most of it is the Driver's, which returns changes as sorted Python rows.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

from rejoinder.testing import Driver

SIZES = (1_000, 1_000_000)
EPOCHS = 60
LEFT_OUT = 10
QUERIES = {
    "LAG": "SELECT id, LAG(x) OVER (PARTITION BY g ORDER BY x) AS before FROM t",
    "RANK <= 10": "SELECT id, x FROM t QUALIFY RANK() OVER (PARTITION BY g ORDER BY x) <= 10",
    "LIMIT 10": "SELECT id, x FROM t ORDER BY x LIMIT 10",
    "ROWS 5 PRECEDING": "SELECT id, SUM(x) OVER (PARTITION BY g ORDER BY x ROWS 5 PRECEDING) AS s FROM t",
}


def loaded(query: str, size: int, choice: random.Random) -> tuple[Driver, float]:
    """A view over a partition of so many rows, and the CPU seconds of the epochs that loaded it."""
    driver = Driver(parallelism=1)
    driver.sql("CREATE STREAM t (id BIGINT, g INT, x BIGINT)")
    driver.sql(f"CREATE VIEW v AS {query}")
    seconds = 0.0
    for start in range(0, size, 100_000):
        driver.insert("t", *rows(range(start, min(start + 100_000, size)), choice))
        seconds += step_seconds(driver)
    return driver, seconds


def step_seconds(driver: Driver) -> float:
    """Commit an epoch, and return its CPU seconds."""
    start_time = time.process_time()
    driver.step()
    return time.process_time() - start_time


def epochs(query: str, sizes: Sequence[int]) -> tuple[list[list[float]], float]:
    """The CPU seconds of epochs that insert one row each, by size, and of the load of the last size."""
    choice = random.Random(1)
    drivers, loads = zip(*(loaded(query, size, choice) for size in sizes), strict=True)
    measured: list[list[float]] = [[] for _ in sizes]
    for number in range(EPOCHS):
        for driver, size, times in zip(drivers, sizes, measured, strict=True):
            driver.insert("t", *rows(range(size + number, size + number + 1), choice))
            times.append(step_seconds(driver))
    return [times[LEFT_OUT:] for times in measured], loads[-1]


def rows(ids: range, choice: random.Random) -> Iterator[dict[str, int]]:
    """Rows of one partition, in no order."""
    return ({"id": number, "g": 1, "x": choice.randrange(1 << 40)} for number in ids)


def main() -> None:
    """Measure and print a table."""
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    header = " | ".join(f"{size:,} rows, ms (mean)" for size in sizes)
    print(f"query | {header} | ratio | load, µs a row")
    for name, query in QUERIES.items():
        results, load = epochs(query, sizes)
        medians = [statistics.median(result) * 1e3 for result in results]
        means = [statistics.fmean(result) * 1e3 for result in results]
        cells = " | ".join(f"{median:.2f} ({mean:.2f})" for median, mean in zip(medians, means, strict=True))
        print(f"{name} | {cells} | {medians[-1] / medians[0]:.2f} | {load / sizes[-1] * 1e6:.1f}", flush=True)


if __name__ == "__main__":
    main()
