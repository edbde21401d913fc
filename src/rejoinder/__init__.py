"""Rejoinder: keeps the result of a SQL join up to date on Spark Structured Streaming, and says what changed."""

from rejoinder.api.flow import Flow
from rejoinder.api.relation import Relation
from rejoinder.errors import RejoinderError

__version__ = "0.1.0"
__all__ = ["Flow", "Relation", "RejoinderError", "__version__"]
