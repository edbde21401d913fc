"""Read files as Arrow: one module per format, each reads bounded chunks and names file and line in an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.fs as pafs

from rejoinder.errors import MissingInput, Unsupported
from rejoinder.formats.arrow_files import read_arrow, read_inserted
from rejoinder.formats.csv.csv_files import read_csv
from rejoinder.formats.file_caps import FileCaps, capped
from rejoinder.formats.file_signatures import local_signature, remote_signature
from rejoinder.formats.json.debezium import read_debezium
from rejoinder.formats.json.json_lines import read_json
from rejoinder.formats.parquet import read_parquet
from rejoinder.ir.catalog import Source

READERS = {"arrow": read_arrow, "memory": read_inserted, "csv": read_csv, "json": read_json, "parquet": read_parquet}


def read_file(
    path: str, source: Source, chunk_rows: int, opened: Callable[[str], None] = lambda signature: None
) -> Iterator[tuple[bool, pa.Table]]:
    """Yield (True, rows) and, if the source diverts malformed records, (False, rejected records).

    `opened` is called with the signature of the file (`file_signatures`). Raises `MissingInput` if the file cannot be
    read, and `MalformedInput` for the first malformed record of a source that does not divert them.
    """
    if source.format not in READERS:
        raise Unsupported(f"format `{source.format}` of `{source.name}` cannot be read from a file")
    try:
        filesystem, local = open_path(path)
        is_local = isinstance(filesystem, pafs.LocalFileSystem)
        signature = local_signature(local) if is_local else ""
        with filesystem.open_input_file(local) as file:
            opened(signature or remote_signature(filesystem, local, file))
            read = read_debezium if source.is_enveloped else READERS[source.format]
            yield from capped(read(file, path, source, chunk_rows), FileCaps(path, source, file.size()))
    except FileNotFoundError as missing:
        raise MissingInput(
            f"file `{path}` of `{source.name}` no longer exists",
            detail=str(missing),
            hint="keep a file until the epoch that reads it is committed",
        ) from missing
    except PermissionError as refused:
        raise MissingInput(
            f"file `{path}` of `{source.name}` cannot be opened", detail=str(refused), hint="check its permissions"
        ) from refused
    except OSError as failure:
        raise MissingInput(
            f"file `{path}` of `{source.name}` cannot be read",
            detail=str(failure),
            hint="check the storage of the file, and run again: the next epoch reads the file",
        ) from failure


def open_path(path: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a path as Spark writes it, and the path within it."""
    if path.startswith("file:"):
        return pafs.LocalFileSystem(), "/" + path[5:].lstrip("/")
    if "://" not in path:
        return pafs.LocalFileSystem(), path
    filesystem, local = pafs.FileSystem.from_uri(path.replace("s3a://", "s3://", 1))
    return filesystem, local


__all__ = ["READERS", "open_path", "read_file"]
