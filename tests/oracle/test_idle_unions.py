"""Random streams that fall idle and come back, below a union and a join: what is out is final, what is late noted.

At the end a view holds the batch result of all rows but those in its late relation, each once, wherever it crashed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

WITHIN = 4
JOIN = f"SELECT b.id, b.t FROM b JOIN c ON b.id = c.id AND c.t BETWEEN b.t - {WITHIN} AND b.t + {WITHIN}"
COUNTED = f"SELECT t, count(*) AS n FROM (SELECT id, t FROM a UNION ALL {JOIN}) AS q GROUP BY t"
SOURCES = ("a", "b", "c")


@dataclass(frozen=True)
class Happening:
    """What happens at a source: rows (times relative to how far it is), a watermark (by how much), or silence."""

    source: str
    kind: str
    times: tuple[int, ...]
    by: int
    steps: bool
    crashes: bool


happenings = st.lists(
    st.builds(
        Happening,
        st.sampled_from(SOURCES),
        st.sampled_from(["rows", "rows", "watermark", "watermark", "idle"]),
        st.lists(st.sampled_from([-4, 0, 0, 4]), min_size=1, max_size=3).map(tuple),
        st.sampled_from([4, 12]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=10,
    max_size=20,
)


def expected(rows: dict[str, list[dict[str, int]]], late: list[dict[str, Any]]) -> Counter[int]:
    """The batch result over the rows that were not late, without pairs that were late for the union."""
    missed = Counter((row["input"], row["row"]) for row in late)

    def kept(name: str, each: list[dict[str, int]]) -> list[dict[str, int]]:
        return [row for row in each if not missed[name, json.dumps(row, separators=(",", ":"))]]

    a, b, c = (kept(name, rows[name]) for name in SOURCES)
    pairs = [one for one in b for other in c if one["id"] == other["id"] and abs(one["t"] - other["t"]) <= WITHIN]
    times = Counter(row["t"] for row in a) + Counter(row["t"] for row in pairs)
    for row in late:
        if row["input"] == "b, c":
            times[json.loads(row["row"])["t"]] -= 1
    return +times


@budget(3, deep=8)
@given(happenings)
def test_final_is_final_and_late_is_noted(steps: list[Happening]) -> None:
    driver = Driver()
    driver.sql("".join(f"CREATE STREAM {name} (id INT, t BIGINT, WATERMARK t);" for name in SOURCES))
    driver.sql(f"CREATE VIEW v AS {COUNTED} EMIT WHEN WATERMARK PAST t")
    rows: dict[str, list[dict[str, int]]] = {name: [] for name in SOURCES}
    at = dict.fromkeys(SOURCES, 0)
    numbers = {"a": 1000, "b": 0, "c": 0}
    for each in steps:
        if each.kind == "rows":
            for time in each.times:  # ids of b and c meet by number; no row comes twice
                numbers[each.source] += 1
                row = {"id": numbers[each.source], "t": max(0, at[each.source] + time)}
                rows[each.source].append(row)
                driver.insert(each.source, row)
        elif each.kind == "watermark":
            at[each.source] += each.by
            driver.watermark(each.source, at[each.source])
        else:
            driver.idle(each.source)
        if each.steps or each.crashes:
            assert all(diff > 0 for _, diff in driver.step()["v"]), "what is out is final"
        if each.crashes:
            driver.restart(parallelism=1 + driver.epoch % 2)
    for name in SOURCES:
        driver.watermark(name, 10_000)
    assert all(diff > 0 for _, diff in driver.step()["v"])
    assert sorted((row["t"], row["n"]) for row in driver.table("v")) == sorted(expected(rows, driver.late("v")).items())
    assert sum(row["rows"] for row in driver.arrangements() if row["relation"].endswith("#on-time")) == 0
