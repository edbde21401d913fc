"""Evaluation on Arrow tables: exact, in order, shut off from the outside, and safe across processes and threads."""

from __future__ import annotations

import datetime
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pyarrow as pa
import pytest

from rejoinder import errors
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column, conjunction
from rejoinder.ir.expressions.operators import compared, is_not_null, is_null
from rejoinder.ir.expressions.scalar_operation import ScalarOperation
from rejoinder.kernels.arrow.columns import DIFF
from rejoinder.kernels.duckdb import duckdb_session, evaluate
from rejoinder.kernels.duckdb.duckdb_words import quoted
from rejoinder.kernels.duckdb.evaluate import filter_project, project, select_rows
from rejoinder.kernels.duckdb.text_expression import text_expression

TIMESTAMP = pa.timestamp("us", tz="UTC")
A, S = nodes.Column("a", pa.int64()), nodes.Column("s", pa.string())
ONE, X = nodes.Literal(1, pa.int64()), nodes.Literal("x", pa.string())
FORKING = """
import os
import pyarrow as pa
from rejoinder.kernels.duckdb.evaluate import project
from rejoinder.kernels.duckdb.text_expression import text_expression

def show():
    outputs = [("b", text_expression('"a" + 1', pa.int64(), ["a"]))]
    print(project(pa.table({"a": [1]}), outputs).to_pydict(), flush=True)

show()
child = os.fork()
if not child:
    show()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def expression(sql: str, kind: pa.DataType, *columns: str, can_fail: bool = False) -> Expression:
    return text_expression(sql, kind, columns, text=f"user wrote {sql}", can_fail=can_fail)


@pytest.fixture
def table() -> pa.Table:
    return pa.table(
        {
            "a": pa.array([1, 2, None, 4], pa.int64()),
            "d": pa.array([1.5, math.nan, -0.0, None]),
            "t": pa.array([0, None, -62_135_596_800_000_000, 900_000_000_000_000_000], pa.int64()).cast(TIMESTAMP),
            "s": pa.array(["x", "", None, "é"]),
        }
    )


class TestProject:
    def test_a_bare_column_is_handed_over_without_duckdb(
        self, table: pa.Table, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(evaluate, "session", lambda: pytest.fail("DuckDB was asked"))
        result = project(table, [("b", column("a", pa.int64()))], keep=["s"])
        assert result.column_names == ["b", "s"]
        assert result.column("b").chunk(0).buffers()[1].address == table.column("a").chunk(0).buffers()[1].address

    def test_evaluates_and_keeps(self, table: pa.Table) -> None:
        result = project(table, [("b", expression('"a" + 1', pa.int64(), "a"))], keep=["a"])
        assert result.to_pydict() == {"b": [2, 3, None, 5], "a": [1, 2, None, 4]}

    def test_keeps_columns_of_types_that_duckdb_would_change(self, table: pa.Table) -> None:
        words = table.column("s").dictionary_encode()
        result = project(table.append_column("w", words), [("b", expression("1", pa.int32()))], keep=["w"])
        assert result.column("w").type == words.type

    def test_casts_to_the_declared_type(self, table: pa.Table) -> None:
        result = project(table, [("b", expression('"a"', pa.int32(), "a", "s"))])
        assert result.schema.types == [pa.int32()]

    def test_nan_negative_zero_and_far_times_survive(self, table: pa.Table) -> None:
        outputs = [
            ("d", expression('"d" * 1', pa.float64(), "d")),
            ("t", expression('"t" + INTERVAL 0 DAY', TIMESTAMP, "t")),
        ]
        result = project(table, outputs)
        assert [repr(value) for value in result.column("d").to_pylist()] == ["1.5", "nan", "-0.0", "None"]
        assert result.column("t").cast(pa.int64()).to_pylist() == table.column("t").cast(pa.int64()).to_pylist()

    def test_zones_inside_nested_values_survive(self) -> None:
        kind = pa.struct([("t", TIMESTAMP), ("l", pa.list_(TIMESTAMP)), ("m", pa.map_(pa.string(), TIMESTAMP))])
        value = {"t": datetime.datetime(2020, 1, 1), "l": [None], "m": [("k", datetime.datetime(1, 1, 1))]}
        nested = pa.table({"n": pa.array([value, None], kind)})
        result = project(nested, [("n", expression('COALESCE("n", "n")', kind, "n"))])
        assert result.column("n").combine_chunks().equals(nested.column("n").combine_chunks())

    def test_an_expression_without_columns_has_a_value_for_every_row(self, table: pa.Table) -> None:
        assert project(table, [("one", expression("1", pa.int32()))]).column("one").to_pylist() == [1, 1, 1, 1]

    def test_of_no_rows_has_the_declared_types(self, table: pa.Table) -> None:
        result = project(table.slice(0, 0), [("b", expression('"a" + 1', pa.int64(), "a"))])
        assert (result.num_rows, result.schema.types) == (0, [pa.int64()])

    def test_of_no_outputs_keeps_the_number_of_rows(self, table: pa.Table) -> None:
        assert project(table, []).num_rows == 4

    def test_of_an_untyped_null(self, table: pa.Table) -> None:
        assert project(table, [("n", expression("NULL", pa.null()))]).column("n").null_count == 4

    def test_rows_keep_their_order(self) -> None:
        numbers = np.random.default_rng(7).permutation(400_000)
        chunked = pa.table({"a": pa.chunked_array([numbers[:1000], numbers[1000:]])})
        result = project(chunked, [("b", expression('"a" * 2', pa.int64(), "a"))])
        assert np.array_equal(result.column("b").to_numpy(), numbers * 2)

    @pytest.mark.parametrize("name", ['with "quotes"', "{input}", "a.b", "select", "'", "__row"])
    def test_any_column_name(self, name: str) -> None:
        sql = f"{quoted(name)} + 1"
        result = project(pa.table({name: [1]}), [(name, expression(sql, pa.int64(), name))])
        assert result.to_pydict() == {name: [2]}


class TestSelect:
    PREDICATE = expression('"a" + 0 > 1', pa.bool_(), "a")

    def test_only_true_stays(self, table: pa.Table) -> None:
        assert select_rows(table, self.PREDICATE).column("a").to_pylist() == [2, 4]

    def test_a_boolean_column_is_a_predicate(self) -> None:
        flags = pa.table({"f": [True, None, False]})
        assert select_rows(flags, column("f", pa.bool_())).to_pydict() == {"f": [True]}

    @pytest.mark.parametrize(
        ("sql", "tree"),
        [
            ('"a" > 1', compared(A, ">", ONE)),
            ('1 < "a"', compared(ONE, "<", A)),
            ('"a" <> 2', compared(A, "<>", nodes.Literal(2, pa.int64()))),
            ("\"s\" = 'x'", compared(S, "=", X)),
            ('"s" < \'x\' AND "a" <= 1', nodes.And([compared(S, "<", X), compared(A, "<=", ONE)])),
            ('"a" IS NULL', is_null(A)),
            ('"a" IS NOT NULL AND "s" >= \'x\'', nodes.And([is_not_null(A), compared(S, ">=", X)])),
        ],
    )
    def test_comparisons_in_arrow_select_the_same_rows(
        self, table: pa.Table, sql: str, tree: nodes.Node, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = table.select(["a", "s"])
        slow = select_rows(table, expression(sql, pa.bool_(), "a", "s"))
        monkeypatch.setattr(evaluate, "session", lambda: pytest.fail("DuckDB was asked"))
        fast = select_rows(table, Expression(tree))
        assert fast.equals(slow)

    def test_with_outputs_in_one_query(self, table: pa.Table) -> None:
        outputs = [("b", expression('"a" * 10', pa.int64(), "a")), ("t", column("t", TIMESTAMP))]
        result = filter_project(table, self.PREDICATE, outputs, keep=["s"])
        assert result.column("b").to_pylist() == [20, 40]
        assert result.column("t").equals(table.column("t").take([1, 3]))
        assert result.column("s").to_pylist() == ["", "é"]

    def test_outputs_are_evaluated_for_selected_rows_only(self) -> None:
        numbers = pa.table({"a": [0, 1, 2]})
        risky = expression('CASE WHEN "a" = 0 THEN error(\'zero\') ELSE 10 // "a" END', pa.int64(), "a")
        predicate = expression('"a" + 0 > 0', pa.bool_(), "a")
        assert filter_project(numbers, predicate, [("b", risky)]).to_pydict() == {"b": [10, 5]}

    def test_without_a_predicate_it_projects(self, table: pa.Table) -> None:
        assert filter_project(table, None, [("a", column("a", pa.int64()))]).equals(table.select(["a"]))

    def test_no_row_is_selected(self, table: pa.Table) -> None:
        never = expression('"a" + 0 > 9', pa.bool_(), "a")
        result = filter_project(table, never, [("b", expression('"a" + 1', pa.int64(), "a"))], keep=["s"])
        assert (result.num_rows, result.column_names) == (0, ["b", "s"])


class TestConjunction:
    def test_later_predicates_see_only_the_rows_of_earlier_ones(self) -> None:
        numbers = pa.table({"a": [0, 1, None, 3]})
        risky = expression('CASE WHEN "a" = 0 THEN error(\'zero\') ELSE "a" > 1 END', pa.bool_(), "a", can_fail=True)
        both = conjunction([expression('"a" <> 0', pa.bool_(), "a"), risky])
        assert both is not None and both.can_fail
        assert select_rows(numbers, both).to_pydict() == {"a": [3]}
        assert filter_project(numbers, both, [("b", expression('"a" + 1', pa.int64(), "a"))]).to_pydict() == {"b": [4]}


class TestFailures:
    def test_the_expression_that_failed_is_named(self, table: pa.Table) -> None:
        fine = expression('"a" + 1', pa.int64(), "a")
        bad = expression("CAST(\"s\" || 'x' AS INTEGER)", pa.int32(), "s")
        with pytest.raises(errors.EvaluationError) as failure:
            project(table, [("fine", fine), ("bad", bad)])
        assert "user wrote CAST" in failure.value.fact
        assert failure.value.detail == "a value cannot be converted"
        assert "Could not convert" in str(failure.value.values)

    def test_overflow_fails_though_the_comparison_could_be_turned_around(self) -> None:
        largest = pa.table({"a": pa.array([2**63 - 1])})
        with pytest.raises(errors.EvaluationError, match="failed on a row"):
            select_rows(largest, expression('"a" + CAST(1 AS BIGINT) = 2', pa.bool_(), "a"))

    def test_a_failing_predicate_is_named(self, table: pa.Table) -> None:
        bad = expression("CAST(\"s\" || 'x' AS INTEGER) > 1", pa.bool_(), "s")
        with pytest.raises(errors.EvaluationError, match="user wrote CAST"):
            filter_project(table, bad, [("b", expression('"a" + 1', pa.int64(), "a"))])

    @pytest.mark.parametrize(
        "sql",
        [
            "(SELECT content FROM read_text('/etc/hostname'))",
            "(SELECT count(*) FROM read_csv('/etc/passwd'))",
            "(SELECT count(*) FROM read_parquet('https://example.com/a.parquet'))",
            "getenv('HOME')",
        ],
    )
    def test_nothing_outside_can_be_reached(self, table: pa.Table, sql: str) -> None:
        with pytest.raises(errors.EvaluationError):
            project(table, [("x", expression(sql, pa.string(), "a"))])

    def test_settings_are_locked(self, table: pa.Table) -> None:
        with pytest.raises(Exception, match="lock"):
            duckdb_session.session()._connection.execute("SET enable_external_access = true")


class TestSessions:
    def test_statements_are_kept_and_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(duckdb_session, "_STATEMENTS", 3)
        numbers = pa.table({"a": [1]})
        for _ in range(2):
            for number in range(8):
                sql = f'"a" + {number}'
                result = project(numbers, [("b", expression(sql, pa.int64(), "a"))])
                assert result.to_pydict() == {"b": [1 + number]}

    def test_the_same_text_over_another_schema_is_another_statement(self) -> None:
        for kind in (pa.int32(), pa.int64(), pa.float64()):
            numbers = pa.table({"a": pa.array([1], kind)})
            assert project(numbers, [("b", expression('"a" + 1', pa.int64(), "a"))]).to_pydict() == {"b": [2]}

    def test_no_table_is_held_after_a_query(self, table: pa.Table) -> None:
        project(table, [("b", expression('"a" + 1', pa.int64(), "a"))])
        held = [source for _, source in duckdb_session.session()._prepared.values()]
        assert all(source.table is source.empty for source in held)

    def test_threads_have_sessions_of_their_own(self) -> None:
        results: dict[int, list[int]] = {}

        def work(number: int) -> None:
            numbers = pa.table({"a": list(range(2000))})
            for _ in range(20):
                shifted = project(numbers, [("b", expression(f'"a" + {number}', pa.int64(), "a"))])
                results[number] = shifted.column("b").to_pylist()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == {number: list(range(number, 2000 + number)) for number in range(4)}

    def test_a_forked_child_has_a_session_of_its_own(self) -> None:
        """In a new process, like Spark's daemon: threads of other tests must not be forked."""
        done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "{'b': [2]}\n{'b': [2]}\n"), done.stderr


