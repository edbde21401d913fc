"""ENRICH: rows with the answers of a Python function, which is called once per row and stored as long as the row."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.api.relations.relation import Relation
from rejoinder.api.relations.stream import Stream
from rejoinder.api.relations.table import Table
from rejoinder.errors import FunctionFailed, InvalidSql, PlanningError, UnknownName
from rejoinder.testing import Driver
from tests.features.enrichment import answering
from tests.features.enrichment.answering import calls

HERE = "tests.features.enrichment.answering"
START = datetime(2026, 1, 1)


@pytest.fixture(autouse=True)
def fresh() -> None:
    """No calls yet."""
    calls.clear()


def enriched(source: str, function: str = "numbered", more: str = "") -> str:
    """A query."""
    return f"SELECT * FROM ENRICH(TABLE {source}, '{HERE}:{function}', 'number INT'{more})"


def opened(kind: str = "STREAM", query: str | None = None, parallelism: int = 1) -> Driver:
    """A flow with a source `a` and a view `e` of it."""
    driver = Driver(parallelism=parallelism, functions=[HERE, "broken_shop"])
    key = ", PRIMARY KEY (id)" if kind == "TABLE" else ""
    driver.sql(f"CREATE {kind} a (id BIGINT, what STRING{key})")
    driver.sql(f"CREATE VIEW e AS {query or enriched('a')}")
    return driver


def numbers(driver: Driver, view: str = "e") -> dict[int, int]:
    return {row["id"]: row["number"] for row in driver.table(view)}


@pytest.mark.parametrize("function", ["numbered", "plainly"])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_each_row_is_asked_about_once_with_few_calls_at_a_time(function: str, parallelism: int) -> None:
    driver = opened(query=enriched("a", function, ", concurrency => 4"), parallelism=parallelism)
    driver.insert("a", *({"id": i, "what": "x"} for i in range(40)))
    changes = driver.step()["e"]
    assert sorted(row["number"] for row, _ in changes) == list(range(40))
    assert Counter(row["id"] for row in calls.rows) == Counter(range(40))
    assert 1 < calls.most <= 4
    assert calls.rows[0].keys() == {"id", "what"}, "columns have the names that the relation gives them"


def test_copies_share_an_answer_and_a_row_that_stays_keeps_it() -> None:
    driver = opened("CHANGELOG")
    row = {"id": 1, "what": "x"}
    driver.insert("a", row, row)
    assert driver.step()["e"] == [({**row, "number": 0}, 2)]
    driver.insert("a", row)
    driver.restart(parallelism=3)
    driver.insert("a", row)
    assert driver.step()["e"] == [({**row, "number": 0}, 1)]
    driver.delete("a", row, row)
    assert driver.step()["e"] == [({**row, "number": 0}, -2)]
    driver.delete("a", row)
    assert driver.step()["e"] == [({**row, "number": 0}, -1)], "what was answered then, whatever it would be now"
    driver.insert("a", row)
    assert driver.step()["e"] == [({**row, "number": 1}, 1)], "it is another row, and is asked about anew"
    driver.delete("a", row)
    driver.insert("a", row)
    assert driver.step()["e"] == [] and len(calls.rows) == 2, (
        "a row that comes and goes within an epoch changes nothing"
    )


def test_a_table_retracts_what_it_received() -> None:
    driver = opened("TABLE", parallelism=2)
    driver.insert("a", {"id": 1, "what": "x"}, {"id": 2, "what": None})
    driver.step()
    before = numbers(driver)
    driver.insert("a", {"id": 1, "what": "y"})
    assert driver.step()["e"] == [
        ({"id": 1, "what": "x", "number": before[1]}, -1),
        ({"id": 1, "what": "y", "number": 2}, 1),
    ]
    driver.delete("a", {"id": 2})
    assert driver.step()["e"] == [({"id": 2, "what": None, "number": before[2]}, -1)]


def test_views_share_answers_and_later_ones_find_them() -> None:
    driver = opened()
    driver.sql(f"CREATE VIEW same AS SELECT id, number FROM ({enriched('a')}) AS q WHERE id > 0")
    driver.insert("a", *({"id": i, "what": "x"} for i in range(5)))
    driver.step()
    assert len(calls.rows) == 5 and numbers(driver, "same").items() <= numbers(driver).items()
    driver.sql("CREATE VIEW later AS SELECT id, number FROM e")
    assert numbers(driver, "later") == numbers(driver)
    assert driver.sql("SELECT number FROM e WHERE id = 3") == [{"number": numbers(driver)[3]}]
    assert len(calls.rows) == 5, "the function was not called again"
    driver.sql(f"CREATE VIEW other AS {enriched('a', 'plainly')}")
    assert sorted(numbers(driver, "other").values()) == [5, 6, 7, 8, 9], "another function is asked about what is there"


def test_enriched_rows_are_joined_and_grouped() -> None:
    driver = opened("TABLE")
    driver.sql("CREATE TABLE b (id BIGINT, name STRING, PRIMARY KEY (id))")
    driver.sql(f"CREATE VIEW j AS SELECT q.number, b.name FROM ({enriched('a')}) AS q JOIN b ON q.id = b.id")
    driver.sql(
        f"CREATE VIEW m AS SELECT max(number) AS most FROM ENRICH(TABLE a, '{HERE}:numbered', 'number INT') AS q"
    )
    driver.insert("a", {"id": 1, "what": "x"})
    driver.insert("b", {"id": 1, "name": "one"})
    driver.step()
    assert driver.table("j") == [{"number": 0, "name": "one"}] and driver.table("m") == [{"most": 0}]
    driver.delete("a", {"id": 1})
    assert driver.step()["j"] == [({"number": 0, "name": "one"}, -1)]
    assert driver.table("m") == [{"most": None}]


def test_a_query_in_the_place_of_the_relation() -> None:
    driver = opened(
        query=f"SELECT q.* FROM ENRICH(TABLE (SELECT DISTINCT what FROM a), '{HERE}:numbered', 'number INT') AS q"
    )
    driver.insert("a", *({"id": i, "what": f"{i % 2}"} for i in range(6)))
    driver.step()
    assert len(calls.rows) == 2 and [row["what"] for row in driver.table("e")] == ["0", "1"]


# -- batches -----------------------------------------------------------------------------------------------------------


def test_batches_are_tables() -> None:
    driver = opened(query=enriched("a", "in_tables", ", batch => 4"))
    driver.insert("a", *({"id": i, "what": "x"} for i in range(10)))
    driver.step()
    assert [rows.num_rows for rows in calls.rows] == [4, 4, 2]
    assert Counter(numbers(driver).values()) == {0: 4, 1: 4, 2: 2}


def test_batches_may_be_answered_by_lists_and_none_is_null() -> None:
    driver = opened(query=enriched("a", "in_lists", ", batch => 3"))
    driver.insert("a", *({"id": i, "what": "x"} for i in range(3)))
    driver.step()
    assert sorted(numbers(driver).values(), key=str) == [0, 0, None]


# -- failures ----------------------------------------------------------------------------------------------------------


def test_a_failure_names_function_row_and_view_and_nothing_is_committed() -> None:
    driver = opened()
    calls.failures = 1
    driver.insert("a", {"id": 1, "what": "x"})
    with pytest.raises(FunctionFailed) as failed:
        driver.step()
    assert failed.value.fact == f"function `{HERE}:numbered` failed on a row, for `e`"
    assert failed.value.detail == "it raised ConnectionError"
    assert failed.value.values == "row {'id': 1, 'what': 'x'}: the service is down"
    assert driver.epoch == -1
    assert driver.step()["e"] == [({"id": 1, "what": "x", "number": 0}, 1)], "the rows waited"


def test_a_call_is_tried_again() -> None:
    driver = opened(query=enriched("a", more=", retries => 2"))
    calls.failures = 2
    driver.insert("a", {"id": 1, "what": "x"})
    assert driver.step()["e"] and len(calls.rows) == 3
    calls.failures = 3
    driver.insert("a", {"id": 2, "what": "x"})
    with pytest.raises(FunctionFailed, match="in 3 attempts"):
        driver.step()


def test_a_call_is_given_up_after_its_timeout() -> None:
    text = enriched("a", "slowly", ", timeout => INTERVAL '0.05' SECOND")
    driver = opened(query=text)
    driver.insert("a", {"id": 1, "what": "x"})
    with pytest.raises(FunctionFailed, match=r"no answer within 0\.05 s"):
        driver.step()
    calls.clear()
    driver = opened(query=text.replace(", timeout", ", retries => 1, timeout"))
    driver.insert("a", {"id": 1, "what": "x"})
    driver.step()
    assert numbers(driver) == {1: 7}


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("column", "it returned a column `numbr`; the declared columns are number"),
        ("type", "column `number` does not have type int32"),
        ("shape", "it returned a int, not a dict of columns"),
    ],
)
def test_answers_that_do_not_fit(what: str, reason: str) -> None:
    driver = opened(query=enriched("a", "wrongly"))
    driver.insert("a", {"id": 1, "what": "nothing"}, {"id": 2, "what": what})
    with pytest.raises(FunctionFailed) as failed:
        driver.step()
    assert reason in str(failed.value)
    assert f"row {{'id': 2, 'what': '{what}'}}" in str(failed.value.values)


def test_a_batch_with_too_few_answers() -> None:
    driver = opened(query=enriched("a", "too_few", ", batch => 2"))
    driver.insert("a", {"id": 1, "what": "x"}, {"id": 2, "what": "x"})
    with pytest.raises(FunctionFailed, match="it returned 1 answers for a batch of 2 rows"):
        driver.step()


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        ("TABLE a, 'no.such.module:f', 'n INT'", "the module of function `no.such.module:f` cannot be imported"),
        (f"TABLE a, '{HERE}:numberd', 'n INT'", f"there is no function `{HERE}:numberd`"),
        (f"TABLE a, '{HERE}:not_a_function', 'n INT'", f"`{HERE}:not_a_function` is not a function"),
        ("TABLE a, 'numbered', 'n INT'", "`numbered` is not the name of a function that workers can import"),
        ("TABLE a, '__main__:f', 'n INT'", "`__main__:f` is not the name of a function that workers can import"),
        ("TABLE a, 'json:dumps'", "ENRICH takes a relation, a function and its columns, not 2 arguments"),
        ("a, 'json:dumps', 'n INT'", "the first argument of ENRICH is a relation"),
        ("TABLE a, json, 'n INT'", "`json` is not a string"),
        ("TABLE a, 'json:dumps', 'n NUMBER OF'", "`STRUCT<n NUMBER OF>` is not a type"),
        ("TABLE a, 'json:dumps', 'ID INT'", "column `ID` of ENRICH is already a column of its relation"),
        ("TABLE a, 'json:dumps', '__diff INT'", "column `__diff` of ENRICH has a reserved name"),
        ("TABLE a, 'json:dumps', 'n INT', speed => 3", "ENRICH has no argument `speed`"),
        ("TABLE a, 'json:dumps', 'n INT', batch => 0", "`batch` of ENRICH is a whole number, 1 or more"),
        ("TABLE a, 'json:dumps', 'n INT', timeout => 5", "`timeout` of ENRICH is a positive interval"),
        ("TABLE m, 'json:dumps', 'n INT'", "ENRICH of column `tags` of type map<string,int>"),
    ],
)
def test_refused_at_declaration(call: str, fact: str) -> None:
    driver = Driver(functions=[HERE, "no"])
    driver.sql("CREATE STREAM a (id BIGINT); CREATE STREAM m (tags MAP<STRING, INT>)")
    with pytest.raises(PlanningError) as refused:
        driver.sql(f"CREATE VIEW e AS SELECT * FROM ENRICH({call})")
    assert refused.value.fact == fact
    assert refused.value.hint


def test_a_module_that_fails_when_it_is_imported(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_shop.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UnknownName) as refused:
        opened(query="SELECT * FROM ENRICH(TABLE a, 'broken_shop:f', 'n INT')")
    assert refused.value.detail == "ZeroDivisionError: division by zero"


def test_python_says_the_same_as_sql() -> None:
    relation = Relation("a").enrich(answering.numbered, columns={"number": "INT"}, concurrency=4, timeout=2, retries=1)
    driver = opened(query=relation.query)
    more = ", concurrency => 4, timeout => INTERVAL 2 SECONDS, retries => 1"
    driver.sql(f"CREATE VIEW same AS {enriched('a', more=more)}")
    ours, theirs = (driver.sql(f"EXPLAIN {view}").splitlines()[1:] for view in ("e", "same"))
    assert ours == theirs
    narrowed = Relation("a").where("id > 0").enrich(f"{HERE}:service.number", columns={"number": "INT"})
    driver.sql(f"CREATE VIEW n AS {narrowed.select('number').query}")
    driver.insert("a", {"id": 0, "what": "it's"}, {"id": 1, "what": "x"})
    driver.step()
    assert driver.table("n") == [{"number": 2}] and driver.table("e") == driver.table("same")


def test_streams_and_tables_of_python_are_enriched() -> None:
    driver = Driver(functions=[HERE])
    driver.sql("CREATE STREAM o (id BIGINT, t BIGINT, WATERMARK t DELAY OF 5)")
    driver.sql("CREATE STREAM d (id BIGINT, t BIGINT, WATERMARK t DELAY OF 5)")
    driver.sql("CREATE TABLE a (id BIGINT, what STRING, PRIMARY KEY (id))")
    numbered = Stream.of(driver, "o").enrich(answering.numbered, columns={"number": "INT"})
    numbered.join(Stream.of(driver, "d"), on="id", within=(0, 10)).to("j")
    Table.of(driver, "a").enrich(answering.plainly, columns={"number": "INT"}).to("e")
    driver.insert("o", {"id": 1, "t": 10})
    driver.insert("d", {"id": 1, "t": 12})
    driver.insert("a", {"id": 1, "what": "x"})
    changes = driver.step()
    assert [(row["id"], row["d_t"]) for row, _ in changes["j"]] == [(1, 12)]
    assert {changes[view][0][0]["number"] for view in "je"} == {0, 1}
    driver.delete("a", {"id": 1})
    assert driver.step()["e"] == [(changes["e"][0][0], -1)]


def test_functions_that_have_no_name_of_their_own() -> None:
    def inside(row: Any) -> None:
        """Nothing."""

    for function in (lambda row: None, inside, answering.service.number):
        with pytest.raises(InvalidSql, match="cannot be imported by workers"):
            Relation("a").enrich(function, columns={"number": "INT"})


# -- time --------------------------------------------------------------------------------------------------------------


def bounded(emit: str = "") -> Driver:
    """Orders, enriched, and deliveries of at most ten minutes later."""
    driver = Driver(functions=[HERE])
    driver.sql("CREATE STREAM o (id BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)")
    driver.sql("CREATE STREAM d (id BIGINT, at TIMESTAMP, WATERMARK at DELAY OF INTERVAL 1 MINUTE)")
    driver.sql(
        f"CREATE VIEW j AS SELECT o.id, o.number, d.at FROM ({enriched('o')}) AS o LEFT JOIN d "
        f"ON o.id = d.id AND d.at BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES {emit}"
    )
    return driver


def rows_kept(driver: Driver) -> int:
    return sum(row["rows"] for row in driver.arrangements())


@pytest.mark.parametrize("emit", ["", "EMIT FINAL"])
def test_answers_expire_with_their_rows(emit: str) -> None:
    driver = bounded(emit)
    held = []
    for minute in range(30):
        now = START + timedelta(minutes=minute)
        driver.insert("o", {"id": minute, "ts": now})
        driver.insert("d", {"id": minute - 5, "at": now})
        driver.step()
        held.append(rows_kept(driver))
    assert max(held) < 60, "as long as matches can arrive, not longer"
    driver.insert("o", {"id": 1000, "ts": START + timedelta(days=1)}, {"id": 2000, "ts": START})
    driver.insert("d", {"id": -1000, "at": START + timedelta(days=1)})
    driver.step()
    driver.insert("o", {"id": 1001, "ts": START + timedelta(days=2)})
    driver.insert("d", {"id": -1001, "at": START + timedelta(days=2)})
    driver.step()
    assert rows_kept(driver) <= 6
    assert [row["row"] for row in driver.late("j")] == ['{"id":2000,"ts":"2026-01-01 00:00:00"}']
    assert all(row["id"] != 2000 for row in calls.rows), "a late row is not asked about"
    told = {row["id"]: row["number"] for row in driver.table("j") if row["id"] < 1000}
    assert sorted(told) == list(range(30)) and len(set(told.values())) == 30


def test_a_stream_by_itself_keeps_its_late_rows() -> None:
    driver = Driver(functions=[HERE])
    driver.sql("CREATE STREAM o (id BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)")
    driver.sql(f"CREATE VIEW e AS {enriched('o')}")
    for day in (5, 1):
        driver.insert("o", {"id": day, "ts": START + timedelta(days=day)})
        driver.step()
    assert len(driver.table("e")) == 2 and driver.late("e") == []


# -- at random ---------------------------------------------------------------------------------------------------------

EPOCHS = st.lists(
    st.tuples(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None])), max_size=6), st.integers(0, 3)),
    min_size=1,
    max_size=8,
)


@given(EPOCHS, st.integers(1, 3))
def test_answers_belong_to_rows_whatever_comes_and_goes(
    epochs: list[tuple[list[tuple[int, str | None]], int]], parallelism: int
) -> None:
    """A table by `id`; an answer stays as long as its row, through restarts, and is asked for once."""
    calls.clear()
    driver = opened("TABLE", parallelism=parallelism)
    known: dict[tuple[int, str | None], int] = {}
    for rows, restart in epochs:
        for number, what in rows:
            if what == "y":
                driver.delete("a", {"id": number})
            else:
                driver.insert("a", {"id": number, "what": what})
        asked = len(calls.rows)
        driver.step()
        told = {(row["id"], row["what"]): row["number"] for row in driver.table("e")}
        content = [(row["id"], row["what"]) for row in driver.sql("SELECT * FROM a")]
        assert sorted(content, key=str) == sorted(told, key=str), "the rows of the table, each with one answer"
        assert {row: number for row, number in told.items() if row in known} == {
            row: number for row, number in known.items() if row in told
        }
        assert len(calls.rows) - asked == len(told.keys() - known.keys())
        known = told
        if restart:
            driver.restart(parallelism=restart)


def test_a_batch_of_answers_in_another_type_is_cast() -> None:
    """`in_tables` gives int32, and the column is declared as BIGINT."""
    driver = opened(query=enriched("a", "in_tables", ", batch => 2").replace("number INT", "number BIGINT"))
    driver.insert("a", {"id": 1, "what": "x"})
    driver.step()
    assert driver.table("e") == [{"id": 1, "what": "x", "number": 0}]
    assert pa.int64() == driver._engine.version.catalog.get("e").schema.field("number").type
