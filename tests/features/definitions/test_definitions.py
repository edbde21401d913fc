"""Views that come and go: what they add, what they share, what they free, and that they are right from the start."""

from __future__ import annotations

import pytest

from rejoinder.engine.collector import KEEP_VERSIONS
from rejoinder.errors import DefinitionConflict, InvalidSql, UnknownName
from rejoinder.testing import Driver

SOURCES = """
    CREATE CHANGELOG a (k INT, x INT);
    CREATE CHANGELOG b (k INT, y INT);
    CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id))
"""
JOIN = "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k"


@pytest.fixture
def driver() -> Driver:
    driver = Driver(parallelism=2)
    driver.sql(SOURCES)
    return driver


def fill(driver: Driver, rows: int = 20) -> None:
    driver.insert("a", *({"k": k, "x": k} for k in range(rows)))
    driver.insert("b", *({"k": k, "y": -k} for k in range(rows)))
    driver.insert("t", *({"id": k, "v": str(k)} for k in range(rows)))
    driver.step()


def names(driver: Driver) -> set[str]:
    return {row["name"] for row in driver.arrangements()}


def files(driver: Driver) -> set[str]:
    return {entry.name for entry in driver._store.entries() if entry.name.startswith("runs/")}


def test_a_second_view_on_the_same_keys_adds_no_arrangement(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    fill(driver)
    before = driver.arrangements()
    driver.sql(f"CREATE VIEW w AS {JOIN} WHERE a.x > 3")
    after = driver.arrangements()
    assert [row["name"] for row in before] == [row["name"] for row in after]
    assert [row["bytes"] for row in before] == [row["bytes"] for row in after]
    assert [row["used_by"] for row in after if row["relation"] == "a"] == [["v", "w"]]


def test_a_new_view_is_right_at_once_and_from_its_first_epoch(driver: Driver) -> None:
    fill(driver)
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    assert len(driver.table("v")) == 20
    driver.insert("a", {"k": 1, "x": 100})
    assert driver.step()["v"] == [({"x": 100, "y": -1}, 1)]
    driver.sql("CREATE VIEW w AS SELECT a.x, t.v FROM a JOIN t ON a.x = t.id")
    assert len(driver.table("w")) == 20
    assert {"a[x]", "t[id]"} <= names(driver)
    driver.insert("t", {"id": 100, "v": "late"})
    assert driver.step()["w"] == [({"x": 100, "v": "late"}, 1)]


def test_dropping_a_view_frees_what_only_it_used(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    fill(driver)
    before, kept_files = names(driver), files(driver)
    driver.sql("CREATE VIEW w AS SELECT DISTINCT a.x, t.v FROM a JOIN t ON a.x = t.id")
    assert "a[x]" in names(driver) and any("distinct" in name for name in names(driver))
    driver.sql("DROP VIEW w")
    assert names(driver) == before
    with pytest.raises(UnknownName):
        driver.table("w")
    for _ in range(KEEP_VERSIONS + 1):
        driver.step()
    assert files(driver) == kept_files


def test_dropping_one_of_two_views_keeps_what_the_other_uses(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}; CREATE VIEW w AS {JOIN}")
    fill(driver)
    before = names(driver)
    driver.sql("DROP VIEW v")
    assert names(driver) == before
    driver.delete("a", {"k": 3, "x": 3})
    assert driver.step()["w"] == [({"x": 3, "y": -3}, -1)]


def test_a_view_dropped_and_made_anew_starts_its_own_history(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    fill(driver)
    driver.sql("DROP VIEW v")
    driver.sql("CREATE VIEW v AS SELECT k FROM a WHERE k < 2")
    assert driver.table("v") == [{"k": 0}, {"k": 1}]
    assert [row["_epoch"] for row in driver.stream("v")] == [0, 0]


def test_an_index_keeps_an_arrangement_that_no_view_uses(driver: Driver) -> None:
    fill(driver)
    driver.sql("CREATE INDEX by_x ON a (x)")
    row = next(row for row in driver.arrangements() if row["name"] == "a[x]")
    assert row["rows"] == 20 and row["used_by"] == ["index"]
    driver.sql("DROP INDEX by_x")
    assert "a[x]" not in names(driver)
    driver.sql("DROP INDEX IF EXISTS by_x")


def test_what_a_view_reads_cannot_be_dropped(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    driver.sql("CREATE VIEW w AS SELECT x FROM v")
    for what, reader in (("CHANGELOG a", "v"), ("VIEW v", "w")):
        with pytest.raises(DefinitionConflict) as raised:
            driver.sql(f"DROP {what}")
        assert raised.value.fact == f"`{what.split()[1]}` is read by view `{reader}`"
        assert raised.value.hint == f"DROP VIEW {reader} first, or DROP {what} CASCADE"
    driver.sql("DROP VIEW w; DROP VIEW v; DROP CHANGELOG a")
    with pytest.raises(UnknownName):
        driver.sql("SELECT * FROM a")


def test_a_refused_definition_changes_nothing(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}")
    fill(driver)
    before = driver._engine.version.manifest
    for text in ("CREATE VIEW v AS SELECT k FROM a", "CREATE VIEW w AS SELECT nope FROM a", "DROP VIEW nope"):
        with pytest.raises((DefinitionConflict, UnknownName)):
            driver.sql(text)
    assert driver._engine.version.manifest is before


@pytest.mark.parametrize("name", ["__hash", "__epoch", "_epoch", "_emit_time", "_Undo", "_diff"])
def test_no_column_of_a_view_is_called_like_those_that_renderings_add(driver: Driver, name: str) -> None:
    with pytest.raises(InvalidSql) as raised:
        driver.sql(f"CREATE VIEW v AS SELECT k AS {name} FROM a")
    assert raised.value.fact == f"column `{name}` of `v` has a reserved name"
    assert raised.value.hint == "give it another name with AS"


def test_definitions_survive_a_restart(driver: Driver) -> None:
    driver.sql(f"CREATE VIEW v AS {JOIN}; CREATE INDEX i ON t (v); CREATE VIEW w AS SELECT DISTINCT x FROM v")
    fill(driver)
    catalog, arrangements, table = driver._engine.version.catalog, names(driver), driver.table("w")
    driver.restart(parallelism=3)
    assert (driver._engine.version.catalog, names(driver), driver.table("w")) == (catalog, arrangements, table)


def test_if_not_exists_takes_the_definition_that_is_there(driver: Driver) -> None:
    driver.sql("CREATE CHANGELOG IF NOT EXISTS a (k INT, x INT)")
    driver.sql(f"CREATE VIEW IF NOT EXISTS v AS {JOIN}; CREATE VIEW IF NOT EXISTS v AS {JOIN}")
    fill(driver)
    with pytest.raises(DefinitionConflict) as raised:
        driver.sql("CREATE CHANGELOG IF NOT EXISTS a (k INT)")
    assert raised.value.detail == "stored: CHANGELOG (k int, x int); given: CHANGELOG (k int)"
