"""The public test kit: a driver without a JVM that runs the real engine, and tables written as text."""

from rejoinder.testing.driver import Driver
from rejoinder.testing.tables import from_table

__all__ = ["Driver", "from_table"]
