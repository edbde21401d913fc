"""Several definitions at once: all or none, changed freely before the first row, dropped with what reads them."""

from __future__ import annotations

import pytest

from rejoinder.engine.definitions.definition_batch import define_all, planned
from rejoinder.errors import DefinitionConflict, EvaluationError, PlanningError, UnknownName
from rejoinder.sql.statements.statement_parser import parse_statements
from rejoinder.testing import Driver

SHOP = """
CREATE STREAM orders (id BIGINT, item STRING);
CREATE TABLE prices (item STRING, price BIGINT, PRIMARY KEY (item));
CREATE VIEW priced AS SELECT id, price FROM orders JOIN prices USING (item);
CREATE VIEW total AS SELECT COUNT(*) AS n FROM priced;
"""


def names(driver: Driver) -> list[str]:
    return [relation.name for relation in driver.catalog.relations]


def test_an_error_in_a_later_statement_leaves_nothing_behind() -> None:
    driver = Driver()
    with pytest.raises(UnknownName, match="`prise`"):
        driver.sql(SHOP + "CREATE VIEW wrong AS SELECT prise FROM prices")
    assert driver._engine.version.manifest is None and names(driver) == []
    driver.sql(SHOP + "CREATE VIEW right AS SELECT price FROM prices")
    assert names(driver) == ["orders", "prices", "priced", "total", "right"]


def test_definitions_after_a_question_are_checked_before_any_is_committed() -> None:
    driver = Driver()
    with pytest.raises(UnknownName):
        driver.sql("CREATE STREAM s (k INT); SHOW SOURCES; CREATE VIEW v AS SELECT nope FROM s")
    assert driver._engine.version.manifest is None


def test_definitions_of_one_text_are_one_commit() -> None:
    driver = Driver()
    driver.sql(SHOP)
    assert driver._engine.version.manifest is not None and driver._engine.version.manifest.version == 0


def test_a_name_twice_in_one_text_is_a_conflict() -> None:
    with pytest.raises(DefinitionConflict, match="`V` is already defined"):
        Driver().sql("CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s; CREATE VIEW V AS SELECT k FROM s")


def test_a_definition_without_committed_rows_may_change() -> None:
    driver = Driver()
    driver.sql(SHOP)
    with pytest.warns(UserWarning, match="replaced `priced`: no row of its sources was committed yet"):
        driver.sql("CREATE VIEW priced AS SELECT id, price * 2 AS price FROM orders JOIN prices USING (item)")
    with pytest.warns(UserWarning, match="replaced `orders`"):
        driver.sql("CREATE STREAM orders (id BIGINT, item STRING, extra INT)")
    driver.sql("CREATE STREAM orders (id BIGINT, item STRING, extra INT)")  # the same again: nothing to do
    driver.insert("orders", {"id": 1, "item": "tea", "extra": 5})
    driver.insert("prices", {"item": "tea", "price": 4})
    driver.step()
    assert driver.table("priced") == [{"id": 1, "price": 8}] and driver.table("total") == [{"n": 1}]
    driver.restart()
    with pytest.raises(DefinitionConflict, match="`priced` differs from the definition"):
        driver.sql("CREATE VIEW priced AS SELECT id FROM orders")


def test_one_source_with_rows_is_enough_to_refuse_a_change() -> None:
    driver = Driver()
    driver.sql(SHOP)
    driver.insert("prices", {"item": "tea", "price": 4})
    driver.step()
    with pytest.warns(UserWarning, match="replaced `orders`"):
        driver.sql("CREATE STREAM orders (id INT, item STRING)")
    for text in ("CREATE VIEW priced AS SELECT 1 AS x FROM orders", "CREATE TABLE prices (item STRING PRIMARY KEY)"):
        with pytest.raises(DefinitionConflict):
            driver.sql(text)


def test_rows_that_were_deleted_again_count_as_committed() -> None:
    driver = Driver()
    driver.sql("CREATE CHANGELOG c (k INT); CREATE VIEW v AS SELECT k FROM c")
    driver.insert("c", {"k": 1})
    driver.step()
    driver.delete("c", {"k": 1})
    driver.step()
    driver.restart()
    with pytest.raises(DefinitionConflict):
        driver.sql("CREATE VIEW v AS SELECT k + 1 AS k FROM c")


def test_an_epoch_that_failed_has_committed_nothing() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k INT); CREATE VIEW v AS SELECT 100 DIV k AS x FROM s")
    driver.insert("s", {"k": 0})
    with pytest.raises(EvaluationError):
        driver.step()
    with pytest.warns(UserWarning, match="replaced `v`"):
        driver.sql("CREATE VIEW v AS SELECT k AS x FROM s")
    driver.insert("s", {"k": 0})
    driver.step()
    assert driver.table("v") == [{"x": 0}]


