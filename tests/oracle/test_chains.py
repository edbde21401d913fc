"""Chains of bounded joins: orders, deliveries, returns. In the end the batch answer of what was on time; no state."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.testing import Driver
from tests.oracle.budget import budget

EVER = 10**6
FIRST = "o.id = d.id AND d.t BETWEEN o.t - 2 AND o.t + 4"
SECOND = {"by the order": "r.t BETWEEN v.ot AND v.ot + 7", "by the delivery": "r.t BETWEEN v.dt AND v.dt + 3"}
KINDS = [(one, two) for one in ("", "LEFT") for two in ("", "LEFT", "LEFT SEMI", "LEFT ANTI")] + [("FULL", "")]


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize(("below", "above"), KINDS, ids=[f"{a or 'INNER'} then {b or 'INNER'}" for a, b in KINDS])
@budget(1)
@given(seed=st.integers(0, 2**32))
def test_the_end_is_the_batch_answer_of_what_was_on_time(below: str, above: str, second: str, seed: int) -> None:
    pick = random.Random(seed)
    # no time is known of every row of a FULL join, so that it is never final
    form = "changes" if below == "FULL" else pick.choice(["view", "subquery", "changes"])
    lower = f"SELECT coalesce(o.id, d.id) AS id, o.t AS ot, d.t AS dt FROM o {below} JOIN d ON {FIRST}"
    returned = "" if above in ("LEFT SEMI", "LEFT ANTI") else ", r.t AS rt"
    upper = f"SELECT v.id, v.ot, v.dt{returned} FROM {{}} {above} JOIN r ON v.id = r.id AND {SECOND[second]}"
    final = "" if form == "changes" else " EMIT FINAL"
    driver, oracle = Driver(parallelism=pick.choice([1, 2, 7])), duckdb.connect()
    for name in "odr":
        driver.sql(f"CREATE STREAM {name} (id INT, t BIGINT, WATERMARK t)")
        oracle.execute(f"CREATE TABLE {name} (id INT, t BIGINT)")
    if form == "subquery":
        driver.sql(f"CREATE VIEW w AS {upper.format(f'({lower}) v')}{final}")
    else:
        driver.sql(f"CREATE VIEW v AS {lower}{final}")
        driver.sql(f"CREATE VIEW w AS {upper.format('v')}{final}")
    marks, out = dict.fromkeys("odr", -1_000), Counter[tuple[Any, ...]]()

    def step() -> None:
        for row, diff in driver.step()["w"]:
            assert diff > 0 or not final, "a final row is never retracted"
            out[tuple(row.values())] += diff

    for number in range(9):
        moved = {}
        for name in "odr":
            for _ in range(pick.randrange(4)):
                row: dict[str, Any] = {"id": pick.choice([None, 1, 2]), "t": 3 * number + pick.randrange(-10, 4)}
                driver.insert(name, row)
                if row["t"] >= marks[name]:
                    oracle.execute(f"INSERT INTO {name} VALUES (?, ?)", [*row.values()])
            if pick.random() < 0.6:
                moved[name] = max(marks[name], 3 * number - 10) + pick.randrange(1, 6)
                driver.watermark(name, moved[name])
        step()
        marks |= moved
        if pick.random() < 0.2:
            driver.restart(parallelism=pick.choice([1, 2, 7]))
    for name in "odr":
        driver.watermark(name, EVER)
    step()
    batch = upper.format(f"({lower}) v").replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
    assert +out == Counter(oracle.execute(batch).fetchall()) and min(out.values(), default=0) >= 0
    if below != "FULL":
        parts = driver._engine.version.state.arrangements.values()
        assert sum(ref.rows for spines in parts for part in spines for ref in part.refs) == 0
