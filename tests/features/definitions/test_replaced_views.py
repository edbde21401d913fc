"""CREATE OR REPLACE VIEW and ALTER VIEW keep state: readers, views above and sinks get the difference as one epoch."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder import errors
from rejoinder.connectors.registry import sink_side
from rejoinder.testing import Driver
from tests.features.definitions.test_completeness import START, bounded, feed

JOIN = "SELECT o.id, o.a, c.n FROM o JOIN c ON o.c = c.c"
TOTALS = "SELECT n, sum(a) AS s FROM v GROUP BY n"
NOON = datetime(2026, 1, 1, 12)


def shop(**options: Any) -> Driver:
    """Orders 0 to 19 of two customers, a join of them, and totals above it."""
    driver = Driver(**options)
    driver.sql("CREATE STREAM o (id BIGINT, c BIGINT, a BIGINT); CREATE TABLE c (c BIGINT PRIMARY KEY, n STRING)")
    driver.sql(f"CREATE VIEW v AS {JOIN} WHERE a > 10; CREATE VIEW w AS {TOTALS}")
    driver.insert("c", {"c": 1, "n": "x"}, {"c": 2, "n": "y"})
    driver.insert("o", *({"id": i, "c": i % 2 + 1, "a": i} for i in range(20)))
    driver.step()
    return driver


def ids(driver: Driver, view: str = "v", **options: Any) -> list[int]:
    return sorted(row["id"] for row in driver.table(view, **options))


def files(driver: Driver) -> dict[str, set[str]]:
    arrangements = driver._engine.version.state.arrangements
    return {name: {ref.name for part in parts for ref in part.refs} for name, parts in arrangements.items()}


def test_a_replacement_is_one_epoch_with_the_difference() -> None:
    driver = shop(parallelism=3)
    before, kept = driver.epoch, files(driver)
    changes = driver.replace("v", f"{JOIN} WHERE a > 15")
    assert driver.epoch == before + 1
    assert {(row["id"], diff) for row, diff in changes["v"]} == {(i, -1) for i in range(11, 16)}
    totals = {(row["n"], row["s"], diff) for row, diff in changes["w"]}
    assert totals == {("x", 60, -1), ("y", 75, -1), ("x", 34, 1), ("y", 36, 1)}
    assert ids(driver) == [16, 17, 18, 19]
    assert ids(driver, as_of=before) == list(range(11, 20)), "the history goes on"
    after = files(driver)
    assert all(after[name] == kept[name] for name in after if name.startswith(("o[", "c["))), "arrangements are kept"
    driver.insert("o", {"id": 100, "c": 1, "a": 100}, {"id": 101, "c": 1, "a": 12})
    assert [(row["id"], diff) for row, diff in driver.step()["v"]] == [(100, 1)]
    driver.restart(parallelism=2)
    assert ids(driver) == [16, 17, 18, 19, 100]


def test_an_equal_definition_is_not_an_epoch() -> None:
    driver = shop()
    before = driver.epoch
    driver.sql(f"CREATE OR REPLACE VIEW v AS {JOIN}   WHERE a > 10")
    other_words = "SELECT p.id, p.a, q.n FROM o AS p INNER JOIN c AS q ON p.c = q.c WHERE p.a > 10"
    driver.sql(f"CREATE OR REPLACE VIEW v AS {other_words}")
    driver.sql("ALTER VIEW v SET OPTIONS (max_state_rows '1000')")
    assert driver.epoch == before
    assert driver.catalog.get("v").query == other_words  # type: ignore[union-attr]


def test_before_the_first_epoch_there_is_no_difference() -> None:
    driver = Driver()
    driver.sql(
        "CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT count(*) AS n FROM s; CREATE VIEW w AS SELECT n FROM v"
    )
    assert driver.replace("v", "SELECT count(*) + 1 AS n FROM s") == {}
    assert driver.epoch == -1
    driver.insert("s", {"k": 1})
    driver.step()
    assert [row["n"] for row in driver.table("w")] == [2]


def test_all_statements_of_a_text_are_one_epoch() -> None:
    driver = shop()
    before = driver.epoch
    driver.sql(
        f"CREATE OR REPLACE VIEW v AS {JOIN} WHERE a > 17; CREATE VIEW new AS SELECT id FROM v; "
        "CREATE OR REPLACE VIEW w AS SELECT n, max(a) AS s FROM v GROUP BY n"
    )
    assert driver.epoch == before + 1
    assert ids(driver, "new") == [18, 19]
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("x", 18), ("y", 19)}
    with pytest.raises(errors.PlanningError):
        driver.sql(f"CREATE OR REPLACE VIEW v AS {JOIN}; CREATE VIEW broken AS SELECT nothing FROM v")
    assert ids(driver) == [18, 19], "nothing is half applied"
    assert driver.epoch == before + 1


def test_a_replaced_view_may_read_views_that_came_after_it() -> None:
    driver = shop()
    driver.sql("CREATE VIEW later AS SELECT o.id, o.a, 'late' AS n FROM o WHERE a < 2")
    driver.replace("v", "SELECT * FROM later")
    assert ids(driver) == [0, 1]
    driver.restart()
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("late", 1)}


def test_an_index_follows() -> None:
    driver = shop()
    driver.sql("CREATE INDEX i ON v (id)")
    driver.replace("v", f"{JOIN} WHERE a > 17")
    driver.sql("CREATE VIEW met AS SELECT v.id FROM v JOIN o ON v.id = o.id")
    assert ids(driver, "met") == [18, 19]


def test_sinks_get_exactly_the_difference(tmp_path: Path) -> None:
    driver = shop()
    calls: list[tuple[int, Counter[tuple[int, int]]]] = []

    def take(epoch: int, changes: pa.Table) -> None:
        calls.append((epoch, Counter((row["id"], row["_diff"]) for row in changes.to_pylist())))

    driver.foreach_epoch("v", take, from_="now")
    driver.sink("w", "parquet", name="totals", path=str(tmp_path / "out"))
    driver.step()
    driver.replace("v", f"{JOIN} WHERE a > 15")
    assert calls == [(driver.epoch, Counter({(i, -1): 1 for i in range(11, 16)}))]
    written = pq.read_table(tmp_path / "out").to_pylist()
    assert sum(row["s"] * row["_diff"] for row in written) == 70
    driver.restart()
    driver.step()
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE OR REPLACE VIEW v AS SELECT n FROM w", "view `v` would read itself through `w`"),
        ("CREATE OR REPLACE VIEW v AS SELECT a FROM v", "view `v` would read itself$"),
        (
            "CREATE OR REPLACE VIEW v AS SELECT id, n FROM o, c WHERE o.c = c.c",
            "`w` does not fit the new definition of `v`",
        ),
        (
            f"CREATE OR REPLACE VIEW v AS {JOIN.replace('o.a', 'o.a / 2 AS a')}",
            "view `w` reads a replaced view, and its",
        ),
        ("ALTER VIEW o AS SELECT 1 AS a", "`o` is a stream, not a view"),
        ("ALTER VIEW nothing AS SELECT 1 AS a", "there is no relation `nothing`"),
        ("ALTER VIEW v RENAME TO x", "`v` cannot be renamed: view `w` reads it"),
        ("ALTER VIEW w RENAME TO o", "`o` is already defined"),
        ("ALTER VIEW w RENAME TO `a.b`", "is not a name for a relation"),
        ("CREATE VIEW x CASCADE AS SELECT 1 AS a", "CASCADE is for a view that is replaced"),
    ],
)
def test_what_cannot_be_replaced_names_the_reason(text: str, message: str) -> None:
    driver = shop()
    before = driver.table("v"), driver.table("w"), driver.epoch
    with pytest.raises(errors.PlanningError) as refused:
        driver.sql(text)
    assert message.removesuffix("$") in refused.value.fact
    assert not message.endswith("$") or refused.value.fact.endswith(message[:-1])
    assert (driver.table("v"), driver.table("w"), driver.epoch) == before


def test_other_columns_need_cascade_and_no_sink() -> None:
    driver = shop()
    halves = JOIN.replace("o.a", "o.a / 2 AS a")
    driver.sql(f"CREATE OR REPLACE VIEW v CASCADE AS {halves}")
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("x", 45.0), ("y", 50.0)}
    with pytest.raises(errors.NotCommitted, match="its history starts at epoch 1"):
        driver.table("w", as_of=0)
    driver.sink("w", "console", name="screen")
    with pytest.raises(errors.DefinitionConflict, match="sink `screen` reads `w`, whose columns would change"):
        driver.sql(f"CREATE OR REPLACE VIEW v CASCADE AS {JOIN}")
    driver.sql(f"DROP SINK screen; CREATE OR REPLACE VIEW v CASCADE AS {JOIN}")
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("x", 90), ("y", 100)}


def test_a_column_that_nobody_reads_may_come_and_go() -> None:
    driver = shop()
    driver.sql(f"CREATE OR REPLACE VIEW v AS {JOIN.replace('o.id,', 'o.id, o.c,')} WHERE a > 10")
    assert driver.epoch == 1
    assert driver.catalog.get("v").schema.names == ["id", "c", "a", "n"]
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("x", 60), ("y", 75)}
    assert driver.table("w", as_of=0) == driver.table("w"), "views above keep their history"


def test_a_sink_that_cannot_show_retractions_refuses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT k FROM s WHERE k > 5")
    driver.foreach_epoch("v", lambda *_: None, name="plain")
    driver.insert("s", *({"k": k} for k in range(10)))
    driver.step()
    monkeypatch.setattr(type(sink_side(driver.catalog.sinks[0])), "tells_changes", lambda *_: False)
    driver.replace("v", "SELECT k FROM s WHERE k > 3")
    with pytest.raises(errors.Unsupported, match="retracts rows, and sink `plain` cannot show that") as refused:
        driver.replace("v", "SELECT k FROM s WHERE k > 7")
    assert refused.value.detail == "4 rows of the old definition are not in the new one"
    assert sorted(row["k"] for row in driver.table("v")) == [4, 5, 6, 7, 8, 9]


def test_a_rename_keeps_state_history_indexes_and_sinks(tmp_path: Path) -> None:
    driver = shop(store=tmp_path)
    driver.sql("CREATE INDEX i ON w (n)")
    calls: list[int] = []
    driver.foreach_epoch("w", lambda epoch, _: calls.append(epoch), name="calls")
    driver.step()
    before = driver.epoch
    kept = set().union(*files(driver).values())
    driver.rename("w", "totals")
    assert driver.epoch == before
    assert set().union(*files(driver).values()) == kept, "no file is written"
    driver.restart()
    assert {(row["n"], row["s"]) for row in driver.table("totals", as_of=0)} == {("x", 60), ("y", 75)}
    with pytest.raises(errors.UnknownName):
        driver.table("w")
    driver.insert("o", {"id": 50, "c": 1, "a": 50})
    assert {(row["s"], diff) for row, diff in driver.step()["totals"]} == {(60, -1), (110, 1)}
    assert calls == [0, driver.epoch]
    driver.sql("ALTER VIEW totals RENAME TO w; CREATE OR REPLACE VIEW w AS SELECT n, min(a) AS s FROM v GROUP BY n")
    assert {(row["n"], row["s"]) for row in driver.table("w")} == {("x", 12), ("y", 11)}
    assert {(row["n"], row["s"]) for row in driver.table("w", as_of=0)} == {("x", 60), ("y", 75)}


def test_two_views_swap_their_names() -> None:
    driver = shop()
    driver.sql("DROP VIEW w; CREATE VIEW u AS SELECT id FROM o WHERE id = 3")
    driver.sql("ALTER VIEW v RENAME TO x; ALTER VIEW u RENAME TO v; ALTER VIEW x RENAME TO u")
    assert ids(driver, "v") == [3]
    assert ids(driver, "u") == list(range(11, 20))
    driver.restart()
    assert ids(driver, "v", as_of=0) == [3]


def timed(emit: str = "", step: int = 10) -> str:
    return f"SELECT window.start AS start, count(*) AS n FROM s GROUP BY window(t, '{step} minutes') {emit}"


@pytest.mark.parametrize("emit", ["", "EMIT FINAL", "EMIT EVERY INTERVAL 1 MINUTE"])
@pytest.mark.parametrize("before", ["", "EMIT FINAL", "EMIT EVERY INTERVAL 1 MINUTE"])
def test_windows_and_emission_change(before: str, emit: str) -> None:
    """The same content as a view that is created now, at once and after more input; late rows included."""
    driver = Driver(parallelism=2)
    driver.sql("CREATE STREAM s (t TIMESTAMP, k BIGINT, WATERMARK t DELAY OF INTERVAL 1 MINUTE) RETAIN ALL")
    driver.sql(f"CREATE VIEW v AS {timed(before, 5)}")

    def feed(first: int, minute: int) -> dict[str, list[tuple[Any, int]]]:
        driver.insert("s", *({"t": NOON + timedelta(minutes=first + i), "k": i} for i in range(30)))
        return driver.step(at=NOON + timedelta(minutes=minute))

    summed: Counter[str] = Counter()

    def add(changes: dict[str, list[tuple[Any, int]]]) -> None:
        for row, diff in changes["v"]:
            summed[str(row)] += diff

    add(feed(0, 40))
    add(feed(5, 41))
    changes = driver.replace("v", timed(emit))
    assert changes["v"]
    add(changes)
    driver.sql(f"CREATE VIEW fresh AS {timed(emit)}")
    for minute in (42, 80, 120):
        assert sorted(map(str, driver.table("v"))) == sorted(map(str, driver.table("fresh"))), minute
        assert Counter({row: n for row, n in summed.items() if n}) == Counter(map(str, driver.table("v")))
        add(feed(minute, minute + 40))
        driver.restart()


def test_views_above_a_final_view_follow() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM s (t TIMESTAMP, k BIGINT, WATERMARK t DELAY OF INTERVAL 1 MINUTE) RETAIN ALL")
    daily = "SELECT window.start AS day, sum(n) AS n FROM {0} GROUP BY window({0}.start, '1 hour') EMIT FINAL"
    driver.sql(f"CREATE VIEW v AS {timed('EMIT FINAL', 5)}; CREATE VIEW w AS {daily.format('v')}")
    for first in (0, 60, 120):
        driver.insert("s", *({"t": NOON + timedelta(minutes=first + i), "k": i} for i in range(60)))
        driver.step()
    assert [row["n"] for row in driver.table("w")] == [60, 60]
    thirds = timed("EMIT FINAL", 5).replace("FROM s", "FROM s WHERE k % 3 = 0")
    changes = driver.replace("v", thirds)
    assert Counter((row["n"], diff) for row, diff in changes["w"]) == {(60, -1): 2, (20, 1): 2}
    driver.insert("s", {"t": NOON + timedelta(minutes=250), "k": 0})
    assert [(row["n"], diff) for row, diff in driver.step()["w"]] == [(20, 1)]
    driver.restart()
    driver.sql(f"CREATE VIEW fresh AS {thirds}; CREATE VIEW above AS {daily.format('fresh')}")
    assert sorted(map(str, driver.table("w"))) == sorted(map(str, driver.table("above")))


def test_a_definition_does_not_advance_the_clock() -> None:
    """Changes that are due by the clock are emitted by the next step, not lost in the epoch of a replacement."""
    driver = Driver()
    driver.sql("CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT k FROM s")
    driver.sql("CREATE VIEW slow AS SELECT k FROM s EMIT EVERY INTERVAL 1 MINUTE")
    driver.insert("s", {"k": 1})
    driver.step(at=NOON + timedelta(seconds=10))
    assert driver.table("slow") == []
    driver.replace("v", "SELECT k + 1 AS k FROM s")
    assert driver.table("slow") == []
    assert driver.step(at=NOON + timedelta(seconds=70))["slow"] == [({"k": 1}, 1)]


def test_a_time_before_a_replacement_reads_the_old_definition() -> None:
    now = [1_000_000]
    driver = Driver(clock=lambda: now[0])
    driver.sql("CREATE STREAM s (k BIGINT); CREATE VIEW v AS SELECT k FROM s")
    driver.insert("s", {"k": 1})
    driver.step()
    now[0] += 10_000
    driver.replace("v", "SELECT k + 1 AS k FROM s")
    read = datetime(1970, 1, 1) + timedelta(milliseconds=now[0] - 5_000)
    assert driver.table("v", as_of=read) == [{"k": 1}]
    assert driver.table("v", as_of=read + timedelta(seconds=6)) == [{"k": 2}]


def test_a_view_with_a_start_keeps_it() -> None:
    driver = bounded()
    feed(driver)
    driver.sql("CREATE TABLE u (k INT PRIMARY KEY, n BIGINT)")
    driver.sql("CREATE VIEW v STARTING AT NOW AS SELECT s.k, n FROM s JOIN u ON s.k = u.k")
    driver.insert("u", *({"k": k, "n": k} for k in range(9)))
    driver.insert("s", *({"k": k, "ts": START + timedelta(days=3)} for k in (1, 2, 3)))
    driver.step()
    driver.replace("v", "SELECT s.k, n * 2 AS n FROM s JOIN u ON s.k = u.k WHERE s.k < 3")
    assert sorted((row["k"], row["n"]) for row in driver.table("v")) == [(1, 2), (2, 4)]
    with pytest.raises(errors.Incomplete, match="view `v` needs rows of `s`"):
        driver.sql("CREATE OR REPLACE VIEW v AS SELECT s.k, n FROM s JOIN u ON s.k = u.k")
    driver.sql(
        f"CREATE OR REPLACE VIEW v STARTING AT EPOCH {driver.epoch + 1} AS SELECT s.k, n FROM s JOIN u ON s.k = u.k"
    )
    assert driver.table("v") == []