def test_a_view_that_held_a_row_before_the_first_input_is_replaced_with_its_state() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k INT); CREATE STREAM other (k INT); CREATE VIEW n AS SELECT COUNT(*) AS c FROM s")
    driver.sql("CREATE VIEW o AS SELECT k FROM other; CREATE VIEW m AS SELECT c + 1 AS d FROM n")
    driver.insert("other", {"k": 1})
    driver.step()
    assert driver.table("m") == [{"d": 1}]
    with pytest.warns(UserWarning, match="replaced `n`"):
        driver.sql("CREATE VIEW n AS SELECT COUNT(*) + 10 AS c FROM s")
    assert driver.table("n") == [{"c": 10}] and driver.table("m") == [{"d": 11}]
    driver.restart()
    driver.insert("s", {"k": 1})
    driver.step()
    assert driver.table("m") == [{"d": 12}] and driver.table("o") == [{"k": 1}]


def test_what_reads_a_changed_definition_must_still_fit() -> None:
    driver = Driver()
    driver.sql(SHOP)
    before = driver._engine.version.manifest
    with pytest.raises(DefinitionConflict, match="`priced` does not fit the new definition of `prices`") as raised:
        driver.sql("CREATE TABLE prices (item STRING, cents BIGINT, PRIMARY KEY (item))")
    assert raised.value.detail == "there is no column `price`"
    assert driver._engine.version.manifest is before and names(driver) == ["orders", "prices", "priced", "total"]
    with pytest.warns(UserWarning, match="replaced `prices`, `priced`"):
        driver.sql(
            "CREATE TABLE prices (item STRING, cents BIGINT, PRIMARY KEY (item));"
            "CREATE VIEW priced AS SELECT id, cents AS price FROM orders JOIN prices USING (item)"
        )
    assert sorted(names(driver)) == ["orders", "priced", "prices", "total"]


def test_a_dropped_source_that_is_created_again_in_one_text_starts_empty() -> None:
    driver = Driver()
    driver.sql(SHOP)
    driver.insert("orders", {"id": 1, "item": "tea"})
    driver.insert("prices", {"item": "tea", "price": 4})
    driver.step()
    driver.sql(f"DROP STREAM orders CASCADE; DROP TABLE prices; {SHOP}")
    assert driver.table("priced") == [] and driver.table("total") == [{"n": 0}]
    assert driver._engine.version.fed == set()
    driver.insert("orders", {"id": 1, "item": "tea"})
    driver.step()
    assert driver.table("priced") == []


def test_a_failure_after_the_removal_leaves_the_engine_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.sql(SHOP)
    driver.insert("orders", {"id": 1, "item": "tea"})
    driver.insert("prices", {"item": "tea", "price": 4})
    driver.step()
    engine = driver._engine

    def refuse(*_: object, **__: object) -> None:
        raise PlanningError("no")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "_commit", refuse)
        with pytest.raises(PlanningError, match="no"):
            driver.sql("DROP VIEW total; CREATE VIEW total AS SELECT COUNT(*) AS n, 1 AS m FROM priced")
    driver.insert("orders", {"id": 2, "item": "tea"})
    driver.step()
    assert driver.table("total") == [{"n": 2}]


def test_what_reads_a_changed_definition_keeps_all_that_it_says() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k INT); CREATE VIEW v (a, b) OPTIONS (max_state_rows '5') AS SELECT k, k + 1 FROM s")
    before = driver.catalog.get("v")
    with pytest.warns(UserWarning, match="replaced `s`"):
        driver.sql("CREATE STREAM s (k INT, more STRING)")
    assert driver.catalog.get("v") == before


def test_drop_cascade_takes_what_reads_it() -> None:
    driver = Driver()
    driver.sql(SHOP)
    driver.sql("CREATE VIEW apart AS WITH orders AS (SELECT item FROM prices) SELECT item FROM orders")
    driver.sql("CREATE INDEX by_price ON priced (price); CREATE SINK out FROM total USING console")
    with pytest.raises(DefinitionConflict, match="`orders` is read by view `priced`") as raised:
        driver.sql("DROP STREAM orders RESTRICT")
    assert raised.value.hint == "DROP VIEW priced first, or DROP STREAM orders CASCADE"
    batch = define_all(driver._engine, parse_statements("DROP STREAM orders CASCADE"))  # type: ignore[arg-type]
    assert batch.dropped == ["orders", "priced", "total", "by_price", "out"]
    assert names(driver) == ["prices", "apart"]
    assert not driver.catalog.sinks and not driver.catalog.indexes


def test_drop_by_name_from_python() -> None:
    driver = Driver()
    driver.sql(SHOP)
    driver.sql("CREATE INDEX by_price ON priced (price); CREATE SINK out FROM total USING console")
    with pytest.raises(DefinitionConflict):
        driver.drop("priced")
    assert driver.drop("by_price") == ["by_price"] and driver.drop("OUT") == ["out"]
    assert driver.drop("priced", cascade=True) == ["priced", "total"]
    with pytest.raises(UnknownName, match="there is no relation, sink or index `pricess`") as raised:
        driver.drop("pricess")
    assert raised.value.hint == "did you mean `prices`?"


def test_a_file_that_is_run_again_changes_nothing() -> None:
    driver = Driver()
    driver.sql(SHOP)
    statements = parse_statements(SHOP)
    batch = planned(driver._engine, statements, is_rerun=True)  # type: ignore[arg-type]
    assert batch.catalog == driver.catalog and not batch.created and not batch.notes
