"""A function of the user's as a sink: called for every epoch with changes; again, if the process died meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rejoinder.connectors.delivery import Delivery


@dataclass(frozen=True)
class FunctionTarget:
    """Calls `function(epoch, changes)`."""

    function: Callable[[int, Any], object]
    remembers: ClassVar[bool] = False

    def check(self) -> None:
        """There is nothing to check before it is called."""

    def delivered(self) -> int | None:
        """It does not say."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Call it. What it raises stops the flow."""
        self.function(delivery.epoch, delivery.whole())
