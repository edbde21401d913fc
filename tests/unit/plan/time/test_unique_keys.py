"""Keys that the text of a query proves."""

from __future__ import annotations

import pytest

from rejoinder.plan.time.unique_keys import is_unique
from rejoinder.sql.bind.bind_query import bind
from rejoinder.testing import Driver

PROVEN = {
    "SELECT id, v FROM a": "id",
    "SELECT id AS k, v FROM a WHERE v > 1": "k",
    "SELECT id, id AS again FROM a": "again",
    "SELECT v, COUNT(*) AS n FROM a GROUP BY v": "v",
    "SELECT COUNT(*) AS n FROM s": "n",
    "SELECT DISTINCT v, x FROM s": "v x",
    "SELECT v, x FROM s INTERSECT SELECT id, id FROM a": "v x",
    "SELECT v FROM s EXCEPT SELECT id FROM a": "v",
    "SELECT * FROM LATEST(TABLE s, DESCRIPTOR(id))": "id",
    "SELECT a.id, w FROM a JOIN b ON a.v = b.id": "id",
    "SELECT b.id, v FROM a JOIN b ON a.id = b.id": "id",
    "SELECT a.id, b.id AS other FROM a JOIN b ON a.v = b.w": "id other",
    "SELECT a.id, w FROM a LEFT JOIN b ON a.v = b.id": "id",
    "SELECT a.id FROM a LEFT SEMI JOIN s ON a.id = s.id": "id",
    "SELECT id FROM kept": "id",
    "SELECT a.id, n FROM a LEFT JOIN (SELECT v, COUNT(*) AS n FROM s GROUP BY v) AS c ON a.v = c.v": "id",
}
UNPROVEN = {
    "SELECT id, v FROM s": "id",
    "SELECT id AS k, v FROM a": "v",
    "SELECT id % 10 AS id FROM a": "id",
    "SELECT a.id, w FROM a JOIN b ON a.v = b.w": "id",
    "SELECT a.id, w FROM a JOIN b ON b.id = b.w": "id",
    "SELECT b.id, v FROM a LEFT JOIN b ON a.id = b.id": "id",
    "SELECT a.id FROM a FULL JOIN b ON a.id = b.id": "id",
    "SELECT id FROM a UNION ALL SELECT id FROM b": "id",
    "SELECT id FROM a EXCEPT ALL SELECT id FROM b": "id",
    "SELECT v, x, COUNT(*) AS n FROM s GROUP BY v, x": "v",
}


@pytest.mark.parametrize("text", [*PROVEN, *UNPROVEN])
def test_what_is_proven(text: str) -> None:
    driver = Driver()
    driver.sql(
        """CREATE STREAM s (id BIGINT, v BIGINT, x BIGINT); CREATE TABLE a (id BIGINT, v BIGINT, PRIMARY KEY (id));
           CREATE TABLE b (id BIGINT, w BIGINT, PRIMARY KEY (id)); CREATE VIEW kept AS SELECT id FROM a WHERE v = 1"""
    )
    key = {**PROVEN, **UNPROVEN}[text].split()
    assert is_unique(bind(text, driver.catalog), key, driver.catalog) == (text in PROVEN)
