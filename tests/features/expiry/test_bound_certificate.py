"""EXPLAIN certifies how long rows are kept, by which condition, and how many; or says why they are kept for ever."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from rejoinder.errors import Unsupported
from rejoinder.testing import Driver

SOURCES = """
CREATE STREAM o (id INT, ts TIMESTAMP, WATERMARK ts);
CREATE STREAM d (id INT, ts TIMESTAMP, WATERMARK ts);
CREATE STREAM bare (id INT, ts TIMESTAMP);
CREATE TABLE people (id INT, name STRING, PRIMARY KEY (id));
"""
WITHIN = "o.id = d.id AND d.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES"
START = datetime(2024, 1, 1, 12)


def explained(query: str) -> str:
    driver = Driver()
    driver.sql(SOURCES)
    return str(driver.sql(f"EXPLAIN {query}"))


def test_formula_predicate_and_rows_of_each_input() -> None:
    driver = Driver(parallelism=2)
    driver.sql(SOURCES)
    driver.sql(f"CREATE VIEW v AS SELECT o.id FROM o JOIN d ON {WITHIN}")
    text = driver.sql("EXPLAIN v")
    assert "kept while ts >= the watermark of d.ts - 10 minutes\n      by d.ts <= o.ts + INTERVAL '10' MINUTES" in text
    assert "kept while ts >= the watermark of o.ts\n      by d.ts >= o.ts" in text
    assert text.count("expected rows: unknown yet") == 2
    for minute in range(40):
        driver.insert("o", *({"id": n, "ts": START + timedelta(minutes=minute)} for n in range(5)))
        driver.watermark("d", START + timedelta(minutes=minute))
        driver.step()
    found = re.search(r"expected rows: about (\d+) .*of ts, kept for 10 minutes", driver.sql("EXPLAIN v"))
    assert found is not None and 50 <= int(found.group(1)) <= 60, "five for each minute"
    assert driver.sql("EXPLAIN v").count("unknown yet") == 1, "there is no delivery"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT o.id FROM o JOIN d ON o.id = d.id", "no condition says how far back changes of `d` can reach"),
        ("SELECT o.id FROM o JOIN d ON o.id = d.id", "add a condition such as d.ts <= o.ts + INTERVAL 1 HOUR"),
        ("SELECT o.id FROM o JOIN bare b ON o.id = b.id", "`bare` has no WATERMARK"),
        ("SELECT o.id FROM o JOIN people p ON o.id = p.id", "a row of table `people` can change at any time"),
        ("SELECT o.id FROM o JOIN people p ON o.id = p.id", "stays until it is replaced or deleted"),
        ("SELECT id, count(*) AS n FROM o GROUP BY id", "a group can come at any time"),
        ("SELECT id, count(*) AS n FROM o GROUP BY id", "to bound it, GROUP BY a window of an event time"),
        ("SELECT DISTINCT id FROM o", "a row can come at any time"),
        (f"SELECT o.id, count(*) AS n FROM o JOIN d ON {WITHIN} GROUP BY o.id", "another part of the view is not"),
        ("SELECT DISTINCT ts FROM o", "by DISTINCT ts"),
        ("SELECT TUMBLE(ts, INTERVAL 1 HOUR) AS w, count(*) AS n FROM o GROUP BY w", "rounded down to 1 hour"),
    ],
)
def test_what_is_not_bounded_says_why_and_how_to_bound_it(query: str, words: str) -> None:
    assert words in explained(query)


def test_nothing_is_said_where_no_watermark_is_declared() -> None:
    assert "kept for ever" not in explained("SELECT b.id FROM bare b JOIN people p ON b.id = p.id")


def test_an_interval_of_the_wrong_sign_is_reported() -> None:
    text = explained("SELECT o.id FROM o JOIN d ON o.id = d.id AND d.ts >= o.ts AND d.ts <= o.ts - INTERVAL 1 HOUR")
    wanted = "no pair can satisfy d.ts >= o.ts AND d.ts <= o.ts - INTERVAL '1' HOUR; check the sign of the interval"
    assert wanted in text
    assert "no pair can satisfy" not in explained(f"SELECT o.id FROM o JOIN d ON {WITHIN}")


W = "TUMBLE(o.ts, INTERVAL 5 MINUTES)"
BOTH = "(SELECT id, ts FROM o UNION ALL SELECT id, ts FROM d) q"
LEAST = "least(the watermark of o.ts, greatest(the watermark of d.ts - 10 minutes, the oldest o.ts kept))"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"SELECT o.ts, count(*) AS n FROM o JOIN d ON {WITHIN} GROUP BY o.ts EMIT FINAL", f"ts < {LEAST}"),
        (f"SELECT {W} AS w, count(*) AS n FROM o JOIN d ON {WITHIN} GROUP BY {W} EMIT FINAL", f").end <= {LEAST}"),
        (f"SELECT {W} AS w, count(*) AS n FROM o GROUP BY {W} EMIT FINAL", "the watermark of o.ts has passed TUMBLE"),
        ("SELECT ts, count(*) AS n FROM o GROUP BY ts EMIT FINAL", "the watermark of o.ts has passed ts"),
        (
            f"SELECT ts, count(*) AS n FROM {BOTH} GROUP BY ts EMIT WHEN WATERMARK PAST ts",
            "ts < least of those not idle(the watermark of o.ts, the watermark of d.ts)",
        ),
    ],
)
def test_when_a_row_is_emitted(query: str, words: str) -> None:
    (line,) = [line for line in explained(query).splitlines() if "comes out" in line]
    assert line.startswith("  a row is emitted when ") and words in line


@pytest.mark.parametrize("kind", ["INT", "DATE", "TIMESTAMP"])
@pytest.mark.parametrize("given", ["TRUE", "b.u >= a.t", "b.u <= a.t"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.id, b.u FROM a LEFT JOIN b ON a.id = b.id AND {} EMIT FINAL",
        "SELECT a.id, b.u FROM a FULL JOIN b ON a.id = b.id AND {} EMIT FINAL",
        "SELECT a.t, count(*) AS n FROM a JOIN b ON a.id = b.id AND {} GROUP BY a.t EMIT FINAL",
    ],
)
def test_the_condition_that_a_refusal_names_is_the_one_that_is_missing(query: str, given: str, kind: str) -> None:
    driver = Driver()
    driver.sql(f"CREATE STREAM a (id INT, t {kind}, WATERMARK t); CREATE STREAM b (id INT, u {kind}, WATERMARK u)")
    with pytest.raises(Unsupported) as refused:
        driver.sql(f"CREATE VIEW v AS {query.format(given)}")
    found = re.search("add a condition such as ([^;]*)", str(refused.value.hint))
    assert found is not None
    driver.sql(f"CREATE VIEW v AS {query.format(f'{given} AND {found.group(1)}')}")


def test_a_refusal_names_the_source_that_has_no_watermark() -> None:
    driver = Driver()
    driver.sql(SOURCES)
    with pytest.raises(Unsupported, match="there is none on `bare`"):
        driver.sql("CREATE VIEW v AS SELECT o.id FROM o LEFT JOIN bare b ON o.id = b.id AND b.ts >= o.ts EMIT FINAL")
