"""One row into a partition of 1 M rows against one of 1,000: the CPU of an epoch for LAG, RANK <= 10 and LIMIT.

Needs no Java. Each epoch inserts one row, with a key that is spread over the partition. The first epochs after the load
are left out, and so are those that compact runs: the median counts, and the mean is printed beside it. Epochs of the
sizes take turns, so that other load on the machine does not change their ratio.
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


def loaded(query: str, size: int, choice: random.Random) -> Driver:
    """A view over a partition of so many rows."""
    driver = Driver(parallelism=1)
    driver.sql("CREATE STREAM t (id BIGINT, g INT, x BIGINT)")
    driver.sql(f"CREATE VIEW v AS {query}")
    for start in range(0, size, 100_000):
        driver.insert("t", *rows(range(start, min(start + 100_000, size)), choice))
        driver.step()
    return driver


def epochs(query: str, sizes: Sequence[int]) -> list[list[float]]:
    """The CPU seconds of epochs that insert one row each, by size."""
    choice = random.Random(1)
    drivers = [loaded(query, size, choice) for size in sizes]
    measured: list[list[float]] = [[] for _ in sizes]
    for number in range(EPOCHS):
        for driver, size, times in zip(drivers, sizes, measured, strict=True):
            driver.insert("t", *rows(range(size + number, size + number + 1), choice))
            start_time = time.process_time()
            driver.step()
            times.append(time.process_time() - start_time)
    return [times[LEFT_OUT:] for times in measured]


def rows(ids: range, choice: random.Random) -> Iterator[dict[str, int]]:
    """Rows of one partition, in no order."""
    return ({"id": number, "g": 1, "x": choice.randrange(1 << 40)} for number in ids)


def main() -> None:
    """Measure and print a table."""
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    header = " | ".join(f"{size:,} rows, ms (mean)" for size in sizes)
    print(f"query | {header} | ratio")
    for name, query in QUERIES.items():
        results = epochs(query, sizes)
        medians = [statistics.median(result) * 1e3 for result in results]
        means = [statistics.fmean(result) * 1e3 for result in results]
        cells = " | ".join(f"{median:.2f} ({mean:.2f})" for median, mean in zip(medians, means, strict=True))
        print(f"{name} | {cells} | {medians[-1] / medians[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
