"""Files of every format that become far larger than they are: each is refused by name before it fills the memory."""

from __future__ import annotations

import bz2
import contextlib
import gc
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rejoinder.connectors.files.reading import read_file
from rejoinder.errors import LimitReached, MalformedInput, RejoinderError, Unsupported
from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.host.caps import Caps, use_caps
from rejoinder.host.memory import limited_memory
from rejoinder.ir.catalog import Source
from rejoinder.kernels.arrow.ipc_sizes import decoded_sizes
from tests.deep import DEEP

MEGABYTE = 1 << 20
TEXT = pa.schema([("s", pa.string())])


def _source(format_: str, schema: pa.Schema = TEXT) -> Source:
    return Source("t", "stream", schema, format=format_, options={"path": "x"})


def _rows(path: Path, source: Source) -> int:
    return sum(table.num_rows for _, table in read_file(str(path), source, 1 << 18))


def _in_arrow(data: bytes, codec: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return bytes(sink.getvalue())


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: _in_arrow(data, "zstd"),
    "lz4": lambda data: _in_arrow(data, "lz4"),
}


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("format_", ["json", "csv"])
def test_compressed_text_is_read_by_the_end_of_its_name(tmp_path: Path, format_: str, ending: str) -> None:
    line = b'{"s": "a"}\n' if format_ == "json" else b"a\n"
    path = tmp_path / f"rows.{format_}.{ending}"
    path.write_bytes(COMPRESS[ending](line * 1000))
    assert _rows(path, _source(format_)) == 1000
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(MalformedInput, match="cannot be decompressed"):
        _rows(path, _source(format_))


def test_gzip_files_put_one_after_the_other_are_read_as_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.json.gz"
    path.write_bytes(gzip.compress(b'{"s": "a"}\n') * 3)
    assert _rows(path, _source("json")) == 3


def test_other_compression_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "rows.json.snappy").write_bytes(b"x")
    with pytest.raises(Unsupported, match="not supported"):
        _rows(tmp_path / "rows.json.snappy", _source("json"))


def _pieces(path: Path, open_: Callable[..., Any], piece: bytes) -> None:
    with open_(path, "wb") as file:
        for _ in range(320):
            file.write(piece)


def _parquet(path: Path, column: pa.Array, groups: int = 1, **options: Any) -> None:
    table = pa.table({"s": column})
    with pq.ParquetWriter(path, table.schema, compression="zstd", store_schema=False, **options) as writer:
        for _ in range(groups):
            writer.write_table(table)


def _arrow(path: Path, column: pa.Array, codec: str = "zstd") -> None:
    table = pa.table({"s": column})
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_table(table)


def _shared(rows: int) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), pa.array(["x" * MEGABYTE]))


def _views(rows: int) -> pa.Array:
    view = np.array([MEGABYTE, 0x78787878, 0, 0], np.int32)
    buffers = [None, pa.py_buffer(np.tile(view, rows)), pa.py_buffer(b"x" * MEGABYTE)]
    return pa.Array.from_buffers(pa.string_view(), rows, buffers)


def _prefixes(rows: int) -> pa.Array:
    return pa.array([("x" * 4096 + str(number))[-4096:] for number in range(rows)])


