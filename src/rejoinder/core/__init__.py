"""The core API: operators on event time as plain objects over Arrow batches, without SQL, flow or Spark.

Each receives `rows(ordinal, batch)`, `watermark(ordinal, key, time)` and `idle(ordinal)`, and returns the messages that
it emits, in order. `snapshot()` and `restore(...)` carry its state over a restart.
"""

from rejoinder.core.async_transform import AsyncTransform
from rejoinder.core.join_condition import JoinCondition
from rejoinder.core.messages import LateRows, Message, Rows
from rejoinder.core.operator import Operator
from rejoinder.core.stream_join import StreamJoin
from rejoinder.core.stream_union import Union
from rejoinder.core.window_aggregate import WindowAggregate
from rejoinder.core.window_state import Call
from rejoinder.ir.expressions.expression import Expression
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.watermarks.coalescer import Idle, Watermark, WatermarkCoalescer
from rejoinder.watermarks.input_watermarks import Delivery, InputWatermarks
from rejoinder.watermarks.source_watermarks import SourceWatermarks

__all__ = [
    "AsyncTransform",
    "Call",
    "Delivery",
    "Expression",
    "Idle",
    "InputWatermarks",
    "JoinCondition",
    "LateRows",
    "Message",
    "Operator",
    "Rows",
    "SourceWatermarks",
    "StreamJoin",
    "Union",
    "Watermark",
    "WatermarkCoalescer",
    "WindowAggregate",
    "text_expression",
]
