"""Lines of a file as byte ranges: decoded as a whole, and bisected only to find malformed lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rejoinder.errors import MalformedInput
from rejoinder.formats.record_checks import usable
from rejoinder.formats.rejected_records import rejected_lines
from rejoinder.formats.unreadable import Reason, plain_reason
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.columns import Int64

Decode = Callable[[int, int], pa.Table]
_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8, which some tools write before the first line
# Positions in Arrow's messages, which are relative to the part that it decoded.
_PLACE = re.compile(r"Row #\d+: | in row \d+|Column \d+: In chunk \d+: Invalid: | at string index \d+")


@dataclass(frozen=True)
class Lines:
    """The lines of a text, as offsets into it. Nothing is copied."""

    data: pa.Buffer
    starts: Int64  # of each line, and the end of the last
    numbers: Int64  # of each line, from 1

    @classmethod
    def of(cls, data: pa.Buffer, quote: str = "") -> Lines:
        """Find the lines, which end with a line feed, a carriage return or both. Cost: one pass.

        With `quote` a line end between quotes does not count.
        """
        data = data.slice(len(_MARK)) if bytes(memoryview(data)[: len(_MARK)]) == _MARK else data
        values = np.frombuffer(data, np.uint8)
        is_end = values == ord("\n")
        if ord("\r") in values:
            is_return = values == ord("\r")
            is_return[:-1] &= ~is_end[1:]
            is_end |= is_return
        is_end[-1:] = True  # the last line may lack a line end
        ends = np.flatnonzero(is_end) + 1
        numbers = np.arange(1, len(ends) + 1)
        if quote and len(ends):
            quotes = np.flatnonzero(values == ord(quote))
            outside = np.searchsorted(quotes, ends) % 2 == 0
            outside[-1] = True
            ends, numbers = ends[outside], numbers[np.roll(outside, 1)]
        return cls(data, np.concatenate([np.zeros(1, np.int64), ends]), numbers)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def part(self, first: int, last: int) -> pa.Buffer:
        """Return the bytes of lines `first` to `last`, excluding the latter."""
        return self.data.slice(int(self.starts[first]), int(self.starts[last] - self.starts[first]))

    def chunk_end(self, first: int, most: int, most_bytes: int) -> int:
        """Return the end of a chunk that starts at line `first`: within both limits, but at least one line."""
        fitting = int(np.searchsorted(self.starts, self.starts[first] + most_bytes, "right")) - 1
        return min(max(first + 1, fitting), first + most, len(self))

    def texts(self) -> pa.Array:
        """Return all lines with their line ends. They may not be UTF-8: only search for ASCII in them."""
        buffers = [None, pa.py_buffer(self.starts), self.data]
        return pa.Array.from_buffers(pa.large_utf8(), len(self), buffers)

    def text(self, line: int) -> str:
        """Return one line as text, for a message."""
        return bytes(self.part(line, line + 1)).decode(errors="replace").rstrip("\r\n")


def read_lines(
    lines: Lines,
    decode: Decode,
    path: str,
    source: Source,
    chunk_lines: int,
    first: int = 0,
    chunk_bytes: int = 1 << 62,
) -> Iterator[tuple[bool, pa.Table]]:
    """Yield (True, rows) of all lines from `first` on that `decode` can read, and (False, rejected lines).

    `decode(first, last)` decodes a range of lines, and raises `pa.ArrowInvalid` if it cannot. Raises `MalformedInput`
    for the first malformed line, unless the source diverts them.
    """
    rejected: list[tuple[int, str, str]] = []

    def reject(line: int, reason: str) -> None:
        if not source.diverts:
            raise MalformedInput(
                f"line {lines.numbers[line]} of `{path}` of `{source.name}` is malformed",
                detail=plain_reason(reason),
                values=f"{reason}: {lines.text(line)[:200]}",
                hint="fix the line and run again, or set OPTIONS (malformed 'divert') to send such lines to "
                f"`{source.rejected}`",
            ) from None
        rejected.append((int(lines.numbers[line]), lines.text(line), reason))

    def decode_usable(first: int, last: int) -> pa.Table:
        return usable(decode(first, last), source)

    start = first
    while start < len(lines):
        stop = lines.chunk_end(start, chunk_lines, chunk_bytes)
        for table in _bisect(start, stop, decode_usable, reject):
            yield True, table
        start = stop
    if rejected:
        yield False, rejected_lines(path, rejected)


def _bisect(first: int, last: int, decode: Decode, reject: Callable[[int, str], None]) -> Iterator[pa.Table]:
    """Decode lines as a whole. If that fails, bisect them until each malformed line is isolated and rejected."""
    try:
        yield decode(first, last)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as failure:
        if last - first == 1:
            reject(first, Reason.of(failure, _PLACE))
            return
        half = (first + last) // 2
        yield from _bisect(first, half, decode, reject)
        yield from _bisect(half, last, decode, reject)
