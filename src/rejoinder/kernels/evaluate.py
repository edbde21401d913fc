"""Scalar expressions on Arrow tables: DuckDB evaluates, one in-memory connection per process and thread.

An `Expression` is DuckDB text over double-quoted column names, with the type that Spark would give it. The text is
written by `rejoinder.sql.expressions` so that DuckDB's answer is Spark's; this module only runs it. Two contracts hold
between them:

- timestamps are microseconds in UTC, and DuckDB sees them without a zone. The declared type puts the zone back;
- a row's output depends on that row alone, rows keep their order, and an expression can reach no file and no network.

Cost: a bare column is handed over as it is, a conjunction of simple `Comparison`s runs in Arrow, and anything else
costs one DuckDB query whose statement is prepared once per (input schema, text) and reused: about 0.2 ms plus the rows.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder import errors
from rejoinder.kernels.rising import Rising

_ROW = "__row"
_SHORT = 150
_NAMES = re.compile(r"\bonce_([0-9]+)\b")
_STATEMENTS = 256
_BATCH_ROWS = 131_072
# The others rewrite what was written for its effect: `a + 1 = 2` would become `a = 1`, and no longer fail on overflow.
_OPTIMIZERS = frozenset({"unused_columns", "common_subexpressions"})
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET preserve_insertion_order = true",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


@dataclass(frozen=True)
class Comparison:
    """A predicate on one column that Arrow answers as Spark does: `operator` is a name of `pyarrow.compute`.

    `value` has the column's type, and is None for `is_null` and `is_valid`.
    """

    column: str
    operator: str
    value: Any = None


@dataclass(frozen=True)
class Expression:
    """DuckDB text, the type that its values have, and the columns that it reads.

    `text` is what the user wrote, for messages. `comparisons`, if given, is a conjunction with the same TRUE rows as
    `sql`. `throws` says that a row may fail. With `repeats`, `sql` is a list and `type` that of its elements: the row
    comes out once for each of them. At most one output of a projection may do that. `rising`, if given, is a column
    that the value (of a window: its start) rises with.
    """

    sql: str
    type: pa.DataType
    columns: tuple[str, ...]
    text: str = ""
    comparisons: tuple[Comparison, ...] = ()
    throws: bool = False
    repeats: bool = False
    rising: Rising | None = None

    @property
    def is_column(self) -> bool:
        """Say whether this is a bare column, which needs no evaluation."""
        return len(self.columns) == 1 and self.sql == quoted(self.columns[0]) and not self.repeats

    @property
    def rises(self) -> Rising | None:
        """The column that the value rises with: itself, if it is one."""
        return Rising(self.columns[0]) if self.is_column else self.rising


def column(name: str, kind: pa.DataType) -> Expression:
    """Make the expression that is a column as it stands."""
    return Expression(quoted(name), kind, (name,), text=name)


def quoted(name: str) -> str:
    """Quote a column name for DuckDB."""
    return '"' + name.replace('"', '""') + '"'


def conjunction(predicates: Sequence[Expression]) -> Expression:
    """Make the predicate that all of several are TRUE; later ones see only the rows that earlier ones let through."""
    if len(predicates) == 1:
        return predicates[0]
    all_comparisons = all(predicate.comparisons for predicate in predicates)
    return Expression(
        short_circuit([(f"({predicate.sql})", predicate.throws) for predicate in predicates], "AND"),
        pa.bool_(),
        tuple(dict.fromkeys(name for predicate in predicates for name in predicate.columns)),
        text=" AND ".join(predicate.text or predicate.sql for predicate in predicates),
        comparisons=tuple(one for each in predicates for one in each.comparisons) if all_comparisons else (),
        throws=any(predicate.throws for predicate in predicates),
    )


def short_circuit(conditions: Sequence[tuple[str, bool]], word: str) -> str:
    """Connect conditions, each with whether it may fail, by AND or OR, so that a row stops where Spark would stop.

    DuckDB evaluates all of them for all rows; CASE narrows the rows down from condition to condition.
    """
    if not any(throws for _, throws in conditions[1:]):
        return "(" + f" {word} ".join(text for text, _ in conditions) + ")"
    decides, decided = ("(NOT {})", "FALSE") if word == "AND" else ("{}", "TRUE")
    text, later_throws = conditions[-1]
    for condition, throws in reversed(conditions[:-1]):
        if later_throws:
            name, wrap = once(condition, text)
            tested = decides.replace("{}", name)
            text = wrap(f"CASE WHEN {tested} THEN {decided} ELSE ({name} {word} {text}) END")
        else:
            text = f"({condition} {word} {text})"
        later_throws = later_throws or throws
    return text


def once(sql: str, *beside: str, short: int = _SHORT) -> tuple[str, Callable[[str], str]]:
    """Name a text that is about to be used more than once, and give the function that puts it around its use.

    A short text is its own name. A long one is evaluated once: nested, texts would otherwise grow without bound.
    DuckDB has no LET, and a lambda over a list of one value is one. Names do not clash with those in `beside`.
    """
    if len(sql) <= short:
        return sql, lambda body: body
    number = 1 + max((int(used) for text in (sql, *beside) for used in _NAMES.findall(text)), default=0)
    return f"once_{number}", lambda body: f"list_transform([{sql}], lambda once_{number}: {body})[1]"


def project(table: pa.Table, outputs: Sequence[tuple[str, Expression]], keep: Sequence[str] = ()) -> pa.Table:
    """Evaluate all outputs for every row, and append the `keep` columns untouched. Raises `EvaluationError`."""
    if any(expression.repeats for _, expression in outputs):
        return _repeated(table, outputs, keep)
    computed = [(name, expression) for name, expression in outputs if not expression.is_column]
    evaluated = iter(_evaluate(table, [expression for _, expression in computed]))
    arrays = [
        _typed(table.column(expression.columns[0]), expression.type) if expression.is_column else next(evaluated)
        for _, expression in outputs
    ]
    return _assembled(table, [name for name, _ in outputs], arrays, keep)


def select_rows(table: pa.Table, predicate: Expression) -> pa.Table:
    """Keep the rows for which the predicate is TRUE, in their order; FALSE and NULL go. Raises `EvaluationError`."""
    if table.num_rows == 0:
        return table
    if predicate.comparisons:
        mask = _compared(table, predicate.comparisons[0])
        for comparison in predicate.comparisons[1:]:
            mask = pc.and_(mask, _compared(table, comparison))
    elif predicate.is_column:
        mask = table.column(predicate.columns[0])
    else:
        (mask,) = _evaluate(table, [predicate])
    return table.filter(mask)


def filter_project(
    table: pa.Table,
    predicate: Expression | None,
    outputs: Sequence[tuple[str, Expression]],
    keep: Sequence[str] = (),
) -> pa.Table:
    """Select, then project, with one query: outputs are evaluated for the selected rows only.

    Raises `EvaluationError`.
    """
    computed = [expression for _, expression in outputs if not expression.is_column]
    if predicate is None:
        return project(table, outputs, keep)
    repeats = any(expression.repeats for expression in computed)
    if not computed or predicate.comparisons or predicate.is_column or repeats or table.num_rows == 0:
        return project(select_rows(table, predicate), outputs, keep)
    rows, evaluated = _evaluate_selected(table, predicate, computed)
    mask = np.zeros(table.num_rows, dtype=np.bool_)
    mask[rows] = True
    needed = {*keep, *(expression.columns[0] for _, expression in outputs if expression.is_column)}
    selected = table.select([name for name in table.column_names if name in needed]).filter(pa.array(mask))
    remaining = iter(evaluated)
    arrays = [
        _typed(selected.column(expression.columns[0]), expression.type) if expression.is_column else next(remaining)
        for _, expression in outputs
    ]
    return _assembled(selected, [name for name, _ in outputs], arrays, keep)


def infer_types(schema: pa.Schema, sqls: Sequence[str]) -> list[pa.DataType]:
    """Ask DuckDB's binder for the types of texts over a schema; timestamps come back without a zone."""
    empty = _without_zones(schema.empty_table())
    listed = ", ".join(f"{sql} AS {quoted(str(index))}" for index, sql in enumerate(sqls))
    return list(_session().run(empty, f"SELECT {listed}").schema.types)


