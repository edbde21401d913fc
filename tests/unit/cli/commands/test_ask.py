"""`rejoinder sql` and `rejoinder explain`, on a state that the test driver made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rejoinder.engine.engine import Engine
from rejoinder.engine.statements import Answer, execute
from rejoinder.errors import Corrupt
from rejoinder.sql.statements.statement_parser import Question
from rejoinder.testing import Driver
from tests.unit.cli.conftest import Rejoinder


def lines(text: str) -> list[str]:
    """Lines without the space around them, and with single spaces inside."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_select_prints_an_aligned_table_and_the_number_of_rows(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "SELECT id, price, at FROM priced ORDER BY id DESC")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "id   price   at",
        "────────────────────────────────",
        " 2    4.25   NULL",
        " 1    4.25   2026-01-01 10:00:00",
        "(2 rows)",
    ]


def test_stream_shows_what_was_taken_back(rejoinder: Rejoinder, shop: str) -> None:
    shown = lines(rejoinder("sql", shop, "SELECT STREAM * FROM priced").stdout)
    assert shown[0] == "id item price at _epoch _emit_time _undo"
    assert shown[4] == "1 tea 3.50 2026-01-01 10:00:00 1 2026-01-01 10:00:01.5 true"
    assert shown[6] == "1 tea 4.25 2026-01-01 10:00:00 1 2026-01-01 10:00:01.5 false"
    assert shown[-1] == "(6 changes)"


def test_tvr_shows_each_snapshot_with_the_time_for_which_it_held(rejoinder: Rejoinder, shop: str) -> None:
    shown = lines(rejoinder("sql", shop, "SELECT TVR * FROM priced").stdout)
    assert [line for line in shown if line.startswith("from")] == [
        "from the beginning to 2026-01-01 10:00:00",
        "from 2026-01-01 10:00:00 (epoch 0) to 2026-01-01 10:00:01.5",
        "from 2026-01-01 10:00:01.5 (epoch 1) to now",
    ]


def test_show_and_explain(rejoinder: Rejoinder, shop: str) -> None:
    shown = lines(rejoinder("sql", shop, "SHOW VIEWS; SHOW SOURCES; SHOW ARRANGEMENTS; SHOW WATERMARKS").stdout)
    assert any(line.startswith("priced id bigint, item string, price decimal(10,2)") for line in shown)
    assert any(line.startswith("prices table memory item string") for line in shown)
    assert any(line.startswith("orders[item] orders item rows 2") for line in shown)
    plan = rejoinder("explain", shop, "priced").stdout
    assert plan == rejoinder("sql", shop, "EXPLAIN priced").stdout
    assert "changes of orders" in plan
    assert "shared with priced" in rejoinder("explain", shop, "SELECT id FROM orders JOIN prices USING (item)").stdout


def test_statements_come_through_a_pipe(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, stdin="SELECT id FROM priced\nWHERE id = 1;\nSELECT item FROM priced;")
    assert lines(result.stdout) == ["id", "──", "1", "(1 row)", "item", "────", "tea", "tea", "(2 rows)"]


def test_a_view_defined_here_is_filled_at_once_and_kept(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "CREATE VIEW cheap AS SELECT id FROM priced WHERE price < 9; SELECT * FROM cheap")
    assert result.exit_code == 0
    assert result.stderr == "created view cheap\n"
    assert lines(result.stdout)[-1] == "(2 rows)"
    driver = Driver(store=shop)
    driver.insert("orders", {"id": 3, "item": "tea"})
    assert driver.step()["cheap"] == [({"id": 3}, 1)]
    assert rejoinder("sql", shop, "DROP VIEW cheap").stderr == "dropped cheap\n"


def test_long_results_are_cut_with_a_note(rejoinder: Rejoinder, shop: str) -> None:
    driver = Driver(store=shop)
    driver.insert("orders", *[{"id": number, "item": "tea"} for number in range(3, 151)])
    driver.step()
    assert lines(rejoinder("sql", shop, "SELECT id FROM priced").stdout)[-1] == (
        "(the first 100 of 150 rows; --limit 0 shows all)"
    )
    assert lines(rejoinder("sql", shop, "SELECT id FROM priced", "--limit", "0").stdout)[-1] == "(150 rows)"
    assert len(lines(rejoinder("sql", shop, "SELECT id FROM priced", "--limit", "2").stdout)) == 5
    assert len(lines(rejoinder("sql", shop, "SELECT id FROM priced", "--format", "csv").stdout)) == 151


def test_json_and_csv_for_other_programs(rejoinder: Rejoinder, shop: str) -> None:
    query = "SELECT id, price, at FROM priced ORDER BY id"
    rows = [json.loads(line) for line in rejoinder("sql", shop, query, "--format", "json").stdout.splitlines()]
    assert rows == [
        {"id": 1, "price": "4.25", "at": "2026-01-01 10:00:00"},
        {"id": 2, "price": "4.25", "at": None},
    ]
    assert rejoinder("sql", shop, query, "--format", "csv").stdout == (
        "id,price,at\n1,4.25,2026-01-01 10:00:00\n2,4.25,\n"
    )
    stream = rejoinder("sql", shop, "SELECT STREAM * FROM priced", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["_undo"] for line in stream] == [False, False, True, True, False, False]
    tvr = rejoinder("sql", shop, "SELECT TVR * FROM priced", "--format", "csv").stdout.splitlines()
    assert tvr[1] == "2026-01-01 10:00:00,2026-01-01 10:00:01.5,1,tea,3.50,2026-01-01 10:00:00"


