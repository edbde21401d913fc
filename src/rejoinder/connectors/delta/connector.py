"""Delta tables: change feeds as changelogs, and tables as sinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rejoinder.connectors.connector import Connector, Inputs, Rereading, SinkSide, SourceSide, TargetContext
from rejoinder.connectors.delivery import Target
from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.catalog import Kind, Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGE_TYPE = "_change_type"


class FeedSource(SourceSide):
    """The change feed of a table. It can be read again as long as Delta has its versions."""

    options = frozenset(("path", "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger"))
    needs = ("path",)
    noun = "a change feed"
    rereading = Rereading.SPARK
    passes_rows = True

    def normalized(self, name: str, kind: Kind, options: Mapping[str, str]) -> dict[str, str]:
        return feed_options(name, kind, options)

    def splits(self, session: SparkSession, source: Source, inputs: Inputs) -> DataFrame:
        from rejoinder.connectors.delta.spark.tables import change_feed
        from rejoinder.exchange.streaming.source_frames import frame_splits

        return frame_splits(change_feed(session, source.name, source.options, source.schema.names), source.name)

    def lost_records(self, session: SparkSession, source: Source, start: str, end: str) -> str | None:
        """Return why Delta no longer has the versions up to a position; None if it has them."""
        from rejoinder.connectors.delta.spark.versions import NotReadableError, feed_until

        try:
            feed_until(session, source.options, source.schema.names, end)
        except NotReadableError as reason:
            return str(reason)
        return None

    def records(self, session: SparkSession, source: Source, start: str, end: str) -> DataFrame:
        from rejoinder.connectors.delta.spark.versions import feed_until
        from rejoinder.exchange.streaming.source_frames import frame_splits

        return frame_splits(feed_until(session, source.options, source.schema.names, end), source.name)


class DeltaSink(SinkSide):
    """A table that gets all changes, or has one row per key."""

    needs = ("path",)
    modes = ("append", "upsert")
    keyed_modes = ("upsert",)

    def target(self, context: TargetContext) -> Target:
        session = context.session()
        from rejoinder.connectors.delta.spark.target import DeltaTarget

        return DeltaTarget(context.sink, context.identity, context.schema, session)


def feed_options(name: str, kind: Kind, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source on a change feed, with the column that distinguishes inserts from deletes."""
    listed = f"options: {', '.join(options) or 'none'}"
    if kind != "changelog":
        raise Unsupported(
            f"`{name}` USING delta is a {kind}",
            detail="a change feed has inserts and deletes",
            hint="CREATE CHANGELOG: it adds up to the rows that the Delta table has",
        )
    if "op" in options or "diff" in options:
        raise InvalidSql(
            f"`{name}` USING delta has op or diff", detail=listed, hint=f"leave it out: it is {CHANGE_TYPE}"
        )
    if "startingversion" in options and not options["startingversion"].isdigit():
        raise InvalidSql(
            f"option `startingversion` of `{name}` is '{options['startingversion']}'",
            detail=listed,
            hint="the number of a version; without it the feed starts with all rows of now, as inserts",
        )
    return {**options, "op": CHANGE_TYPE}


DELTA = Connector("delta", FeedSource(), DeltaSink())
