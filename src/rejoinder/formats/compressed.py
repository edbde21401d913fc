"""Read the text of a file; decompress it according to its name, piece by piece and within the caps."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rejoinder.errors import MalformedInput, Unsupported
from rejoinder.formats.file_caps import FileCaps
from rejoinder.ir.catalog import Source

CODECS = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}
UNREADABLE = ("snappy", "deflate", "xz", "lzo", "zip", "br")
PIECE = 4 << 20


def read_text(file: Any, path: str, source: Source) -> pa.Buffer:
    """Return the text of a file. Raises `LimitReached` before a file that expands too far is in memory.

    The extension determines the compression, as in Spark: `.gz`, `.bz2`, `.zst` or `.lz4` (frames).
    """
    limits = FileCaps(path, source, file.size())
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    if ending in UNREADABLE:
        raise Unsupported(
            f"the compression of file `{path}` of `{source.name}` is not supported",
            detail=f"its name ends with .{ending}; supported: {', '.join(f'.{extension}' for extension in CODECS)}",
            hint="decompress the file, or compress it with gzip or zstd",
        )
    if ending not in CODECS:
        limits.check_at_once(limits.stored)
        return file.read_buffer()
    text = pa.BufferOutputStream()
    try:
        with pa.CompressedInputStream(file, CODECS[ending]) as stream:
            while piece := stream.read(PIECE):
                limits.check_at_once(text.tell() + len(piece))
                text.write(piece)
    except (OSError, pa.ArrowInvalid) as failure:
        raise MalformedInput(
            f"file `{path}` of `{source.name}` cannot be decompressed",
            detail=f"its name ends with .{ending}, but its content is damaged, truncated or not {CODECS[ending]}",
            hint="replace the file by a complete one and run again: the epoch was not committed",
        ) from failure
    return text.getvalue()