def test_expressions_travel() -> None:
    one = Expression(compared(A, ">", ONE), "a > 1")
    again = pickle.loads(pickle.dumps(one))  # noqa: S301 (our own bytes)
    assert again == one and again.comparisons == one.comparisons and again.text == one.text


def test_a_column_is_told_from_an_expression() -> None:
    assert column('a"b', pa.int64()).is_column
    assert not text_expression('"a" + 1', pa.int64(), ("a",)).is_column


class TestRepeats:
    """An output that is a list: the row is repeated for each element."""

    ROWS = pa.table({"a": [1, 2, 3, 4], "l": [[7, 8], [], [None, 9], None], "__diff": [1, -1, 2, 1]})
    ELEMENTS = Expression(nodes.Column("l", pa.list_(pa.int64())), repeats=True)

    def test_rows_are_repeated_in_their_order_with_what_is_kept(self) -> None:
        outputs = [("e", self.ELEMENTS), ("b", expression('"a" * 10', pa.int64(), "a"))]
        result = filter_project(self.ROWS, None, outputs, keep=["__diff"])
        assert result.to_pydict() == {"e": [7, 8, None, 9], "b": [10, 10, 30, 30], "__diff": [1, 1, 2, 2]}

    def test_rows_are_selected_before(self) -> None:
        predicate = expression('"a" + 0 > 1', pa.bool_(), "a")
        result = filter_project(self.ROWS, predicate, [("a", column("a", pa.int64())), ("e", self.ELEMENTS)])
        assert result.to_pydict() == {"a": [3, 3], "e": [None, 9]}

    def test_alone_and_of_nothing(self) -> None:
        assert project(self.ROWS, [("e", self.ELEMENTS)]).to_pydict() == {"e": [7, 8, None, 9]}
        assert project(self.ROWS.slice(0, 0), [("e", self.ELEMENTS)]).to_pydict() == {"e": []}


