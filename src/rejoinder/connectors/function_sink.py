"""The function sink: calls a user function for every epoch with changes; at least once, as after a crash."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from rejoinder.connectors.delivery import Delivery


@dataclass(frozen=True)
class FunctionTarget:
    """Calls `function(epoch, changes)`."""

    function: Callable[[int, Any], object]
    stores_epochs: ClassVar[bool] = False

    def check(self) -> None:
        """Do nothing: a function cannot be checked before it is called."""

    def delivered(self) -> int | None:
        """Return None: a function does not store epochs."""
        return None

    def deliver(self, delivery: Delivery) -> None:
        """Call the function. An exception stops the flow."""
        self.function(delivery.epoch, delivery.whole())