def _repeated(table: pa.Table, outputs: Sequence[tuple[str, Expression]], keep: Sequence[str]) -> pa.Table:
    """Evaluate outputs of which one is a list, and repeat each row for its elements."""
    (at,) = [index for index, (_, expression) in enumerate(outputs) if expression.repeats]
    name, expression = outputs[at]
    (lists,) = _evaluate(table, [replace(expression, type=pa.list_(expression.type), repeats=False)])
    elements = lists.combine_chunks()
    rest = project(table, [output for output in outputs if output[0] != name], keep)
    rows = pc.list_parent_indices(elements)
    repeated = rest.take(rows) if rest.num_columns else rest
    return repeated.add_column(at, name, pc.list_flatten(elements))


def _assembled(table: pa.Table, names: Sequence[str], arrays: Sequence[Any], keep: Sequence[str]) -> pa.Table:
    columns = [*arrays, *(table.column(name) for name in keep)]
    if not columns:
        return table.select([])
    return pa.Table.from_arrays(columns, names=[*names, *keep])


def _evaluate(table: pa.Table, expressions: Sequence[Expression]) -> list[pa.ChunkedArray]:
    if not expressions:
        return []
    if table.num_rows == 0:
        return [pa.chunked_array([], type=expression.type) for expression in expressions]
    source = _source(table, expressions, with_rows=False)
    listed = ", ".join(f"{expression.sql} AS {quoted(str(index))}" for index, expression in enumerate(expressions))
    try:
        result = _session().run(source, f"SELECT {listed}")
    except duckdb.Error as failure:
        if len(expressions) > 1:
            # Alone, the one that fails is known by name.
            for expression in expressions:
                _evaluate(table, [expression])
        raise _failed(expressions[0], failure) from failure
    return [_typed(result.column(index), expression.type) for index, expression in enumerate(expressions)]


