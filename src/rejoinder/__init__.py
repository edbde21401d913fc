"""Rejoinder: keeps the result of a SQL join up to date on Spark Structured Streaming, and says what changed."""

from typing import TYPE_CHECKING, Any

from rejoinder.api.relation import Relation
from rejoinder.errors import RejoinderError

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow

__version__ = "0.1.0"
__all__ = ["Flow", "RejoinderError", "Relation", "__version__"]


def __getattr__(name: str) -> Any:
    """Load what needs PySpark when it is asked for: the test driver and the workers do without."""
    if name == "Flow":
        from rejoinder.api.flow import Flow

        return Flow
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
