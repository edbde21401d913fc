"""Rejoinder: keeps the results of SQL queries up to date on Spark Structured Streaming, and reports what changed."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rejoinder.errors import RejoinderError

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow
    from rejoinder.api.relations.relation import Relation
    from rejoinder.api.relations.stream import Stream
    from rejoinder.api.relations.table import Table
    from rejoinder.api.relations.time_windows import cumulate, hop, session, tumble
    from rejoinder.api.relations.windowed import WindowedTable

__version__ = "0.1.0"
__all__ = [
    "Flow",
    "RejoinderError",
    "Relation",
    "Stream",
    "Table",
    "WindowedTable",
    "__version__",
    "cumulate",
    "hop",
    "session",
    "tumble",
]
_PLACES = {
    "Flow": "flow",
    "Relation": "relations.relation",
    "Stream": "relations.stream",
    "Table": "relations.table",
    "WindowedTable": "relations.windowed",
    "cumulate": "relations.time_windows",
    "hop": "relations.time_windows",
    "session": "relations.time_windows",
    "tumble": "relations.time_windows",
}


def __getattr__(name: str) -> Any:
    """Load what needs PySpark when it is asked for: the test kit and reading a state go without."""
    if name in _PLACES:
        return getattr(import_module(f"rejoinder.api.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'rejoinder' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
