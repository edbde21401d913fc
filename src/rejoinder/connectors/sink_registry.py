"""The registry of sink targets by format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from rejoinder.connectors.console_sink import ConsoleTarget
from rejoinder.connectors.delivery import Host, Target
from rejoinder.connectors.delivery_hosts import LocalHost, SparkHost
from rejoinder.connectors.file_sink import FilesTarget
from rejoinder.connectors.function_sink import FunctionTarget
from rejoinder.connectors.kafka_sink import KafkaTarget, LocalTopic
from rejoinder.errors import UnknownName, Unsupported
from rejoinder.ir.catalog import Sink
from rejoinder.sql.definitions.sink_definition import PYTHON


def make_target(
    sink: Sink, identity: str, schema: pa.Schema, host: Host, functions: Mapping[str, Callable[[int, Any], object]]
) -> Target:
    """Return the target of a sink, without any effect on it.

    Raises `Unsupported` if the format needs Spark, and `UnknownName` if its function is not declared.
    """
    match sink.format:
        case "parquet" | "csv" | "json":
            return FilesTarget(sink, identity)
        case "console":
            return ConsoleTarget(sink)
        case "kafka" if isinstance(host, SparkHost):
            return KafkaTarget(sink, host.session)
        case "kafka" if isinstance(host, LocalHost):
            return LocalTopic(sink, host.messages)
        case _ if sink.format == PYTHON:
            if sink.name not in functions:
                raise UnknownName(
                    f"the function of sink `{sink.name}` is not declared in this process",
                    hint=f'call foreach_epoch("{sink.view}", …, name="{sink.name}") again before running, '
                    f"or DROP SINK {sink.name}",
                )
            return FunctionTarget(functions[sink.name])
        case "delta" if isinstance(host, SparkHost):
            from rejoinder.connectors.delta_sink import DeltaTarget

            return DeltaTarget(sink, identity, schema, host.session)
        case "jdbc" if isinstance(host, SparkHost):
            from rejoinder.connectors.jdbc_sink import JdbcTarget

            return JdbcTarget(sink, identity, schema, host.session)
    raise Unsupported(
        f"sink `{sink.name}` USING {sink.format} needs Spark",
        detail="this is the test driver, which has none",
        hint="run it with rejoinder.Flow, or write files here",
    )
