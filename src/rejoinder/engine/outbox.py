"""The outbox: delivers every committed epoch to every sink, in order, and tracks the progress of each sink.

If the target stores epochs together with the rows, the epoch in the target decides. The progress of all other sinks,
and that of epochs without changes, is in the manifest (`state.sink_progress`). An epoch is delivered after its commit
and before the next epoch begins. So a crash interrupts at most one delivery, and the next start delivers it first. A
driver delivers only after it has checked that no other driver has taken over. A driver that has not committed yet
commits first.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from rejoinder.connectors.connector import TargetContext
from rejoinder.connectors.delivery import Delivery, EpochChanges, Host, Target
from rejoinder.connectors.registry import sink_side
from rejoinder.engine.definitions.definition_batch import Batch, new_sinks
from rejoinder.engine.engine import Engine
from rejoinder.engine.maintenance.state_deletion import deletion_named
from rejoinder.errors import NotCommitted, RejoinderError, SinkFailed
from rejoinder.faults import reach
from rejoinder.ir.catalog import Sink, View
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.plan.time.unique_keys import is_unique
from rejoinder.secret_options import is_reference, scrubbed
from rejoinder.sql.bind.bind_query import bind_view
from rejoinder.state.reading.changelog_reader import changelog_refs
from rejoinder.state.sink_progress import Delivered, write_progress

Function = Callable[[int, Any], object]
LONGEST_DETAIL = 1000
SNAPSHOT = -2
"""The epoch after which all rows of a view are changes."""


class Outbox:
    """The sinks of a flow. `functions` are those of `foreach_epoch`, by name of the sink."""

    def __init__(self, engine: Engine, host: Host) -> None:
        self.engine = engine
        self.host = host
        self.functions: dict[str, Function] = {}
        self._targets: dict[str, Target] = {}

    def check_new(self, batch: Batch) -> None:
        """Raise `SinkFailed` if a new sink cannot be written to, or `Fenced` if this driver was replaced."""
        for sink in new_sinks(batch):
            try:
                with failures_of(sink, None):
                    self._make(sink, "", readable(batch.catalog, sink.view).schema).check()
            except SinkFailed:
                self.engine.check_fence()  # a driver that took over may have defined this sink
                raise

    def deliver(self) -> None:
        """Deliver all committed epochs that are not delivered yet. Raises `SinkFailed`; later epochs stay pending."""
        engine, start = self.engine, time.perf_counter()
        with engine.lock, deletion_named(engine):  # a driver that took over may have collected files of a delivery
            before = engine.version.delivered
            for sink in engine.version.catalog.sinks:
                identity = engine.version.sinks[sink.name].identity
                try:
                    self._deliver(sink, identity)
                except BaseException:
                    self._targets.pop(identity, None)  # read its progress again at the next attempt
                    raise
            if engine.version.delivered != before:
                self._record()
                engine.log_part("sinks", time.perf_counter() - start)

    def progress(self, sink: Sink) -> int | None:
        """Return the last epoch that is known to be delivered to a sink; None before its first delivery."""
        delivered = self.engine.version.delivered.get(self.engine.version.sinks[sink.name].identity)
        return None if delivered is None else delivered.epoch

    def _deliver(self, sink: Sink, identity: str) -> None:
        engine = self.engine
        schema = readable(engine.version.catalog, sink.view).schema
        is_compared = identity not in self._targets
        if is_compared:
            self._open(sink, identity)
        target = self._targets[identity]
        last = engine.version.delivered[identity].epoch
        since = engine.version.sinks[sink.name].since
        while last < engine.epoch:
            # Rows that a view has before the first epoch, such as the count of no rows, are delivered with the first.
            epoch = max(last + 1, since, 0)
            is_snapshot = last < since
            if epoch > engine.epoch:
                return
            changes = self._changes(sink, schema, SNAPSHOT if is_snapshot else epoch - 1, epoch)
            reach("before_delivery", epoch)
            is_changed = not changes.is_empty
            if is_changed:
                is_new = engine.claim()
                if is_new or not is_compared:  # the target may have lost epochs, or got more from another driver
                    self._compare(sink, identity, target)
                    is_compared = True
                    if is_new or engine.version.delivered[identity].epoch != last:
                        last = engine.version.delivered[identity].epoch
                        continue  # a driver that has just taken over checks the fence once more
                with failures_of(sink, epoch):
                    content = self._changes(sink, schema, SNAPSHOT, epoch)
                    unique = partial(self._is_unique, sink)
                    target.deliver(
                        Delivery(
                            sink,
                            identity,
                            changes,
                            content,
                            self.host,
                            unique,
                            is_snapshot,
                            engine.version.writer_epoch,
                            engine.check_fence,
                            is_first=engine.version.delivered[identity].changed is None,
                        )
                    )
                is_compared = False
                reach("after_delivery", epoch)
            changed = epoch if is_changed else engine.version.delivered[identity].changed
            engine.version = engine.version.with_delivered(identity, Delivered(epoch, changed))
            last = epoch
            if is_changed and not target.stores_epochs:
                self._record()

    def _open(self, sink: Sink, identity: str) -> None:
        """Create the target of a sink, and read its progress."""
        with failures_of(sink, None):
            target = self._make(sink, identity, readable(self.engine.version.catalog, sink.view).schema)
            target.check()
        self._compare(sink, identity, target)
        self._targets[identity] = target

    def _compare(self, sink: Sink, identity: str, target: Target) -> None:
        """Compare the progress of a target with the recorded progress, and record the result.

        Before its first delivery, a sink is at the epoch before its snapshot, or at its definition with `from 'now'`.
        Raises `SinkFailed` if the target has lost delivered epochs, or has epochs that are not committed.
        """
        engine = self.engine
        since = engine.version.sinks[sink.name].since
        with failures_of(sink, None):
            stored = target.delivered()
        if stored is not None and stored > engine.epoch:
            engine.check_fence()  # a driver that took over may have delivered it
            raise SinkFailed(
                f"sink `{sink.name}` has epoch {stored}, and the flow is at epoch {engine.epoch}",
                detail="the state is older than the sink: new epochs would be skipped as delivered",
                hint=f"restore the sink as of epoch {engine.epoch} or earlier, or DROP SINK {sink.name} and create one "
                "that writes elsewhere",
            )
        first = since if sink.options.get("from") == "now" else since - 1
        recorded = engine.version.delivered.get(identity, Delivered(first))
        if target.stores_epochs and recorded.changed is not None:
            if stored is None:
                place = sink.options.get("path") or sink.options.get("dbtable", "")
                raise SinkFailed(
                    f"epoch {recorded.changed} was delivered to sink `{sink.name}`, which has no epoch now",
                    detail=f"its data in `{place}` was deleted, is not mounted, or was replaced",
                    hint=f"restore the sink from a backup (or mount it) and run again, or DROP SINK {sink.name} and "
                    "create it again",
                )
            if stored < recorded.changed:  # an older copy of the target was restored: its epoch decides
                recorded = Delivered(stored, stored)
        if stored is not None and stored > recorded.epoch:
            recorded = Delivered(stored, stored)
        engine.version = engine.version.with_delivered(identity, recorded)

    def _make(self, sink: Sink, identity: str, schema: Any) -> Target:
        return sink_side(sink).target(TargetContext(sink, identity, schema, self.host, self.functions))

    def _changes(self, sink: Sink, schema: Any, after: int, epoch: int) -> EpochChanges:
        engine = self.engine
        assert engine.version.manifest is not None, "an epoch is committed"
        if (epoch if after == SNAPSHOT else after) < engine.version.manifest.extra["since"]:
            raise NotCommitted(
                f"the changes of `{sink.view}` in epoch {epoch} are no longer kept, and sink `{sink.name}` needs them",
                detail=f"history starts at epoch {engine.version.manifest.extra['since']}",
                hint=f"DROP SINK {sink.name} and create it again, and open the flow with a longer history=…",
            )
        refs = [
            ref
            for ref in changelog_refs(engine.version.manifest, sink.view)
            if ref.epochs[0] <= epoch and ref.epochs[1] > after
        ]
        return EpochChanges(engine.store, sink.view, tuple(refs), schema, after, epoch)

    def _is_unique(self, sink: Sink, key: Sequence[str]) -> bool:
        catalog = self.engine.version.catalog
        view = readable(catalog, sink.view)
        return isinstance(view, View) and is_unique(bind_view(view, catalog), key, catalog)

    def _record(self) -> None:
        assert self.engine.version.manifest is not None, "an epoch is committed"
        write_progress(self.engine.store, self.engine.version.manifest, self.engine.version.delivered)


@contextmanager
def failures_of(sink: Sink, epoch: int | None) -> Iterator[None]:
    """Raise `SinkFailed` instead of any other error in a sink, with the sink, the epoch and a hint."""
    try:
        yield
    except RejoinderError:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign system may fail in any way
        cause = None if any(map(is_reference, sink.options.values())) else error  # a traceback may contain a secret
        message = scrubbed(str(error).strip(), sink.options)[:LONGEST_DETAIL]
        detail, values = _split_message(sink, error, message)
        if epoch is None:
            hint = "fix it, or DROP SINK it"
            raise SinkFailed(f"sink `{sink.name}` cannot be used", detail=detail, values=values, hint=hint) from cause
        raise SinkFailed(
            f"sink `{sink.name}` failed at epoch {epoch}",
            detail=detail,
            values=values,
            hint=f"fix it and run again: epoch {epoch} is committed, and is delivered first",
        ) from cause


_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\]")


def _split_message(sink: Sink, error: Exception, message: str) -> tuple[str, str | None]:
    """Split a foreign error into the part that may be shown and the rest, which may quote rows.

    A function may quote rows anywhere. Spark quotes them after the name of its error condition. A database quotes them
    in its message, unless that is about a connection, a name or the like (`DatabaseError.kind`). Other systems quote
    them below the first line.
    """
    name, first = type(error).__name__, message.partition("\n")[0]
    kind, condition = getattr(error, "kind", None), _CONDITION.match(message)
    if sink_side(sink).runs_user_code or not message:
        return f"it raised {name}", message or None
    if isinstance(kind, str):
        return kind, message
    if condition is not None:
        return f"{name}: {condition[1]}", message
    return f"{name}: {first}", message.removeprefix(first).strip() or None