def _evaluate_selected(
    table: pa.Table, predicate: Expression, expressions: Sequence[Expression]
) -> tuple[Any, list[pa.ChunkedArray]]:
    """Give the positions of the selected rows, rising, and the outputs for them."""
    source = _source(table, [predicate, *expressions], with_rows=True)
    listed = ", ".join(f"{expression.sql} AS {quoted(str(index))}" for index, expression in enumerate(expressions))
    try:
        result = _session().run(source, f"SELECT {listed}, {quoted(_ROW)}", f"WHERE {predicate.sql}")
    except duckdb.Error:
        _evaluate(select_rows(table, predicate), expressions)
        raise
    evaluated = [_typed(result.column(index), expression.type) for index, expression in enumerate(expressions)]
    return result.column(_ROW).to_numpy(), evaluated


def _source(table: pa.Table, expressions: Sequence[Expression], *, with_rows: bool) -> pa.Table:
    """Narrow a table to what expressions read, without zones; a table for DuckDB has at least one column."""
    needed = {name for expression in expressions for name in expression.columns}
    narrow = _without_zones(table.select([name for name in table.column_names if name in needed]))
    if with_rows or not needed:
        narrow = narrow.append_column(_ROW, pa.array(np.arange(table.num_rows, dtype=np.int64)))
    return narrow


def _compared(table: pa.Table, comparison: Comparison) -> pa.ChunkedArray:
    values = table.column(comparison.column)
    if comparison.value is None:
        return pc.call_function(comparison.operator, [values])
    return pc.call_function(comparison.operator, [values, pa.scalar(comparison.value, type=values.type)])


def _failed(expression: Expression, failure: duckdb.Error) -> errors.EvaluationError:
    message = str(failure).splitlines()[0]
    return errors.EvaluationError(
        f"`{expression.text or expression.sql}` failed on a row",
        detail=message,
        hint="guard it with CASE or TRY_CAST, or filter such rows out before",
    )


def _without_zones(table: pa.Table) -> pa.Table:
    for index, field in enumerate(table.schema):
        bare = _bare(field.type)
        if bare is not field.type:
            table = table.set_column(index, field.name, _typed(table.column(index), bare))
    return table


