"""A Kafka broker for engines that read topics: that of the tests.

The harness starts it, so that it is none of the engine's processes and no part of what the engine costs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.broker import Broker, fetch_jars


@contextmanager
def broker(parent: Path) -> Iterator[Broker]:
    """A new broker that runs, with its topics below `parent`; both are gone in the end."""
    folder = Path(tempfile.mkdtemp(prefix="broker-", dir=parent))
    try:
        made = Broker(folder)
        try:
            made.start()
            yield made
        finally:
            made.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def missing(*modules: str) -> str | None:
    """Why the jars of parts of Kafka cannot be had, or None; they are downloaded if need be."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            for module in modules:
                fetch_jars(Path(folder), module)
        except RuntimeError as failure:
            return str(failure).splitlines()[0].rstrip(":")
    return None
