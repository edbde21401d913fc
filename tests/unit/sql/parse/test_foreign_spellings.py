"""Spellings of other systems work, or are answered with ours."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from rejoinder.errors import UnknownName, Unsupported
from rejoinder.testing import Driver

_TIMES = "k STRING, n INT, ts TIMESTAMP"


def _driver() -> Driver:
    driver = Driver()
    driver.sql(f"CREATE STREAM s ({_TIMES}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)")
    return driver


def test_flinks_watermark_is_the_column_minus_a_delay() -> None:
    driver = _driver()
    driver.sql(
        f"CREATE STREAM exact ({_TIMES}, WATERMARK FOR ts AS ts);"
        "CREATE STREAM counted (n INT, WATERMARK FOR `n` AS n - 5);"
        f"CREATE STREAM ours ({_TIMES}, WATERMARK ts DELAY OF INTERVAL 5 SECONDS)"
    )
    delays = {source.name: dict(source.watermarks) for source in driver.catalog.sources}
    assert delays == {"s": {"ts": 5_000_000}, "exact": {"ts": 0}, "counted": {"n": 5}, "ours": {"ts": 5_000_000}}


@pytest.mark.parametrize("expression", ["k - INTERVAL '5' SECOND", "ts + INTERVAL '5' SECOND", "TO_TIMESTAMP(k)"])
def test_another_watermark_expression_is_answered_with_our_spelling(expression: str) -> None:
    with pytest.raises(Unsupported) as failure:
        Driver().sql(f"CREATE STREAM s ({_TIMES}, WATERMARK FOR ts AS {expression})")
    assert "WATERMARK ts DELAY OF INTERVAL 5 SECONDS" in str(failure.value.hint)


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("CREATE STREAM t (k STRING, ts TIMESTAMP GENERATED ALWAYS AS (TO_TIMESTAMP(k)))", "column AS expression"),
        ("CREATE STREAM t (k STRING, pt AS PROCTIME())", "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"),
        ("CREATE STREAM t (k STRING) WITH ('connector' = 'kafka')", "USING format OPTIONS (key 'value', …)"),
        ("CREATE STREAM t AS SELECT k FROM s", "CREATE VIEW name AS SELECT"),
        ("CREATE TABLE t (k STRING) AS SELECT k FROM s", "CREATE VIEW name AS SELECT"),
        ("CREATE SOURCE t (k STRING)", "CREATE STREAM name (columns)"),
        ("CREATE STREAMING TABLE t AS SELECT k FROM s", "CREATE VIEW name AS SELECT"),
        ("TAIL s", "SUBSCRIBE name"),
        ("TAIL s", "SELECT STREAM * FROM name"),
        ("INSERT INTO t SELECT k FROM s", "CREATE SINK name FROM view"),
        ("DELETE FROM s WHERE k = 'a'", "flow.delete(…)"),
        ("UPDATE s SET k = 'a'", "OPTIONS (op …)"),
        ("USE shop", "a state directory has one flow"),
        ("BEGIN", "one transaction"),
        ("CREATE VIEW v AS SELECT k, COUNT(*) AS n FROM s WINDOW TUMBLING (SIZE 5 MINUTES) GROUP BY k", "TUMBLE(time,"),
        ("CREATE VIEW v AS SELECT k FROM s WINDOW HOPPING (SIZE 5 MINUTES, ADVANCE BY 1 MINUTE)", "HOP(time,"),
        ("CREATE VIEW v AS SELECT k, PROCTIME() AS p FROM s", "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP"),
        ("CREATE VIEW v AS SELECT k FROM s WHERE mz_now() < ts", "ts > current_timestamp() - INTERVAL 1 HOUR"),
        ("SELECT a.k FROM s a JOIN s b WITHIN 1 HOUR ON a.k = b.k", "BETWEEN l.ts - INTERVAL 1 HOUR"),
        ("SELECT a.k FROM s a JOIN s b WITHIN (1 HOUR, 2 HOURS) ON a.k = b.k", "BETWEEN l.ts - INTERVAL 1 HOUR"),
        ("SELECT k, LATEST_BY_OFFSET(n) AS n FROM s GROUP BY k", "LATEST(TABLE name"),
        ("SELECT k, COUNT_DISTINCT(n) AS n FROM s GROUP BY k", "COUNT(DISTINCT x)"),
        ("SELECT k FROM s PARTITION BY n", "join keys"),
        ("SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k PATTERN (A B))", "join the stream with itself"),
        ("SELECT k, SESSION_START(ts, INTERVAL 5 MINUTES) AS s FROM s GROUP BY k", "SESSION(time, gap).start"),
        ("SELECT * FROM TABLE(TUMBLE(DATA => TABLE s, TIMECOL => DESCRIPTOR(ts)))", "TUMBLE(TABLE t, DESCRIPTOR(ts)"),
        ("SELECT count(*) AS n FROM s WITHWATERMARK (ts, '5 seconds')", "WATERMARK ts DELAY OF"),
        ("SELECT * FROM s AS OF 3", "VERSION AS OF 12"),
        ("SELECT * FROM STREAM s", "remove STREAM"),
        ("SELECT * FROM STREAM(s)", "remove STREAM(…)"),
        ("SELECT date_bin('5 minutes', ts, ts) AS x FROM s", "TUMBLE(time, INTERVAL 5 MINUTES).start"),
        ("SELECT extract(EPOCH FROM ts) AS x FROM s", "CAST(time AS BIGINT)"),
        ("SELECT k FROM s WHERE k ILIKE k", "LOWER(text) LIKE"),
        ("CREATE TABLE t (k STRING, PRIMARY KEY (k)) LOCATION 'x'", "OPTIONS (path '…')"),
        ("CREATE TABLE t (k STRING, PRIMARY KEY (k)) TBLPROPERTIES ('a' = 'b')", "OPTIONS (key 'value', …)"),
        ("CREATE STREAM t (k STRING DEFAULT 'a')", "COALESCE"),
        ("CREATE STREAM t (k STRING KEY)", "PRIMARY KEY"),
        ("CREATE STREAM t (t TIMESTAMP METADATA FROM 'timestamp')", "docs/kafka.md"),
        ("CREATE STREAM t (d DATETIME)", "write TIMESTAMP"),
        ("CREATE SOURCE t (k INT) WITH (connector = 'kafka') FORMAT PLAIN ENCODE JSON", "CREATE STREAM name (columns)"),
        ("CREATE SINK t FROM s INTO KAFKA CONNECTION c (TOPIC 't')", "CREATE SINK name FROM view USING kafka"),
        ("CREATE SINK t FROM s WITH (connector = 'kafka')", "CREATE SINK name FROM view USING kafka"),
        ("CREATE SINK t AS SELECT k FROM s", "CREATE VIEW name AS SELECT"),
        ("CREATE CLUSTER c SIZE 'small'", "rejoinder run --help"),
        ("APPLY CHANGES INTO t FROM s KEYS (k)", "PRIMARY KEY"),
        ("PRINT 't' FROM BEGINNING", "SELECT STREAM"),
    ],
)
def test_a_foreign_spelling_is_answered_with_ours(statement: str, hint: str) -> None:
    with pytest.raises(Unsupported) as failure:
        _driver().sql(statement)
    assert hint in str(failure.value.hint)


_ROWS = [("a", 1, "2024-01-01 00:00:01"), ("a", 2, "2024-01-01 00:00:04"), ("b", 3, "2024-01-01 00:00:07")]


def _answers(*queries: str) -> list[list[dict[str, object]]]:
    driver = _driver()
    for at, query in enumerate(queries):
        driver.sql(f"CREATE VIEW v{at} AS {query}")
    driver.insert("s", *({"k": k, "n": n, "ts": datetime.fromisoformat(f"{ts}+00:00")} for k, n, ts in _ROWS))
    driver.step()
    driver.insert("s", {"k": "z", "n": 0, "ts": datetime(2024, 1, 1, 1, tzinfo=timezone.utc)})
    driver.step()
    return [sorted(driver.sql(f"SELECT * FROM v{at}"), key=repr) for at in range(len(queries))]


def test_flinks_older_window_functions_are_ends_of_windows() -> None:
    size, slide = "INTERVAL '5' SECOND", "INTERVAL '1' SECOND"
    tumble, hop = f"TUMBLE(ts, {size})", f"HOP(ts, {slide}, {size})"
    ours, theirs, hopped, hopped_theirs = _answers(
        f"SELECT k, WINDOW_START({tumble}) AS b, WINDOW_END({tumble}) AS e, COUNT(*) AS n FROM s GROUP BY k, {tumble}",
        f"SELECT k, TUMBLE_START(ts, {size}) AS b, TUMBLE_END(ts, {size}) AS e, COUNT(*) AS n "
        f"FROM s GROUP BY k, {tumble}",
        f"SELECT k, WINDOW_START({hop}) AS b, WINDOW_END({hop}) AS e, COUNT(*) AS n FROM s GROUP BY k, {hop}",
        f"SELECT k, HOP_START(ts, {slide}, {size}) AS b, HOP_END(ts, {slide}, {size}) AS e, COUNT(*) AS n "
        f"FROM s GROUP BY k, {hop}",
    )
    assert ours == theirs and len(ours) == 3
    assert hopped == hopped_theirs and len(hopped) > 9


def test_emit_on_window_close_is_emit_final() -> None:
    query = "SELECT k, TUMBLE(ts, INTERVAL 5 SECONDS) AS w, COUNT(*) AS n FROM s GROUP BY k, w"
    ours, theirs = _answers(f"{query} EMIT FINAL", f"{query} EMIT ON WINDOW CLOSE")
    assert ours == theirs and len(ours) == 2  # without the window of the last row, which is not closed


def test_left_asof_join_is_asof_left_join() -> None:
    ours, theirs = _answers(
        "SELECT a.n, b.n AS m FROM s a ASOF LEFT JOIN s b MATCH_CONDITION (a.ts > b.ts) ON a.k = b.k",
        "SELECT a.n, b.n AS m FROM s a LEFT ASOF JOIN s b MATCH_CONDITION (a.ts > b.ts) ON a.k = b.k",
    )
    assert ours == theirs and {"n": 2, "m": 1} in ours and {"n": 3, "m": None} in ours


def test_what_needs_no_other_spelling() -> None:
    driver = _driver()
    driver.sql(
        "CREATE MATERIALIZED VIEW a AS SELECT k FROM s EMIT CHANGES;"
        "CREATE VIEW b AS SELECT window_start, COUNT(*) AS n FROM "
        "TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end;"
        "CREATE VIEW c AS SELECT window(ts, '5 minutes') AS w, COUNT(*) AS n FROM s GROUP BY window(ts, '5 minutes')"
    )


def test_columns_that_other_systems_add_are_answered() -> None:
    for name, hint in (("ROWTIME", "event-time column"), ("windowstart", "WINDOW_START"), ("window_end", "WINDOW_END")):
        with pytest.raises(UnknownName) as failure:
            _driver().sql(f"SELECT {name} AS x FROM s")
        assert hint in str(failure.value.hint)


def test_risingwaves_window_functions_name_a_column() -> None:
    ours, theirs = _answers(
        "SELECT k, window_start FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL 1 SECOND, INTERVAL 5 SECONDS)",
        "SELECT k, window_start FROM hop(s, ts, INTERVAL '1' SECOND, INTERVAL '5' SECOND)",
    )
    assert len(ours) == 20 and ours == theirs


def test_materialized_views_are_views() -> None:
    driver = _driver()
    driver.sql("CREATE MATERIALIZED VIEW v AS SELECT k FROM s")
    assert [row["view"] for row in driver.sql("SHOW MATERIALIZED VIEWS")] == ["v"]
    driver.sql("DROP MATERIALIZED VIEW v")
    assert not driver.catalog.views


def test_flinks_keys_are_not_enforced() -> None:
    driver = Driver()
    driver.sql(
        "CREATE TABLE a (k INT, n INT, PRIMARY KEY (k) NOT ENFORCED);"
        "CREATE TABLE b (k INT PRIMARY KEY NOT ENFORCED, n INT)"
    )
    assert [source.primary_key for source in driver.catalog.sources] == [("k",), ("k",)]


def test_words_of_other_systems_are_names_like_others() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM stream (session INT, data INT, `within` INT, last INT)")
    driver.sql("CREATE VIEW v AS SELECT s.session, s.data, s.`within` AS w, last FROM stream s WHERE data > 1")
    assert driver.sql("SELECT session AS of FROM v") == []
