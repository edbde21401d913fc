"""Values of rows stay out of the texts of errors, unless they are asked for."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from rejoinder.errors import EvaluationError, RejoinderError
from rejoinder.testing import Driver

CANARY = "canary7f3a"
NUMBER = 90_071_992_547


def _cast(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING); CREATE VIEW v AS SELECT CAST(s AS INT) AS n FROM t")
    driver.insert("t", {"s": CANARY})
    driver.step()


def _overflow(driver: Driver, folder: Path) -> None:
    driver.sql(f"CREATE STREAM t (n BIGINT); CREATE VIEW v AS SELECT n * {NUMBER} * {NUMBER} AS n FROM t")
    driver.insert("t", {"n": NUMBER})
    driver.step()


def _query(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING); CREATE VIEW v AS SELECT s FROM t")
    driver.insert("t", {"s": CANARY})
    driver.step()
    driver.sql("SELECT CAST(s AS DATE) AS d FROM v")


def _file(format_: str, columns: str, text: str, options: str = "") -> Callable[[Driver, Path], None]:
    def read(driver: Driver, folder: Path) -> None:
        (folder / "data").mkdir()
        (folder / "data" / f"1.{format_}").write_text(text, encoding="utf-8")
        driver.sql(f"CREATE {columns} USING {format_} OPTIONS (path '{folder}/data'{options})")
        driver.sql("CREATE VIEW v AS SELECT * FROM t")
        driver.step()

    return read


def _late(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING, ts BIGINT, WATERMARK ts DELAY OF 0) OPTIONS (late 'fail')")
    driver.sql("CREATE VIEW v AS SELECT a.s FROM t a JOIN t b ON a.ts = b.ts EMIT FINAL")
    driver.insert("t", {"s": "a", "ts": 100})
    driver.step()
    driver.insert("t", {"s": CANARY, "ts": 1})
    driver.step()


def _missing_row(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE CHANGELOG t (s STRING); CREATE VIEW v AS SELECT a.s FROM t a JOIN t b ON a.s = b.s")
    driver.delete("t", {"s": CANARY})
    driver.step()


def _misfit(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (n BIGINT); CREATE VIEW v AS SELECT n FROM t")
    driver.insert("t", {"n": CANARY})
    driver.step()


def _several_rows(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE TABLE t (s STRING, PRIMARY KEY (s)); CREATE CHANGELOG u (s STRING, n INT)")
    driver.sql("CREATE VIEW v AS SELECT s, (SELECT n FROM u WHERE u.s = t.s) AS n FROM t")
    driver.insert("t", {"s": CANARY})
    driver.insert("u", {"s": CANARY, "n": 1}, {"s": CANARY, "n": 2})
    driver.step()


def _pairs(driver: Driver, folder: Path) -> None:
    limited = Driver(max_pairs=3, show_values=driver.show_values)
    limited.sql("CREATE STREAM t (s STRING, n BIGINT); CREATE VIEW v AS SELECT a.n FROM t a JOIN t b ON a.s = b.s")
    limited.insert("t", *({"s": CANARY, "n": n} for n in range(9)))
    limited.step()


def _function(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING)")
    driver.sql(f"CREATE VIEW v AS SELECT * FROM ENRICH(TABLE t, '{__name__}:refuse', 'n INT')")
    driver.insert("t", {"s": CANARY})
    driver.step()


def refuse(row: dict[str, str]) -> None:
    raise ValueError(f"cannot look up {row['s']}")


def _sink(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING); CREATE VIEW v AS SELECT s FROM t")
    driver.insert("t", {"s": CANARY})

    def send(epoch: int, changes: object) -> None:
        raise ValueError(f"cannot send {CANARY}")

    driver.foreach_epoch("v", send)
    driver.step()


def _key_of_sink(driver: Driver, folder: Path) -> None:
    driver.sql("CREATE STREAM t (s STRING, n INT); CREATE VIEW v AS SELECT s, n FROM t")
    driver.sql("CREATE SINK k FROM v USING kafka OPTIONS (bootstrap 'h:1', topic 't', mode 'upsert', key 's')")
    driver.insert("t", {"s": CANARY, "n": 1}, {"s": CANARY, "n": 2})
    driver.step()


CASES: dict[str, Callable[[Driver, Path], None]] = {
    "cast": _cast,
    "overflow": _overflow,
    "query": _query,
    "csv value": _file("csv", "STREAM t (n INT, s STRING)", f"{CANARY},a\n"),
    "csv fields": _file("csv", "STREAM t (n INT, s STRING)", f"1,{CANARY},{CANARY}\n"),
    "json line": _file("json", "STREAM t (n INT)", f'{{"n": 1}} {CANARY}\n'),
    "json value": _file("json", "STREAM t (n INT)", f'{{"n": "{CANARY}"}}\n'),
    "json time": _file("json", "STREAM t (n TIMESTAMP)", f'{{"n": "{CANARY}"}}\n'),
    "op": _file("json", "CHANGELOG t (n INT)", f'{{"n": 1, "op": "{CANARY}"}}\n', ", op 'op'"),
    "null key": _file("json", "TABLE t (n INT, s STRING, PRIMARY KEY (n))", f'{{"s": "{CANARY}"}}\n'),
    "envelope": _file("json", "TABLE t (n INT, PRIMARY KEY (n))", f'{{"op": "{CANARY}"}}\n', ", envelope 'debezium'"),
    "late row": _late,
    "missing row": _missing_row,
    "row that does not fit": _misfit,
    "scalar subquery with several rows": _several_rows,
    "pairs": _pairs,
    "function": _function,
    "function as a sink": _sink,
    "key of a sink": _key_of_sink,
}


@pytest.mark.parametrize("case", list(CASES))
def test_an_error_shows_values_only_if_asked_for(case: str, tmp_path: Path) -> None:
    with pytest.raises(RejoinderError) as caught:
        CASES[case](Driver(functions=[__name__]), tmp_path)
    error = caught.value
    shown = f"{error} {error!r} {error.detail} {error.hint}"
    assert CANARY not in shown and str(NUMBER) not in shown.replace(f"* {NUMBER}", "")
    if error.values is not None:
        assert "--show-values" in str(error)
    if case not in ("function", "function as a sink"):  # those are chained to what the user's own function raised
        trace = "".join(traceback.format_exception(error))
        assert CANARY not in trace.replace(repr(CANARY), "")


@pytest.mark.parametrize("case", [case for case in CASES if case not in ("cast", "query")])
def test_values_are_shown_if_asked_for(case: str, tmp_path: Path) -> None:
    with pytest.raises(RejoinderError) as caught:
        CASES[case](Driver(show_values=True, functions=[__name__]), tmp_path)
    shown = str(caught.value)  # a cast says no more than its types
    assert CANARY in shown or str(NUMBER) in shown
    assert str(pickle.loads(pickle.dumps(caught.value))) == shown  # noqa: S301 - as Spark carries errors


def test_messages_of_ours_are_shown_as_they_are() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (n INT); CREATE VIEW v AS SELECT 1 / n AS n FROM t")
    driver.insert("t", {"n": 0})
    with pytest.raises(EvaluationError, match="division by zero"):
        driver.step()
