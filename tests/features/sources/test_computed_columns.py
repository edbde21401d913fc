"""Computed columns of sources: evaluated as records are read, of every kind and format, watermarks on them included."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import duckdb
import pytest

from rejoinder.errors import DefinitionConflict, InputError, MalformedInput, PlanningError
from rejoinder.testing import Driver

COLUMNS = "id INT, day AS CAST(text AS DATE), text STRING, ts AS TO_TIMESTAMP(text), twice AS id * 2"


def test_they_stand_where_they_are_declared_and_outlive_a_restart(tmp_path: Path) -> None:
    driver = Driver(store=str(tmp_path))
    driver.sql(f"CREATE STREAM s ({COLUMNS}); CREATE VIEW v AS SELECT * FROM s")
    driver.insert("s", {"id": 1, "text": "2026-01-31 10:00:00"})
    driver.step()
    driver = Driver(store=str(tmp_path))
    driver.insert("s", {"id": 2})
    driver.step()
    rows = sorted(driver.table("v"), key=lambda row: row["id"])
    assert list(rows[0]) == ["id", "day", "text", "ts", "twice"]
    assert rows[0]["ts"] == datetime(2026, 1, 31, 10) and str(rows[0]["day"]) == "2026-01-31" and rows[0]["twice"] == 2
    assert rows[1] == {"id": 2, "day": None, "text": None, "ts": None, "twice": 4}


def test_a_watermark_on_one() -> None:
    driver = Driver()
    driver.sql(
        f"CREATE STREAM s ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND);"
        "CREATE VIEW v AS SELECT WINDOW_START(TUMBLE(ts, INTERVAL 1 MINUTE)) AS minute, count(*) AS n FROM s "
        "GROUP BY TUMBLE(ts, INTERVAL 1 MINUTE) EMIT FINAL"
    )
    driver.insert("s", {"id": 1, "text": "2026-01-31 10:00:00"})
    assert driver.step()["v"] == []
    driver.insert("s", {"id": 2, "text": "2026-01-31 10:02:00"})
    assert driver.step()["v"] == [({"minute": datetime(2026, 1, 31, 10), "n": 1}, 1)]
    driver.insert("s", {"id": 3, "text": "2026-01-31 10:00:30"})
    driver.step()
    assert [row["column"] for row in driver.late("v")] == ["ts"]


@pytest.mark.parametrize(
    ("format_", "options", "text"),
    [
        ("csv", "", "1,2026-01-31 10:00:00\n2,\n"),
        ("csv", ", header 'true'", "text,id\n2026-01-31 10:00:00,1\n,2\n"),
        ("json", "", '{"id": 1, "text": "2026-01-31 10:00:00"}\n{"id": 2}\n'),
    ],
)
def test_in_files(tmp_path: Path, format_: str, options: str, text: str) -> None:
    driver = Driver()
    driver.sql(
        f"CREATE STREAM s ({COLUMNS}) USING {format_} OPTIONS (path '{tmp_path}'{options});"
        "CREATE VIEW v AS SELECT id, ts, twice FROM s"
    )
    (tmp_path / f"1.{format_}").write_text(text)
    driver.step()
    expected = [{"id": 1, "ts": datetime(2026, 1, 31, 10), "twice": 2}, {"id": 2, "ts": None, "twice": 4}]
    assert sorted(driver.table("v"), key=lambda row: row["id"]) == expected
    driver.sql("CREATE VIEW later AS SELECT ts, day FROM s")
    assert len(driver.table("later")) == 2, "a new view reads the files again, and computes again"


def test_of_a_topic() -> None:
    driver = Driver()
    driver.sql(
        f"CREATE STREAM s ({COLUMNS}) USING kafka OPTIONS (topic 't', bootstrap 'b:9092', format 'json');"
        "CREATE VIEW v AS SELECT id, ts FROM s"
    )
    driver.insert("s", {"id": 1, "text": "2026-01-31 10:00:00"})
    assert driver.step()["v"] == [({"id": 1, "ts": datetime(2026, 1, 31, 10)}, 1)]


def test_a_record_on_which_one_fails_is_malformed(tmp_path: Path) -> None:
    for number, option in enumerate(("", ", malformed 'divert'")):
        folder = tmp_path / str(number)
        folder.mkdir()
        driver = Driver(show_values=True)
        driver.sql(
            "CREATE STREAM s (id INT, text STRING, n AS CAST(text AS INT)) "
            f"USING json OPTIONS (path '{folder}'{option});"
            "CREATE VIEW v AS SELECT id, n FROM s"
        )
        (folder / "1.json").write_text('{"id": 1, "text": "one"}\n{"id": 2, "text": "2"}\n')
        if not option:
            with pytest.raises(MalformedInput, match=r"a computed column of `s` fails on a record of `.*1\.json`"):
                driver.step()
            assert driver.epoch == -1
            continue
        assert driver.step()["v"] == [({"id": 2, "n": 2}, 1)]
        (rejected,) = driver.table("s.rejected")
        assert rejected["text"] == '{"id":1,"text":"one"}' and "failed on a row" in rejected["reason"]


def test_changelogs_and_tables_take_rows_out() -> None:
    driver = Driver()
    driver.sql(
        "CREATE CHANGELOG c (id INT, half AS id / 2); CREATE TABLE t (k INT, x INT, y AS x + k, PRIMARY KEY (k));"
        "CREATE VIEW halves AS SELECT half, count(*) AS n FROM c GROUP BY half; CREATE VIEW sums AS SELECT y FROM t"
    )
    driver.insert("c", {"id": 3}, {"id": 3}, {"id": 4})
    driver.insert("t", {"k": 1, "x": 1}, {"k": 2, "x": 2})
    driver.step()
    driver.delete("c", {"id": 3})
    driver.insert("t", {"k": 1, "x": 10})
    driver.delete("t", {"k": 2})
    driver.step()
    assert sorted(row["half"] for row in driver.table("halves")) == [1.5, 2.0]
    assert driver.table("sums") == [{"y": 11}]


def test_equal_to_duckdb_and_to_a_view_that_computes() -> None:
    """Random rows over several epochs: the computed column, an expression in a view, and DuckDB agree."""
    rng = random.Random(7)
    driver = Driver(parallelism=3)
    made = "CASE WHEN a > b THEN a - b ELSE coalesce(b, 0) + 1 END"
    driver.sql(
        f"CREATE STREAM s (a INT, b INT, c AS {made}); CREATE STREAM plain (a INT, b INT);"
        "CREATE VIEW v AS SELECT x.a, x.c, y.b FROM s x JOIN s y ON x.c = y.a;"
        f"CREATE VIEW w AS SELECT x.a, x.c, y.b FROM (SELECT *, {made} AS c FROM plain) x JOIN plain y ON x.c = y.a"
    )
    known: list[tuple[int | None, int | None]] = []
    for _ in range(6):
        rows = [(rng.choice([None, 1, 2, 3, 4]), rng.choice([None, 1, 2, 3])) for _ in range(rng.randrange(8))]
        known += rows
        for name in ("s", "plain"):
            driver.insert(name, *({"a": a, "b": b} for a, b in rows))
        driver.step()
        duck = duckdb.connect()
        duck.execute("CREATE TABLE plain (a INT, b INT)")
        for row in known:
            duck.execute("INSERT INTO plain VALUES (?, ?)", row)
        query = f"SELECT x.a, x.c, y.b FROM (SELECT *, {made} AS c FROM plain) x JOIN plain y ON x.c = y.a"
        expected = sorted(duck.execute(query).fetchall(), key=repr)
        for view in ("v", "w"):
            assert sorted((tuple(row.values()) for row in driver.table(view)), key=repr) == expected


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("a INT, b AS", "computed column `b` has no expression"),
        ("a INT, b AS aa + 1", "there is no column `aa`"),
        ("a INT, b AS a + 1, c AS b + 1", "there is no column `b`"),
        ("a INT, b AS sum(a)", "the aggregate `sum` is not supported here"),
        ("a INT, b AS now()", "`now` is not supported"),
        ("a INT, b AS (SELECT 1)", "a subquery as a value is not supported"),
        ("a INT, b AS NULL", "computed column `b` of `s` has no type"),
        ("a INT, a AS 1", "column `a` of `s` is declared twice"),
        ("a INT, b INT GENERATED ALWAYS AS (a + 1)", "GENERATED of column `b` is not supported"),
        ("b AS 1", "`s` has no columns"),
    ],
)
def test_what_is_refused(columns: str, words: str) -> None:
    with pytest.raises(PlanningError) as raised:
        Driver().sql(f"CREATE STREAM s ({columns})")
    assert words in raised.value.fact


def test_keys_and_given_values_are_refused() -> None:
    with pytest.raises(PlanningError, match="computed column `b` of `t` is part of the primary key"):
        Driver().sql("CREATE TABLE t (a INT, b AS a + 1, PRIMARY KEY (b))")
    driver = Driver()
    driver.sql("CREATE STREAM s (a INT, b AS a + 1)")
    driver.insert("s", {"a": 1})
    driver.step()
    driver.insert("s", {"a": 1, "b": 5})
    with pytest.raises(InputError, match="`s` has no column `b`"):
        driver.step()
    with pytest.raises(DefinitionConflict, match="exists with other columns"):
        driver.sql("CREATE STREAM IF NOT EXISTS s (a INT, b AS a + 2)")
