"""The lifecycle of a flow object: `with Flow(…) as flow`, `close`, and `repr`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rejoinder.errors import StateError
from rejoinder.store.objects.object_store import ObjectStore

if TYPE_CHECKING:
    from typing_extensions import Self

    from rejoinder.engine.engine import Engine
    from rejoinder.exchange.session.spark_session import Lease
    from rejoinder.exchange.streaming.query_runner import Runner


class Lifecycle:
    """The part of a flow that opens and closes it."""

    engine: Engine
    _runner: Runner
    _lease: Lease
    _is_closed = False

    def __enter__(self) -> Self:
        self._refuse_closed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Exception:
            if value is None:  # otherwise the error of the body is raised
                raise

    def close(self) -> None:
        """Stop the flow after the current epoch, and stop the Spark session if the flow created it.

        A session that was passed in, or that another open flow uses, is not stopped. Open a new `Flow` on the state to
        continue. Closing twice has no effect. Raises the error that stopped the flow before, unless `run` or `wait` has
        raised it.
        """
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._runner.stop()
        except Exception:
            if not self._runner.is_reported:
                raise
        finally:
            self._lease.release()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise StateError(
                "the flow is closed",
                detail=f"state {self.engine.store.url}",
                hint="open it again: rejoinder.Flow(…) on the same state continues where this one stopped",
            )

    def __repr__(self) -> str:
        catalog = self.engine.version.catalog
        counts = [_count(len(catalog.sources), "source"), _count(len(catalog.views), "view")]
        if catalog.sinks:
            counts.append(_count(len(catalog.sinks), "sink"))
        epoch = f"epoch {self.engine.epoch}" if self.engine.epoch >= 0 else "no epoch yet"
        status = "closed" if self._is_closed else "running" if self._runner.is_running else "not running"
        return f"<Flow {place_of(self.engine.store)}: {', '.join([epoch, *counts, status])}>"


def place_of(store: ObjectStore) -> str:
    """Return the path or URL of a state, without credentials."""
    return store.path if store.is_local else store.url


def name_of(store: ObjectStore) -> str:
    """Return the name of a flow in Spark's UI: the last part of the path of its state."""
    return f"rejoinder {store.url.rstrip('/').rpartition('/')[2] or 'flow'}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
