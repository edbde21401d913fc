"""Runs the streaming query of a flow: turns sources into splits, writes the checkpoint, ticks, translates errors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rejoinder.errors import MissingInput, RejoinderError, RuntimeMismatch, StateError, Unsupported
from rejoinder.exchange.session.spark_session import missing_settings
from rejoinder.exchange.streaming import checkpoint
from rejoinder.exchange.streaming.checkpoint_log import StreamRead
from rejoinder.exchange.streaming.source_frames import streams_in, union_splits
from rejoinder.exchange.streaming.streaming_query import interpreted, start_query, wait_for
from rejoinder.exchange.streaming.ticks import Ticker
from rejoinder.host.private_files import make_folder
from rejoinder.ir.streams import StreamId

OnBatch = Callable[[DataFrame, int], None]


class Stream(Protocol):
    """The input of a source, as its connector reads it."""

    @property
    def name(self) -> str:
        """The source."""

    @property
    def passes_rows(self) -> bool:
        """Whether rows pass through the JVM. Otherwise Spark sees only paths."""

    def partitions(self, session: SparkSession) -> list[int]:
        """Return the partitions that exist now; empty if the source has none of its own."""

    def splits(self, session: SparkSession) -> DataFrame:
        """Return the input as a stream of splits."""


class Ledger(checkpoint.Ledger, Protocol):
    """The engine: positions, a lock that an epoch holds, and fencing."""

    @property
    def lock(self) -> AbstractContextManager[Any]: ...
    def check_fence(self) -> None: ...
    def check_present(self) -> None: ...


class Runner:
    """One streaming query at a time."""

    def __init__(
        self, session: SparkSession, folder: str, ledger: Ledger, on_batch: OnBatch, ticker: Ticker, *, name: str
    ) -> None:
        self.session = session
        self.name = name
        self.checkpoint = checkpoint.Checkpoint(folder, session)
        self.ledger = ledger
        self.ticker = ticker
        self.on_batch = on_batch
        self.interval = ""
        self.is_ticking = False
        self.query: StreamingQuery | None = None
        self.partitions: dict[str, list[int]] = {}  # of topics, by source
        self.failure: BaseException | None = None
        self.is_reported = False  # whether `wait` has raised the failure of the query
        self._streams: list[StreamId] = []  # Spark's own sources, as its progress lists them
        self._is_idle = False
        self._is_stopping = self._is_cancelling = False
        self._thread: int | None = None  # the thread of the epoch in progress

    @property
    def is_running(self) -> bool:
        """Whether the query is active, or would be if the flow had a source."""
        return self._is_idle or (self.query is not None and bool(self.query.isActive))

    def start(
        self,
        sources: Sequence[Stream],
        *,
        add_rounds: Callable[[DataFrame], DataFrame],
        is_ticking: bool,
        once: bool,
        interval: str,
    ) -> None:
        """Start reading the sources from their positions in the last committed epoch. Does not block.

        `add_rounds` appends the rounds to the splits. `is_ticking`: the clock may cause epochs without input.
        """
        if self.is_running:
            raise StateError("the flow is already running", hint="stop() it first, or wait() for it")
        self.ticker.stop()
        self.failure, self.is_reported = None, False
        self.interval, self.is_ticking = interval, is_ticking
        self._is_stopping = self._is_cancelling = False
        self._is_idle = not sources and not once
        self.query = None
        if not sources:
            return
        partitions = {source.name: source.partitions(self.session) for source in sources}
        self.partitions = {name: numbers for name, numbers in partitions.items() if numbers}
        splits = [source.splits(self.session) for source in sources]
        positions = self._positions(sources, splits)
        if is_ticking:
            self.ticker.prepare()
            splits.append(self.ticker.splits(self.session))
            positions.append(checkpoint.TICKS)
            if once:
                self.ticker.tick_if_due()
        self._streams = list(dict.fromkeys(positions))
        folder = self.checkpoint.generation(self.ledger, positions, is_short=once)
        if "://" not in folder:
            make_folder(folder)  # else Spark creates it, readable for all users
        rows = add_rounds(union_splits(splits))
        with interpreted(self.session) if self._is_interpreted(sources) else nullcontext():
            self.query = start_query(rows, folder, self._run_epoch, name=self.name, once=once, interval=interval)
        if is_ticking and not once:
            self.ticker.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the query, at most `seconds`. Returns whether it has ended; raises its error.

        That is a `RejoinderError` where possible, else Spark's.
        """
        query = self.query
        if query is None:
            return True
        has_ended = True
        try:
            has_ended = wait_for(query, seconds)
            return has_ended
        except Exception as error:  # noqa: BLE001 - translate any error of Spark
            self.is_reported = True
            translated = self._translated(error)
            raise translated from (None if isinstance(translated, RejoinderError) else error)
        finally:
            if has_ended and self.query is query:  # else another query was started, which needs its ticks
                self.ticker.stop()

    def stop(self) -> None:
        """Stop the query after the commit of the epoch in progress, if any. Raises the error that ended it before."""
        if self._thread == threading.get_ident():
            raise StateError(
                "a flow cannot be stopped or restarted by a function that it calls after an epoch",
                detail="it would wait for the end of that call",
                hint="do it in another thread, or once flow.run() or flow.wait() has returned",
            )
        self._is_idle = False
        if self.query is None:
            return
        query, self.query = self.query, None
        error = query.exception()
        self._is_stopping = True
        with self.ledger.lock:
            self._is_cancelling = True  # no epoch is in progress: an epoch holds the lock
        self.ticker.stop()
        query.stop()
        self.checkpoint.abandon()  # whatever Spark was about to write, the next start continues from the last commit
        if error is not None or self.failure is not None:
            raise self._translated(error) from None

    def is_drained(self, source: str, epoch: int) -> bool:
        """Whether a source had no input in the last epoch, which is this one or a later one.

        Then all its input at the time that epoch was planned had been read before, even if Spark reads in small steps.
        """
        last = None if self.query is None else self.query.lastProgress
        if last is None or last["batchId"] < epoch:
            return False
        if source not in self.ledger.version.attached:  # no view reads it
            return True
        identity = self.ledger.version.attached[source]
        progress = zip(self._streams, last["sources"], strict=True)
        own = [entry for stream, entry in progress if stream.source == identity]
        return all(entry["startOffset"] == entry["endOffset"] for entry in own)

    def read(self, epoch: int) -> tuple[list[str] | None, list[StreamRead]]:
        """Return what the epoch in progress reads of each stream (`Checkpoint.read`)."""
        return self.checkpoint.read(self.ledger, epoch)

    def _run_epoch(self, batch: DataFrame, epoch: int) -> None:
        if self._is_stopping:
            raise InterruptedError(f"epoch {epoch} is left to the next start")
        self._thread = threading.get_ident()
        try:
            self.on_batch(batch, epoch)
            self.ticker.wake()
        except BaseException as error:
            if not self._is_cancelling:  # else `stop` has cancelled its job
                self.failure = error
            raise
        finally:
            self._thread = None

    def _translated(self, error: BaseException | None) -> BaseException:
        """Return the error that ended the query, as one of ours if possible. The next start plans the epoch again."""
        self.checkpoint.abandon()
        cause = self.failure
        if isinstance(cause, RejoinderError):
            return cause
        try:
            self.ledger.check_present()
            self.ledger.check_fence()
        except RejoinderError as fenced:
            return fenced
        text = str(cause or error)
        if "PYTHON_VERSION_MISMATCH" in text:
            return RuntimeMismatch(
                "the workers run another Python than the driver",
                detail=next((line for line in text.splitlines() if "PYTHON_VERSION_MISMATCH" in line), None),
                hint="set PYSPARK_PYTHON (spark.pyspark.python) to the driver's Python on every host",
            )
        if "CANNOT_LOAD_STATE_STORE" in text:
            return checkpoint.lost_state(_line_with(text, "CANNOT_LOAD_STATE_STORE") or "Spark cannot load it")
        if "FAILED_READ_FILE.FILE_NOT_EXIST" in text:
            return MissingInput(
                "a file that an epoch reads does not exist",
                detail=next((line for line in text.splitlines() if "FAILED_READ_FILE.FILE_NOT_EXIST" in line), None),
                hint="keep a file until the epoch that reads it is committed, and make it visible to every worker: "
                "on a cluster, keep sources and state on a shared file system",
            )
        if "KAFKA_DATA_LOSS" in text or "failOnDataLoss" in text:
            return MissingInput(
                "records of a topic were removed before they were read",
                detail=_line_with(text, "lost"),
                hint="set OPTIONS (failOnDataLoss 'false') to continue without them; or retain records longer",
            )
        if "org.apache.kafka.common.errors.TimeoutException" in text:
            return MissingInput(
                "a Kafka broker no longer answers",
                detail=_line_with(text, "TimeoutException"),
                hint="start it, then start the flow again: it continues from the last committed epoch",
            )
        if "No module named 'rejoinder'" in text:
            return RuntimeMismatch(
                "the workers cannot import rejoinder",
                detail=f"they run {self.session.sparkContext.pythonExec}",
                hint="install it for that Python on every host",
            )
        return cause or error or StateError("the query has ended", hint="start it again")

    def _is_interpreted(self, sources: Sequence[Stream]) -> bool:
        """Whether to disable code generation: if no rows pass through the JVM, and not on a session of the user."""
        return not missing_settings(self.session) and not any(source.passes_rows for source in sources)

    def _positions(self, sources: Sequence[Stream], splits: Sequence[DataFrame]) -> list[StreamId]:
        """Return a stable identity of each of Spark's own sources, in the order of the plan."""
        readers: dict[str, str] = {}
        result = []
        for source, frame in zip(sources, splits, strict=True):
            streams = streams_in(frame)
            for stream in streams:
                if readers.setdefault(stream, source.name) != source.name:
                    raise Unsupported(
                        f"`{readers[stream]}` and `{source.name}` read the same streaming DataFrame",
                        detail="Spark would read it once, and not from the start for later readers",
                        hint="create one with spark.readStream for each, or declare it once and read it in views",
                    )
            numbers = {stream: number for number, stream in enumerate(dict.fromkeys(streams))}
            identity = self.ledger.version.attached[source.name]
            result += [StreamId(identity, numbers[stream]) for stream in streams]
        return result


def _line_with(text: str, word: str) -> str | None:
    """Return the line of a message that contains a word, without Spark's prefix; None if there is none."""
    line = next((line for line in text.splitlines() if word in line), None)
    return None if line is None else line.rpartition("terminated with exception: ")[2]
