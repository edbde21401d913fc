"""Queries on sources that no view reads, answered on Spark: a flow in a folder of its own, which is removed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rejoinder.engine.maintenance.vacuum import QUERIES
from rejoinder.engine.statements import Answer
from rejoinder.engine.unread_sources import answer_here, reading_of, unread_sources
from rejoinder.errors import Unsupported
from rejoinder.exchange.session import spark_session
from rejoinder.host.entropy import token
from rejoinder.host.temporary_folders import short_lived_folder
from rejoinder.sql.statements.statement_parser import Select

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow


def answer_unread(flow: Flow, statement: Select) -> Answer:
    """Read the sources from their start with a flow of its own, answer, and remove it. Raises what stops its epochs."""
    from rejoinder.api.flow import Flow

    reading, engine = reading_of(flow.engine, statement), flow.engine
    with _folder(flow, statement) as folder:
        scratch = Flow(folder, spark=flow.spark, parallelism=engine.buckets, max_pairs=engine.max_pairs)
        scratch._frames = flow._frames
        scratch.engine.define(reading.catalog)
        for name, rows in reading.copied.items():
            scratch.insert(name, rows)
        scratch.run()
        return answer_here(scratch.engine, statement)


@contextmanager
def _folder(flow: Flow, statement: Select) -> Iterator[str]:
    """Yield a folder that all tasks can access: a temporary one on a local session, else one in the state."""
    if spark_session.is_local(flow.spark):
        with short_lived_folder("query") as folder:
            yield f"{folder}/state"
        return
    store = flow.engine.store
    if not store.is_local:
        source = unread_sources(flow.engine, statement.query)[0]
        raise Unsupported(
            f"no view reads `{source.name}`, and a query cannot read it on this cluster",
            detail=f"the state is in `{store.url}`, and such a query needs a folder that all workers share",
            hint=f"CREATE VIEW … AS SELECT … FROM {source.name}, and run the flow",
        )
    shared = f"{store.path}/{QUERIES}/{token(8)}"
    try:
        yield shared
    finally:
        shutil.rmtree(shared, ignore_errors=True)
        with suppress(OSError):  # it is not empty while other queries run
            os.rmdir(os.path.dirname(shared))
