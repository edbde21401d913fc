"""Long chains of operands that can fail by themselves: planned and evaluated at a cost that grows with their length."""

from __future__ import annotations

import itertools

import duckdb
import pytest

from rejoinder.errors import EvaluationError
from rejoinder.kernels.duckdb.render import short_circuit
from rejoinder.testing import Driver
from tests.deep import DEEP

CAST = "CAST(s AS INT)"
CHAINS: dict[str, tuple[str, object]] = {
    "sum": (" + ".join([CAST] * 500), 500),
    "sum to the right": (f"{CAST} + (" * 100 + CAST + ")" * 100, 101),
    "and": (" AND ".join(f"{CAST} <> {number + 5}" for number in range(150)), True),
    "or": (" OR ".join(f"{CAST} = {number + 5}" for number in range(150)), False),
    "and of or": (" AND ".join(f"({CAST} <> {n + 5} OR CAST(s AS BIGINT) > {n})" for n in range(100)), True),
    "concat": (" || ".join([f"CAST({CAST} AS STRING)"] * 200), "1" * 200),
    "case": ("CASE " + " ".join(f"WHEN {CAST} = {n + 5} THEN {n}" for n in range(150)) + " ELSE -1 END", -1),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_is_evaluated_and_fails_on_the_row_at_fault_only(chain: str) -> None:
    text, expected = CHAINS[chain]
    driver = Driver()
    driver.sql(f"CREATE STREAM t (s STRING); CREATE VIEW v AS SELECT {text} AS r FROM t")
    driver.insert("t", {"s": "1"}, {"s": None})
    driver.step()
    assert [row["r"] for row in driver.table("v")] in ([expected, None], [None, expected], [expected, expected])
    driver.insert("t", {"s": "one"})
    with pytest.raises(EvaluationError, match="failed on a row"):
        driver.step()


def _naive(states: tuple[str, ...], word: str) -> str:
    """What Spark answers: conditions in turn, until one decides or fails."""
    decides = "f" if word == "AND" else "t"
    has_null = False
    for state in states:
        if state in (decides, "e"):
            return state
        has_null = has_null or state == "n"
    return "n" if has_null else {"f": "t", "t": "f"}[decides]


@pytest.mark.parametrize("word", ["AND", "OR"])
@pytest.mark.parametrize(
    "long", [(), (1, 2), *(pytest.param(long, marks=DEEP) for long in ((0,), (0, 1, 2, 3), (3,)))], ids=str
)
def test_conditions_stop_where_spark_stops(word: str, long: tuple[int, ...]) -> None:
    connection = duckdb.connect()
    for states in itertools.product("tfne", repeat=4):
        columns = ", ".join(f"'{state}' AS c{number}" for number, state in enumerate(states))

        def condition(number: int) -> str:
            column = f"c{number}" if number not in long else "concat(" + f"c{number}, " * 1 + "''" + ", ''" * 50 + ")"
            value = f"CASE {column} WHEN 't' THEN TRUE WHEN 'f' THEN FALSE WHEN 'n' THEN NULL ELSE error('x') END"
            return f"({value})"

        text = short_circuit([(condition(number), True) for number in range(4)], word)
        expected = _naive(states, word)
        try:
            (found,) = connection.execute(f"SELECT {text} FROM (SELECT {columns})").fetchone() or ("missing",)
            answer = {True: "t", False: "f", None: "n"}[found]
        except duckdb.InvalidInputException:
            answer = "e"
        assert answer == expected, (states, text)