def _bare(kind: pa.DataType) -> pa.DataType:
    """Give the type without zones, and the very same object if it has none."""
    if pa.types.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit)
    if pa.types.is_list(kind):
        item = _bare(kind.value_type)
        return kind if item is kind.value_type else pa.list_(kind.value_field.with_type(item))
    if pa.types.is_map(kind):
        key, item = _bare(kind.key_type), _bare(kind.item_type)
        return kind if key is kind.key_type and item is kind.item_type else pa.map_(key, item)
    if pa.types.is_struct(kind):
        types = [_bare(field.type) for field in kind]
        if all(new is field.type for new, field in zip(types, kind, strict=True)):
            return kind
        return pa.struct([field.with_type(new) for new, field in zip(types, kind, strict=True)])
    return kind


def _typed(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast exactly; a zone is only a label, so putting it on or off copies nothing."""
    if values.type == kind:
        return values
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(values))])
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(values.type) and kind.unit == values.type.unit:
        return pa.chunked_array([chunk.view(kind) for chunk in values.chunks], type=kind)
    return values.cast(kind)


class _Input:
    """What a prepared statement reads: the table is put in for the time of one query."""

    def __init__(self, empty: pa.Table) -> None:
        self.empty = empty
        self.table = empty

    def __arrow_c_schema__(self) -> object:
        return self.empty.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class _Session:
    """One DuckDB connection with the statements prepared on it; used by one thread of one process."""

    def __init__(self) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": "1"})
        known = self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        disabled = ",".join(name for (name,) in known if name not in _OPTIMIZERS)
        for setting in (f"SET disabled_optimizers = '{disabled}'", *_SETTINGS):
            self._connection.execute(setting)
        self._prepared: OrderedDict[tuple[object, ...], tuple[str, _Input]] = OrderedDict()
        self._made = 0

    def run(self, table: pa.Table, select: str, where: str = "") -> pa.Table:
        """Run a query over a table: `select FROM table where`. Raises `duckdb.Error`."""
        name, source = self._statement(table.schema, select, where)
        source.table = table
        try:
            return self._execute(f"EXECUTE {name}")
        finally:
            source.table = source.empty

    def _statement(self, schema: pa.Schema, select: str, where: str) -> tuple[str, _Input]:
        key = (select, where, *schema.names, *map(str, schema.types))
        if key in self._prepared:
            self._prepared.move_to_end(key)
            return self._prepared[key]
        self._made += 1
        name = f"statement_{self._made}"
        source = _Input(schema.remove_metadata().empty_table())
        self._connection.register(f"input_{name}", source)
        try:
            self._connection.execute(f"PREPARE {name} AS {select} FROM input_{name} {where}")
        except duckdb.Error:
            self._connection.unregister(f"input_{name}")
            raise
        self._prepared[key] = (name, source)
        if len(self._prepared) > _STATEMENTS:
            _, (oldest, _) = self._prepared.popitem(last=False)
            self._connection.execute(f"DEALLOCATE {oldest}")
            self._connection.unregister(f"input_{oldest}")
        return self._prepared[key]

    def _execute(self, statement: str) -> pa.Table:
        # DuckDB 2's way to Arrow for a statement that is not a relation; its public one copies the rows once more.
        submit = getattr(self._connection, "_submit", None)
        if submit is not None:
            return submit(statement, None, "arrow", _BATCH_ROWS).arrow_table()
        return cast("Any", self._connection.execute(statement)).to_arrow_table(_BATCH_ROWS)


class _Sessions(threading.local):
    """The session of this thread, and the process that made it: a forked child must not use its parent's."""

    process = -1
    session: _Session | None = None


_sessions = _Sessions()
_abandoned: list[_Session] = []
"""Sessions of the parent in a forked child: closing one would wait for threads that were not forked along."""


def _session() -> _Session:
    session = _sessions.session
    if session is None or _sessions.process != os.getpid():
        if session is not None:
            _abandoned.append(session)
        _sessions.session = session = _Session()
        _sessions.process = os.getpid()
    return session
