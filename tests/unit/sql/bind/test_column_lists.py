"""Column lists of views, CTEs and subqueries name the columns; a wrong number of names is refused."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from rejoinder.errors import DefinitionConflict, InvalidSql
from rejoinder.testing import Driver


def _driver() -> Driver:
    driver = Driver()
    driver.sql("CREATE STREAM s (k STRING, n INT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND)")
    return driver


def _filled(driver: Driver) -> Driver:
    for n, k in ((1, "a"), (2, "a"), (3, "b")):
        driver.insert("s", {"k": k, "n": n, "ts": datetime(2024, 1, 1, 0, 0, n, tzinfo=timezone.utc)})
    driver.step()
    return driver


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE VIEW v (a, b) AS SELECT k, n + 1 FROM s",
        "CREATE VIEW v (a, b) AS SELECT k AS x, n + 1 AS y FROM s",
        "CREATE VIEW v (a, b) AS SELECT * FROM (SELECT k, n + 1 AS y FROM s) AS q",
        "CREATE VIEW v (a, b) AS SELECT k AS b, n + 1 AS a FROM s",
        "CREATE VIEW v (a, b) AS SELECT k, n + 1 FROM s UNION ALL SELECT k, n FROM s WHERE n > 9",
        "CREATE VIEW v AS WITH t (a, b) AS (SELECT k, n + 1 FROM s) SELECT * FROM t",
        "CREATE VIEW v AS WITH t (a, b) AS (SELECT * FROM (SELECT k, n + 1 AS x FROM s) q) SELECT a, b FROM t",
        "CREATE VIEW v AS SELECT * FROM (SELECT k, n + 1 FROM s) AS t (a, b)",
    ],
)
def test_a_column_list_names_the_columns(definition: str) -> None:
    driver = _driver()
    driver.sql(definition)
    _filled(driver)
    rows = sorted(driver.table("v"), key=lambda row: row["b"])
    assert rows == [{"a": "a", "b": 2}, {"a": "a", "b": 3}, {"a": "b", "b": 4}]
    assert sorted(driver.sql("SELECT b FROM v WHERE a = 'a'"), key=str) == [{"b": 2}, {"b": 3}]


def test_a_listed_view_is_read_by_others_and_survives_a_restart(tmp_path: Path) -> None:
    driver = Driver(store=tmp_path / "state")
    driver.sql(
        "CREATE STREAM s (k STRING, n INT, ts TIMESTAMP);"
        "CREATE VIEW totals (key, total) AS SELECT k AS x, SUM(n) FROM s GROUP BY x HAVING COUNT(*) > 0;"
        "CREATE VIEW large (name) AS SELECT key FROM totals WHERE total > 2"
    )
    _filled(driver)
    driver.restart()
    assert sorted(row["name"] for row in driver.table("large")) == ["a", "b"]
    assert driver.catalog.get("totals").schema.names == ["key", "total"]


def test_the_names_of_a_list_can_be_used_in_emit() -> None:
    driver = _driver()
    driver.sql(
        "CREATE VIEW v (w, n) AS SELECT TUMBLE(ts, INTERVAL 1 SECOND), COUNT(*) FROM s GROUP BY 1 "
        "EMIT WHEN WATERMARK PAST w.end"
    )
    assert [row["w"]["start"].second for row in _filled(driver).table("v")] == [1]


def test_a_wrong_number_of_names_is_refused() -> None:
    driver = _driver()
    with pytest.raises(InvalidSql, match="`v` lists 1 column name, and its query has 2"):
        driver.sql("CREATE VIEW v (a) AS SELECT k, n FROM s")
    with pytest.raises(InvalidSql, match="`t` lists 3 column names, and its query has 2"):
        driver.sql("CREATE VIEW v AS WITH t (a, b, c) AS (SELECT k, n FROM s) SELECT a FROM t")
    with pytest.raises(InvalidSql, match="column `a` appears twice"):
        driver.sql("CREATE VIEW v (a, A) AS SELECT k, n FROM s")


def test_a_list_belongs_to_the_definition() -> None:
    from rejoinder.engine.definitions.definition_statements import is_defined
    from rejoinder.sql.statements.statement_parser import CreateView, parse_statements

    driver = _driver()
    driver.sql("CREATE VIEW v (a, b) AS SELECT k, n FROM s")
    (same,) = parse_statements("CREATE VIEW v (a, b) AS SELECT k, n FROM s")
    (other,) = parse_statements("CREATE VIEW v (a, c) AS SELECT k, n FROM s")
    assert isinstance(same, CreateView) and is_defined(driver.catalog, same)
    assert isinstance(other, CreateView)
    with pytest.raises(DefinitionConflict):
        is_defined(driver.catalog, other)
