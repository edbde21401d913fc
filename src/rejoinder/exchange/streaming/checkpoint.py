"""Spark's checkpoint of a flow, in generations. It is disposable: the manifest has the positions of the sources.

Invariants:
- a generation is a folder with a unique name, written before a manifest names it, and used for one query of the driver
  that created it. So two drivers on the same state never share checkpoint files: manifests fence;
- it is written from the positions of the last committed epoch, never from an older generation. An epoch that was
  planned but not committed is planned again; a loss or damage in an older generation does not matter;
- the only exception is the state of operators in the user's own DataFrames. It is linked from the previous generation,
  and a flow that has lost it is refused.

The previous generation is kept, in case its driver is still using it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from rejoinder.errors import Corrupt, Unsupported
from rejoinder.exchange.streaming.checkpoint_files import CheckpointFiles, HadoopFiles, LocalFiles
from rejoinder.exchange.streaming.checkpoint_log import (
    FIRST_HEADER,
    NewStream,
    StreamPosition,
    StreamRead,
    read_epoch,
    read_start,
    write_checkpoint,
)
from rejoinder.faults import reach
from rejoinder.host.entropy import token
from rejoinder.ir.streams import Generation, StreamId

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GENERATION = re.compile(r"(\d+)-[0-9a-f]{8}")
TICKS = StreamId("ticks")  # the stream that has no rows


class Positions(Protocol):
    """The committed positions of streams, and the generation that they belong to."""

    @property
    def streams(self) -> Mapping[StreamId, StreamPosition]: ...
    @property
    def spark(self) -> Generation | None: ...


class Committed(Protocol):
    """The committed positions, and the identity of each source that is read."""

    @property
    def positions(self) -> Positions: ...
    @property
    def attached(self) -> Mapping[str, str]: ...


class Ledger(Protocol):
    """The engine, which stores the positions of sources."""

    @property
    def version(self) -> Committed: ...
    @property
    def epoch(self) -> int: ...
    def begin_generation(
        self,
        generation: Generation,
        starts: Mapping[StreamId, Mapping[str, str]],
        offsets: Mapping[StreamId, str],
        *,
        commit: bool,
    ) -> None:
        """Adopt a new generation; without `commit`, the next epoch commits it.

        `starts` are where streams began that no epoch has read yet, `offsets` those of streams in the generation.
        """

    def file_lines(self, stream: StreamId) -> tuple[list[bytes], int]: ...


class Checkpoint:
    """The generations of one flow below `folder`, as one driver sees them. `session` is for remote folders."""

    def __init__(self, folder: str, session: SparkSession | None = None) -> None:
        self.folder = folder.removeprefix("file://")
        self._own = ""
        self._session = session
        self._opened: CheckpointFiles | None = None

    @property
    def _files(self) -> CheckpointFiles:
        if self._opened is None:
            assert self._session is not None or "://" not in self.folder, "only a disk is read without Spark"
            remote = self._session if "://" in self.folder else None
            self._opened = LocalFiles() if remote is None else HadoopFiles(remote)
        return self._opened

    def generation(self, ledger: Ledger, streams: Sequence[StreamId], *, is_short: bool = False) -> str:
        """Write a new generation for a query over these streams, and return its folder; `streams` is in plan order.

        `is_short`: the query ends by itself. Then a driver that has already committed a generation of these streams
        lets the next epoch commit the new one.
        """
        positions = ledger.version.positions
        last = positions.spark
        number = 0 if last is None else last.number + 1
        header = None if last is None else last.header
        generation = Generation(number, f"{number}-{token(4)}", tuple(streams), header)
        starts = self._unread_starts(positions, streams)
        offsets = self._write(ledger, generation, starts)
        reach("in_generation", ledger.epoch)
        is_own = last is not None and last.streams == generation.streams and self._is_own(last.folder)
        is_read = all(stream == TICKS or stream in positions.streams for stream in streams)
        ledger.begin_generation(
            generation, starts, offsets, commit=not (is_short and is_own and is_read and header is None)
        )
        reach("after_generation", ledger.epoch)
        self._own = generation.folder
        self._delete_before(number - 1)
        return f"{self.folder}/{generation.folder}"

    def read(self, ledger: Ledger, epoch: int) -> tuple[list[str] | None, list[StreamRead]]:
        """Return the header of an epoch that Spark has planned, if Spark keeps state for it, and what it reads."""
        positions = ledger.version.positions
        assert positions.spark is not None, "Spark has planned the epoch"
        folder = f"{self.folder}/{positions.spark.folder}"
        header, read = read_epoch(self._files, folder, positions.spark.streams, epoch, positions.streams)
        has_state = self._files.is_folder(f"{folder}/state")
        return header if has_state else None, [stream_read for stream_read in read if stream_read.stream != TICKS]

    def _unread_starts(self, positions: Positions, streams: Sequence[StreamId]) -> dict[StreamId, dict[str, str]]:
        """Return where streams of the last generation began that no epoch has read yet."""
        last, starts = positions.spark, {}
        for number, stream in enumerate(dict.fromkeys(() if last is None else last.streams)):
            if last is not None and stream in streams and stream not in positions.streams and stream != TICKS:
                starts[stream] = read_start(self._files, f"{self.folder}/{last.folder}", number)
        return {stream: start for stream, start in starts.items() if start}

    def _write(
        self, ledger: Ledger, generation: Generation, starts: Mapping[StreamId, Mapping[str, str]]
    ) -> dict[StreamId, str]:
        """Write a generation. Returns the offsets of the streams in it."""
        positions, new = ledger.version.positions, f"{self.folder}/{generation.folder}"
        header, commit = tuple(FIRST_HEADER), 'v1\n{"nextBatchWatermarkMs":0}'
        if positions.spark is not None and positions.spark.header is not None:
            old = f"{self.folder}/{positions.spark.folder}"
            header, commit = positions.spark.header, self._stateful_commit(old, ledger.epoch) or commit
            self._copy_state(old, positions.spark.streams, new, generation.streams)
        begun = {stream: NewStream(start) for stream, start in starts.items()}
        return write_checkpoint(
            self._files,
            new,
            generation.streams,
            ledger.epoch,
            {**positions.streams, **begun},
            ledger.file_lines,
            header=header,
            commit=commit,
        )

    def _stateful_commit(self, old: str, epoch: int) -> str | None:
        """Return Spark's own commit of an epoch, with the watermark of its operators; None if there is none."""
        text = self._files.read(f"{old}/commits/{epoch}")
        if text is None:
            return None
        try:
            version, _, body = text.partition("\n")
            int(json.loads(body)["nextBatchWatermarkMs"])
            int(version.removeprefix("v"))
        except (ValueError, KeyError, TypeError) as failure:
            raise lost_state(f"`{old}/commits/{epoch}` is damaged: {failure}") from failure
        return text

    def _copy_state(self, old: str, before: Sequence[StreamId], new: str, after: Sequence[StreamId]) -> None:
        old_sources, new_sources = ([stream for stream in streams if stream != TICKS] for streams in (before, after))
        if new_sources[: len(old_sources)] != old_sources:
            raise Unsupported(
                "a source is dropped from a flow that has a DataFrame with state of its own",
                detail="Spark finds the state of deduplications and aggregations by their position",
                hint="compute what needs state in a view, or in a separate query that writes to a table",
            )
        if not self._files.is_folder(f"{old}/state"):
            raise lost_state(f"`{old}/state` does not exist")
        self._files.copy(f"{old}/state", f"{new}/state")

    def _is_own(self, name: str) -> bool:
        """Whether this driver created a generation, and nothing has failed since."""
        return name == self._own

    def abandon(self) -> None:
        """Discard the plan of a failed epoch: the next start continues from the last committed epoch."""
        self._own = ""

    def _delete_before(self, number: int) -> None:
        for name in self._files.list(self.folder):
            generation = _GENERATION.fullmatch(name)  # other files in the folder are not touched
            if generation is not None and int(generation[1]) < number:
                self._files.delete(f"{self.folder}/{name}")


def lost_state(detail: str) -> Corrupt:
    """Return the error for a lost state of Spark's operators."""
    return Corrupt(
        "the state that Spark keeps for a DataFrame of this flow is lost or damaged",
        detail=f"{detail}; deduplications and aggregations in a DataFrame keep their rows only there",
        hint="restore Spark's checkpoint from a backup, or start a new flow with another state directory",
    )
