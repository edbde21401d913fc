"""DuckDB as a calculator for Arrow tables: one in-memory connection per process and thread.

A statement is prepared once per (input schema, text) and reused: a query costs about 0.2 ms plus the rows. It can reach
no file and no network, and rows keep their order.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import OrderedDict
from typing import Any, cast

import duckdb
import pyarrow as pa

from rejoinder.host.memory import memory_cap
from rejoinder.kernels.duckdb.arrow_functions import ARROW_FUNCTIONS, ArrowFunction
from rejoinder.kernels.duckdb.functions.user_calls import functions_in

_STATEMENTS = 256
_BATCH_ROWS = 131_072
# Other optimizers change which rows fail: `a + 1 = 2` would become `a = 1`, and no longer fail on overflow.
_OPTIMIZERS = frozenset({"unused_columns", "common_subexpressions"})
# A subexpression that is evaluated before the TRY around it would fail.
_CAREFUL = frozenset({"unused_columns"})
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET preserve_insertion_order = true",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


class _Input:
    """The input of a prepared statement: the table is set for the time of one query."""

    def __init__(self, empty: pa.Table) -> None:
        self.empty = empty
        self.table = empty

    def __arrow_c_schema__(self) -> object:
        return self.empty.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Session:
    """One DuckDB connection with the statements prepared on it; used by one thread of one process."""

    def __init__(self, optimizers: frozenset[str] = _OPTIMIZERS) -> None:
        self._connection = duckdb.connect(":memory:", config={"threads": "1"})
        names = self._connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        disabled = ",".join(name for (name,) in names if name not in optimizers)
        limit = f"SET memory_limit = '{memory_cap()} bytes'"
        for setting in (f"SET disabled_optimizers = '{disabled}'", limit, *_SETTINGS):
            self._connection.execute(setting)
        self._prepared: OrderedDict[tuple[object, ...], tuple[str, _Input]] = OrderedDict()
        self._count = 0
        self._functions: set[str] = set()

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
        text = f"{select} {where}"
        for function in (*(each for each in ARROW_FUNCTIONS if each.name in text), *functions_in(text)):
            if function.name not in self._functions:
                self._add(function)
        self._count += 1
        name = f"statement_{self._count}"
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

    def _add(self, function: ArrowFunction) -> None:
        """Let texts call a function. A connection with such a function must be closed before the process ends."""
        connection = cast("Any", self._connection)  # its types know neither `None` nor "arrow"
        nulls = "special" if function.makes_nulls else "default"
        connection.create_function(
            function.name, function.function, None, function.duckdb_result, type="arrow", null_handling=nulls
        )
        if not self._functions:
            atexit.register(_close, weakref.ref(self._connection), os.getpid())
        self._functions.add(function.name)

    def _execute(self, statement: str) -> pa.Table:
        # DuckDB 2's way to Arrow for a statement that is not a relation; its public one copies the rows once more.
        submit = getattr(self._connection, "_submit", None)
        if submit is not None:
            return submit(statement, None, "arrow", _BATCH_ROWS).arrow_table()
        return cast("Any", self._connection.execute(statement)).to_arrow_table(_BATCH_ROWS)


def _close(connection: weakref.ref[duckdb.DuckDBPyConnection], process: int) -> None:
    """Close a connection in the process that made it."""
    alive = connection()
    if alive is not None and process == os.getpid():
        alive.close()


class _Sessions(threading.local):
    """The session of this thread, and the process that made it: a forked child must not use its parent's."""

    process = -1
    session: Session | None = None
    careful: Session | None = None


_sessions = _Sessions()
_abandoned: list[Session] = []
"""Sessions of the parent in a forked child: closing one would wait for threads that were not forked along."""


def session(*, careful: bool = False) -> Session:
    """The session of this thread; `careful`: the one for texts with TRY."""
    if _sessions.process != os.getpid():
        _abandoned.extend(old for old in (_sessions.session, _sessions.careful) if old is not None)
        _sessions.session = _sessions.careful = None
        _sessions.process = os.getpid()
    if careful:
        _sessions.careful = _sessions.careful or Session(_CAREFUL)
        return _sessions.careful
    _sessions.session = _sessions.session or Session()
    return _sessions.session