def test_an_error_has_fact_detail_and_hint_and_no_traceback(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "SELECT * FROM price")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines() == [
        "error: there is no relation `price`  [RJ102]",
        "  line 1:15",
        "  1 │ SELECT * FROM price",
        "    │               ^^^^^",
        "Detail: known: orders, prices, priced",
        "Hint: did you mean `prices` or `priced`?",
    ]
    assert "Traceback" in rejoinder("sql", shop, "SELECT * FROM price", "--debug").stderr


def test_an_unexpected_exception_is_an_error_too(
    rejoinder: Rejoinder, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rejoinder.cli.commands.ask.execute", lambda *_: 1 / 0)
    result = rejoinder("sql", shop, "SELECT * FROM priced")
    assert result.exit_code == 1 and "error: unexpected ZeroDivisionError  [RJ000]" in result.stderr


def test_files_that_a_running_flow_drops_while_they_are_read(
    rejoinder: Rejoinder, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(store=shop, parallelism=2)
    turns = []

    def overtaken(engine: Engine, statement: Question) -> Answer:
        turns.append(engine.epoch)
        if len(turns) == 1:
            driver.step()
            raise Corrupt("an object of the state is missing")
        return execute(engine, statement)

    monkeypatch.setattr("rejoinder.cli.commands.ask.execute", overtaken)
    assert "(2 rows)" in rejoinder("sql", shop, "SELECT id FROM priced").stdout
    assert turns == [1, 2]
    turns.clear()
    monkeypatch.setattr(driver, "step", lambda: None)
    assert "an object of the state is missing" in rejoinder("sql", shop, "SELECT id FROM priced").stderr


def test_a_state_that_is_not_there(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", "shopp", "SELECT * FROM priced")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "error: there is no state in `shopp`  [RJ404]",
        "Hint: states nearby: shop",
    ]
    assert not Path("shopp").exists()
    assert rejoinder("explain", "shopp", "priced").exit_code == 1


def test_a_first_create_makes_a_state(rejoinder: Rejoinder) -> None:
    made = rejoinder("sql", "new", "CREATE STREAM s (id BIGINT); CREATE VIEW v AS SELECT id FROM s")
    assert (made.exit_code, made.stderr) == (0, "created stream s\ncreated view v\n")
    assert lines(rejoinder("sql", "new", "SELECT * FROM v").stdout) == ["id", "──", "(0 rows)"]


def test_no_statement_at_all(rejoinder: Rejoinder, shop: str) -> None:
    assert "there is no statement" in rejoinder("sql", shop, "").stderr
    assert "there is no statement" in rejoinder("sql", shop, stdin="-- nothing\n").stderr


def test_reading_loads_no_pyspark(shop: str) -> None:
    program = (
        "import sys; from rejoinder.cli.main import app\n"
        f"app(['sql', {shop!r}, 'SELECT * FROM priced; CREATE VIEW w AS SELECT id FROM priced; SELECT * FROM w'],"
        " standalone_mode=False)\n"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_the_changes_of_a_query_are_shown_with_its_own_words(rejoinder: Rejoinder, shop: str) -> None:
    query = (
        "SELECT STREAM price, Sys.EmitTime AS at, sys.undo, TUMBLE(at, INTERVAL 1 HOUR) AS w FROM priced WHERE id = 1"
    )
    shown = lines(rejoinder("sql", shop, query).stdout)
    assert shown[0] == "price at undo w"
    assert shown[2:] == [
        "3.50 2026-01-01 10:00:00 false [2026-01-01 10:00, 11:00)",
        "3.50 2026-01-01 10:00:01.5 true [2026-01-01 10:00, 11:00)",
        "4.25 2026-01-01 10:00:01.5 false [2026-01-01 10:00, 11:00)",
        "(3 changes)",
    ]
    as_json = rejoinder("sql", shop, query.replace("price, ", ""), "--format", "json").stdout
    assert json.loads(as_json.splitlines()[0])["w"] == {"start": "2026-01-01 10:00:00", "end": "2026-01-01 11:00:00"}


def test_the_snapshots_of_a_query_are_ordered(rejoinder: Rejoinder, shop: str) -> None:
    shown = lines(rejoinder("sql", shop, "SELECT TVR id FROM orders ORDER BY id DESC").stdout)
    assert shown[-7:] == [
        "from 2026-01-01 10:00:00 (epoch 0) to now",
        "id",
        "──",
        "2",
        "1",
        "(2 rows)",
        "(2 snapshots)",
    ]
    assert lines(rejoinder("sql", shop, "SELECT TVR id FROM orders ORDER BY id DESC", "--format", "csv").stdout) == [
        "_since,_until,id",
        "2026-01-01 10:00:00,,2",
        "2026-01-01 10:00:00,,1",
    ]


def test_drop_cascade_lists_what_was_dropped(rejoinder: Rejoinder, shop: str) -> None:
    refused = rejoinder("sql", shop, "DROP TABLE prices")
    assert refused.exit_code == 1 and "DROP TABLE prices CASCADE" in refused.stderr
    result = rejoinder("sql", shop, "DROP TABLE prices CASCADE")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["dropped prices", "dropped with it: priced"]


def test_an_order_by_without_effect_is_said(rejoinder: Rejoinder) -> None:
    result = rejoinder("sql", "new", "CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s ORDER BY k")
    assert result.exit_code == 0
    assert result.stderr.splitlines()[-1].startswith("`ORDER BY k` has no effect on view `v`")


def test_what_is_replaced_is_said(rejoinder: Rejoinder) -> None:
    assert rejoinder("sql", "new", "CREATE STREAM s (k INT); CREATE VIEW v AS SELECT k FROM s").exit_code == 0
    result = rejoinder("sql", "new", "CREATE VIEW v AS SELECT k + 1 AS k FROM s")
    assert result.stderr.splitlines() == [
        "created view v",
        "replaced `v`: no row of its sources was committed yet",
    ]
