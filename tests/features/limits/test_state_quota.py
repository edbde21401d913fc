"""Limits of state: an epoch that would keep too much for a view fails before its commit, and can be run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.engine.definitions.definition_statements import is_defined
from rejoinder.errors import DefinitionConflict, InvalidSql, LimitReached, PlanningError
from rejoinder.sql.statements.statement_parser import CreateView, parse_statements
from rejoinder.testing import Driver
from tests.kit import flow

SOURCES = "CREATE STREAM a (k INT, t BIGINT, WATERMARK t); CREATE STREAM b (k INT, t BIGINT, WATERMARK t)"
JOIN = "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.t BETWEEN b.t - 5 AND b.t + 5"


def fill(driver: Driver, relation: str, count: int, time: int = 0) -> None:
    driver.insert(relation, *({"k": n, "t": time + n % 3} for n in range(count)))


@pytest.mark.parametrize("parallelism", [1, 3])
def test_an_epoch_that_would_keep_too_many_rows_fails_before_its_commit(parallelism: int) -> None:
    driver = flow(SOURCES, f"CREATE VIEW v OPTIONS (max_state_rows '30') AS {JOIN}", parallelism=parallelism)
    fill(driver, "a", 20)
    fill(driver, "b", 10)
    driver.step()
    driver.insert("b", {"k": 19, "t": 1})
    with pytest.raises(LimitReached) as raised:
        driver.step()
    assert raised.value.fact == "`v` would keep 31 rows of state, most of them of `a`, and the limit is 30"
    assert "`a` 20, `b` 11" in str(raised.value.detail)
    assert driver.epoch == 0 and len(driver.table("v")) == 10
    driver.sql("ALTER VIEW v SET OPTIONS (max_state_rows '31')")
    assert driver.step()["v"] == [({"k": 19}, 1)], "the rows of the epoch that failed come again"
    driver.restart()
    driver.insert("a", {"k": 0, "t": 0})
    with pytest.raises(LimitReached):
        driver.step()


def test_expired_rows_make_room() -> None:
    driver = flow(SOURCES, JOIN, max_state_rows=30)
    fill(driver, "a", 30)
    driver.step()
    driver.watermark("b", 100)
    driver.step()
    fill(driver, "a", 30, time=100)
    driver.step()
    fill(driver, "a", 1, time=100)
    with pytest.raises(LimitReached):
        driver.step()


def test_one_side_that_stalls_lets_the_other_grow_up_to_the_limit() -> None:
    """HZJ-MEM-03."""
    driver = flow(SOURCES, JOIN, max_state_rows=100)
    for epoch in range(15):
        fill(driver, "a", 7, time=epoch)
        driver.watermark("a", epoch)
        if epoch < 14:
            driver.step()
    with pytest.raises(LimitReached, match="`v` would keep 105 rows of state, most of them of `a`"):
        driver.step()
    assert driver.epoch == 13


def test_a_view_may_have_more_or_less_than_the_flow_allows(tmp_path: Path) -> None:
    path = str(tmp_path / "state")
    driver = flow(
        SOURCES, f"CREATE VIEW v AS {JOIN}; CREATE VIEW w OPTIONS (max_state_rows 'none') AS {JOIN}", store=path
    )
    fill(driver, "a", 20)
    driver.step()
    lower = Driver(store=path, max_state_rows=20)
    lower.insert("a", {"k": 1, "t": 1})
    with pytest.raises(LimitReached, match="`v` would keep 21 rows"):
        lower.step()
    lower.sql("DROP VIEW v")
    lower.step()
    with pytest.raises(LimitReached, match="`u` would keep 21 rows"):
        lower.sql(f"CREATE VIEW u OPTIONS (max_state_rows '20') AS {JOIN}")
    assert [view["view"] for view in lower.sql("SHOW VIEWS")] == ["w"]


def test_bytes_groups_distinct_rows_and_what_waits_count() -> None:
    driver = flow(
        SOURCES,
        "CREATE VIEW g AS SELECT k, count(*) AS n FROM a GROUP BY k;"
        "CREATE VIEW d AS SELECT DISTINCT k FROM a;"
        "CREATE VIEW p AS SELECT k, t FROM a EMIT WHEN WATERMARK PAST t",
    )
    fill(driver, "a", 12)
    driver.step()
    for view, kept in (("g", 12), ("d", 12), ("p", 12)):
        driver.sql(f"ALTER VIEW {view} SET OPTIONS (max_state_rows '{kept}')")
        with pytest.raises(LimitReached, match=f"`{view}` would keep {kept} rows of state"):
            driver.sql(f"ALTER VIEW {view} SET OPTIONS (max_state_rows '{kept - 1}')")
    with pytest.raises(
        LimitReached, match=r"`g` would keep [\d,]+ bytes of state, most of them of `aggregate#"
    ) as raised:
        driver.sql("ALTER VIEW g SET OPTIONS (max_state_bytes '100')")
    assert "max_state_bytes" in str(raised.value.hint)


def test_a_view_that_keeps_nothing_has_no_limit_to_reach() -> None:
    driver = flow(SOURCES, "CREATE VIEW big AS SELECT k FROM a WHERE k > 0", max_state_rows=1)
    fill(driver, "a", 50)
    assert len(driver.step()["big"]) == 49


def test_the_error_of_a_file_that_is_run_again_says_how_to_change_options() -> None:
    driver = flow(SOURCES, f"CREATE VIEW v OPTIONS (max_state_rows '5') AS {JOIN}")
    catalog = driver._engine.version.catalog
    (same, other, alter) = parse_statements(
        f"CREATE VIEW v OPTIONS (max_state_rows '5') AS {JOIN}; CREATE VIEW v AS {JOIN};"
        "ALTER VIEW v SET OPTIONS (max_state_bytes '6')"
    )
    assert isinstance(same, CreateView) and is_defined(catalog, same)
    with pytest.raises(DefinitionConflict) as raised:
        is_defined(catalog, other)  # type: ignore[arg-type]
    assert "ALTER VIEW v SET OPTIONS" in str(raised.value.hint)
    assert not is_defined(catalog, alter)  # type: ignore[arg-type]
    driver.sql("ALTER VIEW v SET OPTIONS (max_state_bytes '6')")
    driver.restart()
    assert dict(driver._engine.version.catalog.views[0].options) == {"max_state_rows": "5", "max_state_bytes": "6"}


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("CREATE VIEW w OPTIONS (max_state_row '5') AS SELECT k FROM a", "option `max_state_row` of view `w`"),
        ("CREATE VIEW w OPTIONS (max_state_rows '0') AS SELECT k FROM a", "option `max_state_rows` of view `w` is `0`"),
        ("CREATE VIEW w OPTIONS (max_state_bytes 'many') AS SELECT k FROM a", "is `many`"),
        ("ALTER VIEW a SET OPTIONS (max_state_rows '1')", "`a` is a stream, not a view"),
        ("ALTER VIEW nope SET OPTIONS (max_state_rows '1')", "there is no relation `nope`"),
        ("ALTER TABLE a SET OPTIONS (max_state_rows '1')", "`a` is a stream, not a table"),
    ],
)
def test_what_is_wrong_is_said(text: str, fact: str) -> None:
    with pytest.raises(PlanningError) as raised:
        flow(
            SOURCES,
            JOIN,
        ).sql(text)
    assert fact in str(raised.value) and raised.value.hint


def test_a_limit_is_positive() -> None:
    with pytest.raises(InvalidSql, match="`max_state_bytes` is 0"):
        Driver(max_state_bytes=0)
