"""Answer queries on sources that no view reads in this process: a temporary driver reads their files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rejoinder.connectors.registry import source_side
from rejoinder.engine.engine import Engine
from rejoinder.engine.statements import Answer
from rejoinder.engine.unread_sources import answer_here, reading_of, unread_sources
from rejoinder.errors import Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.sql.statements.statement_parser import Select
from rejoinder.testing.file_sources import new_files

if TYPE_CHECKING:
    from rejoinder.testing.driver import Driver


def answer_unread(
    engine: Engine, statement: Select, make: Callable[[], Driver], pending: Sequence[tuple[Source, Any, int]] = ()
) -> Answer:
    """Answer a query on unread sources with a driver from `make`, including `pending` rows of these sources."""
    reading, unread = reading_of(engine, statement), {s.name for s in unread_sources(engine, statement.query)}
    driver = make()
    driver._engine.define(reading.catalog)
    for name, rows in reading.copied.items():
        driver.insert(name, *rows.to_pylist())
    for source, row, sign in pending:
        if source.name in unread:
            (driver.insert if sign > 0 else driver.delete)(source.name, row)
    driver.step()
    while new_files(driver._engine)[1]:
        driver.step()
    return answer_here(driver._engine, statement)


def refuse_remote(engine: Engine, query: str) -> None:
    """Raise `Unsupported` for a query on unread sources that this process cannot read."""
    for source in unread_sources(engine, query):
        path = source.options.get("path", "").removeprefix("file://")
        if "://" in path or not source_side(source).rereads_files:
            raise Unsupported(
                f"no view reads `{source.name}`, and it cannot be read without Spark",
                detail=f"it is a source USING {source.format}",
                hint="put the SELECT into a file and `rejoinder run` it, or CREATE VIEW on the source",
            )