NUMBERS, LISTS = pa.schema([("s", pa.int64())]), pa.schema([("s", pa.list_(pa.int64()))])
BYTES = pa.schema([("s", pa.int8())])
BOMBS: dict[str, tuple[pa.Schema, Callable[[Path], object]]] = {
    "spaces.json.gz": (TEXT, lambda path: _pieces(path, gzip.open, b" " * MEGABYTE)),
    "line.csv.gz": (TEXT, lambda path: _pieces(path, gzip.open, b"x" * MEGABYTE)),
    "line.text.gz": (TEXT, lambda path: _pieces(path, gzip.open, b"x" * MEGABYTE)),
    "spaces.json.bz2": (TEXT, lambda path: _pieces(path, bz2.open, b" " * MEGABYTE)),
    "spaces.json.zst": (TEXT, lambda path: path.write_bytes(_in_arrow(b" " * 320 * MEGABYTE, "zstd"))),
    "texts.parquet": (TEXT, lambda path: _parquet(path, _shared(20_000))),
    "numbers.parquet": (NUMBERS, lambda path: _parquet(path, pa.array(np.zeros(1 << 20, np.int64)), 80)),
    "list.parquet": (LISTS, lambda path: _parquet(path, pa.array([np.zeros(100_000_000, np.int8)]))),
    "zstd.arrow": (BYTES, lambda path: _arrow(path, pa.array(np.zeros(320 * MEGABYTE, np.int8)))),
    "lz4.arrow": (BYTES, lambda path: _arrow(path, pa.array(np.zeros(320 * MEGABYTE, np.int8)), "lz4")),
    "dictionary.arrow": (TEXT, lambda path: _arrow(path, _shared(20_000))),
    "views.arrow": (TEXT, lambda path: _arrow(path, _views(20_000))),
}


SLOW = ("spaces.json.bz2", "spaces.json.gz", "line.text.gz", "list.parquet", "numbers.parquet")
"""Making or reading these takes seconds, and other files show the same."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=DEEP if name in SLOW else ()) for name in BOMBS])
def test_a_bomb_is_refused_before_it_is_in_memory(tmp_path: Path, name: str) -> None:
    schema, make = BOMBS[name]
    path = tmp_path / name
    make(path)
    gc.collect()
    pa.default_memory_pool().release_unused()
    use_caps(Caps(max_memory=500 * MEGABYTE, max_file_ratio=200))
    try:
        format_ = name.split(".")[1]
        with limited_memory("the test"), pytest.raises(LimitReached, match=r"max_file_(ratio|bytes)") as stopped:
            _rows(path, _source(format_, schema))
        assert name in stopped.value.fact and path.stat().st_size < 4 * MEGABYTE
    finally:
        use_caps(Caps())


def test_a_text_that_does_not_fit_into_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    with path.open("wb") as file:
        file.truncate(600 * MEGABYTE)
    use_caps(Caps(max_memory=500 * MEGABYTE))
    try:
        with pytest.raises(LimitReached, match="does not fit into memory"):
            _rows(path, _source("json"))
    finally:
        use_caps(Caps())


@DEEP
def test_lines_without_fields_do_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(b"{}\n" * 20_000)
    wide = pa.schema([(f"c{number}", pa.int64()) for number in range(3_000)])
    use_caps(Caps(max_file_ratio=100_000))
    try:
        sizes = [table.nbytes for _, table in read_file(str(path), _source("json", wide), 1 << 18)]
    finally:
        use_caps(Caps())
    assert len(sizes) > 1 and max(sizes) <= 300 * MEGABYTE


@pytest.mark.parametrize("codec", [None, "zstd", "lz4"])
def test_sizes_of_an_arrow_file_are_known_before_it_is_read(tmp_path: Path, codec: str | None) -> None:
    path = tmp_path / "x.arrow"
    table = pa.table({"a": np.arange(100_000), "d": pa.array(["x", "y"] * 50_000).dictionary_encode()})
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=60_000)
    with pa.OSFile(str(path)) as file:
        dictionaries, sizes = decoded_sizes(file)
    expected = [12 * rows for rows in (60_000, 40_000)]
    assert dictionaries < 1000 and sizes == [pytest.approx(size, abs=200) for size in expected]


def test_a_damaged_arrow_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.arrow"
    _arrow(path, pa.array(["a", "b"] * 1000))
    sound = path.read_bytes()
    for at in range(0, len(sound), 7):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x41]) + sound[at + 1 :])
        with contextlib.suppress(RejoinderError):
            assert _rows(path, _source("arrow")) <= 2000


def test_an_avro_array_of_items_without_bytes_is_not_endless() -> None:
    schema = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": {"type": "array", "items": "null"}}]}'
    with pytest.raises(pa.ArrowInvalid, match="more items"):
        decode_avro(pa.array([b"\x28" * 60 + b"\x00"], pa.binary()), schema)
