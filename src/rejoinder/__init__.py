"""Rejoinder: keeps the result of a SQL join up to date on Spark Structured Streaming, and says what changed."""

from typing import TYPE_CHECKING, Any

from rejoinder.errors import RejoinderError

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow
    from rejoinder.api.relation import Relation

__version__ = "0.1.0"
__all__ = ["Flow", "RejoinderError", "Relation", "__version__"]


def __getattr__(name: str) -> Any:
    """Load what needs PySpark when it is asked for: the test kit and reading a state go without."""
    if name == "Flow":
        from rejoinder.api.flow import Flow

        return Flow
    if name == "Relation":
        from rejoinder.api.relation import Relation

        return Relation
    raise AttributeError(f"module 'rejoinder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
