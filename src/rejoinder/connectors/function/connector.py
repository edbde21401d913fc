"""The function sink: calls a user function for every epoch with changes; at least once, as after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rejoinder.connectors.connector import Connector, SinkSide, TargetContext
from rejoinder.connectors.delivery import Delivery, Target
from rejoinder.errors import UnknownName

PYTHON = "python"


@dataclass(frozen=True)
class FunctionTarget(Target):
    """Calls `function(epoch, changes)`."""

    function: Callable[[int, Any], object]

    def deliver(self, delivery: Delivery) -> None:
        """Call the function. An exception stops the flow."""
        self.function(delivery.epoch, delivery.whole())


class FunctionSink(SinkSide):
    """A function that `foreach_epoch` declares in each process."""

    runs_user_code = True

    def target(self, context: TargetContext) -> FunctionTarget:
        """Return the function. Raises `UnknownName` if it is not declared in this process."""
        sink = context.sink
        if sink.name not in context.functions:
            raise UnknownName(
                f"the function of sink `{sink.name}` is not declared in this process",
                hint=f'call foreach_epoch("{sink.view}", …, name="{sink.name}") again before running, '
                f"or DROP SINK {sink.name}",
            )
        return FunctionTarget(context.functions[sink.name])


FUNCTION = Connector(PYTHON, sink=FunctionSink(), is_listed=False)
