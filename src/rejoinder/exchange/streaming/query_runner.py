"""Runs the streaming query of a flow: sources to splits, checkpoint generation, ticks, errors as themselves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from rejoinder.errors import MissingInput, RejoinderError, RuntimeMismatch, StateError, Unsupported
from rejoinder.exchange.connectors.delta_tables import change_feed
from rejoinder.exchange.connectors.kafka_topics import partitions_of, topic_splits
from rejoinder.exchange.session.spark_session import missing_settings
from rejoinder.exchange.streaming import checkpoint
from rejoinder.exchange.streaming.checkpoint_log import StreamRead
from rejoinder.exchange.streaming.source_frames import file_splits, frame_splits, literal, streams_in, union_splits
from rejoinder.exchange.streaming.streaming_query import interpreted, start_query, wait_for
from rejoinder.exchange.streaming.ticks import Ticker
from rejoinder.host.private_files import make_folder

OnBatch = Callable[[DataFrame, int], None]

_OF_ROWS = ("dataframe", "delta", "kafka")  # formats whose rows pass through the JVM; of all others it sees paths


class ReadSource(Protocol):
    """What is known of a source here."""

    @property
    def name(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def options(self) -> Mapping[str, str]: ...
    @property
    def schema(self) -> pa.Schema: ...


class Ledger(checkpoint.Ledger, Protocol):
    """The engine: an identity for each source that is read, a lock that an epoch holds, and who else commits."""

    attached: dict[str, str]

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
        self.partitions: dict[str, list[int]] = {}  # of sources that know theirs
        self.failure: BaseException | None = None
        self.is_reported = False  # whether `wait` has raised what ended the query
        self._streams: list[str] = []  # Spark's own sources, as its progress lists them
        self._is_idle = False
        self._is_stopping = self._is_cancelling = False
        self._thread: int | None = None  # that of the epoch under way

    @property
    def is_running(self) -> bool:
        """Whether the query is active, or would be if there were something to read."""
        return self._is_idle or (self.query is not None and bool(self.query.isActive))

    def start(
        self,
        sources: Sequence[ReadSource],
        *,
        frames: Mapping[str, DataFrame],
        inbox: Callable[[str], str],
        staged: Callable[[DataFrame], DataFrame],
        is_ticking: bool,
        once: bool,
        interval: str,
    ) -> None:
        """Start reading the sources from where the last committed epoch left them. `staged` adds the rounds.

        `is_ticking`: epochs may have to come without input, because of the clock.
        """
        if self.is_running:
            raise StateError("the flow is running already", hint="stop() it first, or wait() for it")
        self.ticker.stop()
        self.failure, self.is_reported = None, False
        self.interval, self.is_ticking = interval, is_ticking
        self._is_stopping = self._is_cancelling = False
        self._is_idle = not sources and not once
        self.query = None
        if not sources:
            return
        topics = [source for source in sources if source.format == "kafka"]
        self.partitions = {
            topic.name: partitions_of(self.session, f"source `{topic.name}`", topic.options) for topic in topics
        }
        splits = [self._splits(source, frames, inbox) for source in sources]
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
            make_folder(folder)  # or Spark makes it, for all to read
        rows = staged(union_splits(splits))
        with interpreted(self.session) if self._is_interpreted(sources) else nullcontext():
            self.query = start_query(rows, folder, self._guarded, name=self.name, once=once, interval=interval)
        if is_ticking and not once:
            self.ticker.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the query. Raises the error of ours that ended it, else what Spark says."""
        query = self.query
        if query is None:
            return True
        is_over = True
        try:
            is_over = wait_for(query, seconds)
            return is_over
        except Exception as error:  # noqa: BLE001 - whatever Spark raises is told in our words
            self.is_reported = True
            translated = self._translated(error)
            raise translated from (None if isinstance(translated, RejoinderError) else error)
        finally:
            if is_over and self.query is query:  # else there is another by now, whose ticks go on
                self.ticker.stop()

    def stop(self) -> None:
        """Stop the query when the epoch under way, if any, is committed. Raises what had ended it before that."""
        if self._thread == threading.get_ident():
            raise StateError(
                "a flow cannot be stopped, or started anew, by what it calls after an epoch",
                detail="it would wait for the end of that very call",
                hint="do it in another thread, or once flow.run() or flow.wait() has returned",
            )
        self._is_idle = False
        if self.query is None:
            return
        query, self.query = self.query, None
        error = query.exception()
        self._is_stopping = True
        with self.ledger.lock:
            self._is_cancelling = True  # the epoch under way is over
        self.ticker.stop()
        query.stop()
        self.checkpoint.abandon()  # whatever Spark was about to write, the next start goes on from the last commit
        if error is not None or self.failure is not None:
            raise self._translated(error) from None

    def is_drained(self, source: str, epoch: int) -> bool:
        """Whether a source brought nothing in the last epoch, which is this one or a later one.

        Then all that was there when that epoch was planned had been read before it, however little Spark takes at once.
        """
        last = None if self.query is None else self.query.lastProgress
        if last is None or last["batchId"] < epoch:
            return False
        if source not in self.ledger.attached:  # nobody reads it
            return True
        own = f"{self.ledger.attached[source]}/"
        read = [each for name, each in zip(self._streams, last["sources"], strict=True) if name.startswith(own)]
        return all(each["startOffset"] == each["endOffset"] for each in read)

    def read(self, epoch: int) -> tuple[list[str] | None, list[StreamRead]]:
        """What the epoch under way reads of each stream (`Checkpoint.read`)."""
        return self.checkpoint.read(self.ledger, epoch)

    def _guarded(self, batch: DataFrame, epoch: int) -> None:
        if self._is_stopping:
            raise InterruptedError(f"epoch {epoch} is left to the next start")
        self._thread = threading.get_ident()
        try:
            self.on_batch(batch, epoch)
            self.ticker.wake()
        except BaseException as error:
            if not self._is_cancelling:  # else it was us who cancelled its job
                self.failure = error
            raise
        finally:
            self._thread = None

    def _translated(self, error: BaseException | None) -> BaseException:
        """What went wrong, in our words where we have any. The next start plans the epoch anew."""
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
            return checkpoint.lost_state(_said(text, "CANNOT_LOAD_STATE_STORE") or "Spark cannot load it")
        if "FAILED_READ_FILE.FILE_NOT_EXIST" in text:
            return MissingInput(
                "a file that was to be read is not there",
                detail=next((line for line in text.splitlines() if "FAILED_READ_FILE.FILE_NOT_EXIST" in line), None),
                hint="a file must stay until the epoch that reads it is committed, and every worker must see it: "
                "on a cluster, keep sources and state on a shared file system",
            )
        if "KAFKA_DATA_LOSS" in text or "failOnDataLoss" in text:
            return MissingInput(
                "records of a topic were removed before they were read",
                detail=_said(text, "lost"),
                hint="OPTIONS (failOnDataLoss 'false') goes on with the others; keep records longer at the broker",
            )
        if "org.apache.kafka.common.errors.TimeoutException" in text:
            return MissingInput(
                "a Kafka broker does not answer any more",
                detail=_said(text, "TimeoutException"),
                hint="start it, then start the flow again: it goes on from the last committed epoch",
            )
        if "No module named 'rejoinder'" in text:
            return RuntimeMismatch(
                "the workers cannot import rejoinder",
                detail=f"they run {self.session.sparkContext.pythonExec}",
                hint="install it for that Python on every host",
            )
        return cause or error or StateError("the query has ended", hint="start it again")

    def _is_interpreted(self, sources: Sequence[ReadSource]) -> bool:
        """Whether code for the JVM's rows is not worth its making; on a session of the user's nothing is set."""
        return not missing_settings(self.session) and not any(source.format in _OF_ROWS for source in sources)

    def _positions(self, sources: Sequence[ReadSource], splits: Sequence[DataFrame]) -> list[str]:
        """What identifies each of Spark's own sources from run to run, in the order of the plan."""
        readers: dict[str, str] = {}
        result = []
        for source, frame in zip(sources, splits, strict=True):
            streams = streams_in(frame)
            for stream in streams:
                if readers.setdefault(stream, source.name) != source.name:
                    raise Unsupported(
                        f"`{readers[stream]}` and `{source.name}` read the same streaming DataFrame",
                        detail="Spark would read it once, and not from the start for later readers",
                        hint="make one with spark.readStream for each, or declare it once and select from it in views",
                    )
            numbers = {stream: at for at, stream in enumerate(dict.fromkeys(streams))}
            result += [f"{self.ledger.attached[source.name]}/{numbers[stream]}" for stream in streams]
        return result

    def _splits(self, source: ReadSource, frames: Mapping[str, DataFrame], inbox: Callable[[str], str]) -> DataFrame:
        if source.format == "dataframe":
            return frame_splits(frames[source.name], source.name)
        if source.format == "delta":
            feed = change_feed(self.session, source.name, source.options, source.schema.names)
            return frame_splits(feed, source.name)
        if source.format == "kafka":
            return topic_splits(self.session, source.name, source.options)
        if source.format == "memory":
            numbered = F.regexp_extract("path", r"(\d+)-[0-9a-f]{8}\.arrow$", 1).cast("bigint")
            # Names are all that counts, and a pattern ties Spark to no folder: the state may be moved.
            options = {**source.options, "path": f"{literal(inbox(source.name))}/*.arrow", "filenameonly": "true"}
            return file_splits(self.session, source.name, options).withColumn("modified", numbered)
        return file_splits(self.session, source.name, source.options)


def _said(text: str, word: str) -> str | None:
    """The line of a message that holds a word, without what Spark puts before it."""
    found = next((line for line in text.splitlines() if word in line), None)
    return None if found is None else found.rpartition("terminated with exception: ")[2]
