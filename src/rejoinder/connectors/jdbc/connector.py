"""Tables of databases with a JDBC driver."""

from __future__ import annotations

from rejoinder.connectors.connector import Connector, SinkSide, TargetContext
from rejoinder.connectors.delivery import Target


class JdbcSink(SinkSide):
    """A table that gets all changes, or has one row per key."""

    needs = ("url", "dbtable")
    takes = ("user", "password", "driver", "batchsize")
    modes = ("append", "upsert")
    keyed_modes = ("upsert",)

    def target(self, context: TargetContext) -> Target:
        session = context.session()
        from rejoinder.connectors.jdbc.spark.target import JdbcTarget

        return JdbcTarget(context.sink, context.identity, context.schema, session)


JDBC = Connector("jdbc", sink=JdbcSink())
