"""Rounds: the result does not depend on how input is cut into splits, chunks, payloads and buckets."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.runtime import bucket_rounds, scan
from rejoinder.testing import Driver

VIEWS = """
    CREATE CHANGELOG a (k INT, s STRING);
    CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id));
    CREATE VIEW j AS SELECT a.s, t.v FROM a JOIN t ON a.k = t.id;
    CREATE VIEW d AS SELECT DISTINCT s FROM a;
    CREATE VIEW u AS SELECT k, s FROM a WHERE k > 3 UNION ALL SELECT id, v FROM t
"""


def played(parallelism: int = 1) -> list[Any]:
    driver = Driver(parallelism=parallelism)
    driver.sql(VIEWS)
    result = []
    for epoch in range(4):
        driver.insert("a", *({"k": k % 7, "s": f"{k}-{epoch % 2}"} for k in range(40)))
        driver.insert("t", *({"id": k % 5, "v": f"{k}"} for k in range(epoch, 30)))
        driver.delete("t", {"id": epoch})
        if epoch == 2:
            driver.delete("a", *({"k": k % 7, "s": f"{k}-0"} for k in range(40)))
        result.append(driver.step())
    driver.sql("CREATE VIEW late AS SELECT a.k, a.s, t.v FROM a JOIN t ON a.k = t.id WHERE a.k < 4")
    return [*result, driver.table("late"), [row["s"] for row in driver.stream("j")]]


EXPECTED = played()


@pytest.mark.parametrize("parallelism", [2, 3, 16])
def test_buckets_make_no_difference(parallelism: int) -> None:
    assert played(parallelism) == EXPECTED


@pytest.mark.parametrize("rows", [1, 7])
def test_chunks_make_no_difference(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(scan, "CHUNK_ROWS", rows)
    assert played(2) == EXPECTED


def test_payloads_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_rounds, "PAYLOAD_BYTES", 50)
    assert played(2) == EXPECTED