def test_equal_rows_in_the_same_windows_are_repeated_once() -> None:
    times = pa.array([1_000_000, 2_500_000, 2_900_000, 7_000_000, None, None], pa.timestamp("us"))
    table = pa.table({"k": ["a", "a", "a", "a", "b", "b"], "ts": times, DIFF: [1, 1, 2, 1, 1, -1]})
    operation = ScalarOperation("hop_starts", ("4000000", "2000000", "1"), nulls="never")
    starts = Expression(
        nodes.Call(operation, [nodes.Column("ts", times.type)], pa.list_(times.type)), "windows", repeats=True
    )
    outputs = [("k", column("k", pa.string())), ("start", starts)]
    repeated = project(table, outputs, keep=(DIFF,))
    seconds = [micros // 1_000_000 for micros in repeated.column("start").cast(pa.int64()).to_pylist()]
    found = sorted(zip(repeated.column("k").to_pylist(), seconds, repeated.column(DIFF).to_pylist(), strict=True))
    assert found == [("a", -2, 1), ("a", 0, 1), ("a", 0, 3), ("a", 2, 3), ("a", 4, 1), ("a", 6, 1)]
    alone = project(table.drop_columns(["k", DIFF]).slice(0, 3), [("start", starts)])
    assert alone.num_rows == 4 and sorted(alone.column(DIFF).to_pylist()) == [1, 1, 2, 2]
