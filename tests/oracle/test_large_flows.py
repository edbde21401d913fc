"""A few flows large enough to merge with the real constants: levels, pieces, splits of a hash range."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pyarrow as pa
import pytest

from rejoinder.store.runs import spine
from rejoinder.testing import Driver
from tests.deep import DEEP, one_seed
from tests.oracle.model import bag, frozen

EPOCHS, ROWS = 12, 3_000
JOIN = "SELECT a.k, a.x, t.v FROM a JOIN t ON a.k = t.id"
DISTINCT = "SELECT DISTINCT t.v FROM a JOIN t ON a.k = t.id WHERE a.x < 3"


@pytest.mark.parametrize("piece_bytes", [pytest.param(spine.PIECE_BYTES, marks=DEEP), 40_000])
def test_a_large_flow_equals_the_batch_query(monkeypatch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    monkeypatch.setattr(spine, "PIECE_BYTES", piece_bytes)
    monkeypatch.setattr(spine, "SMALLEST_LEVEL_ROWS", 1024)
    chance = random.Random(f"{one_seed()} {piece_bytes}")
    driver = Driver(parallelism=2)
    driver.sql("CREATE CHANGELOG a (k INT, x INT); CREATE TABLE t (id BIGINT, v STRING, PRIMARY KEY (id))")
    driver.sql(f"CREATE VIEW j AS {JOIN}; CREATE VIEW d AS {DISTINCT}")
    held: list[tuple[int, int]] = []
    table: dict[int, str] = {}
    summed: dict[str, Counter[str]] = {"j": Counter(), "d": Counter()}
    for epoch in range(EPOCHS):
        new = [(chance.randrange(4_000), chance.randrange(10)) for _ in range(ROWS)]
        chance.shuffle(held)
        gone, held = held[: ROWS // 3], held[ROWS // 3 :] + new
        driver.insert("a", *({"k": k, "x": x} for k, x in new))
        driver.delete("a", *({"k": k, "x": x} for k, x in gone))
        for _ in range(ROWS // 10):
            key, value = chance.randrange(4_000), f"value {chance.randrange(50)}"
            if chance.random() < 0.2:
                driver.delete("t", {"id": key})
                table.pop(key, None)
            else:
                driver.insert("t", {"id": key, "v": value})
                table[key] = value
        for view, changes in driver.step().items():
            for row, diff in changes:
                summed[view][frozen(row)] += diff
        if epoch == EPOCHS // 2:
            driver.restart(parallelism=3)
    oracle = duckdb.connect(":memory:")
    oracle.register("a", pa.table({"k": [k for k, _ in held], "x": [x for _, x in held]}))
    oracle.register("t", pa.table({"id": list(table), "v": list(table.values())}))
    for view, query in (("j", JOIN), ("d", DISTINCT)):
        result = oracle.execute(query)
        names = [column[0] for column in result.description or ()]
        wanted = bag(dict(zip(names, row, strict=True)) for row in result.fetchall())
        assert bag(driver.table(view)) == wanted
        assert Counter({row: count for row, count in summed[view].items() if count}) == wanted
    arrangements = {row["name"]: row for row in driver.arrangements()}
    assert max(row["runs"] for row in arrangements.values()) < 30
