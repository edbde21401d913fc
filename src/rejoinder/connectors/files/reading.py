"""Read a file of a source as Arrow, with the reader of its format."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import pyarrow as pa
import pyarrow.fs as pafs

from rejoinder.connectors.registry import source_side
from rejoinder.errors import MissingInput, Unsupported
from rejoinder.formats.conform import conform
from rejoinder.formats.file_caps import FileCaps, capped
from rejoinder.formats.file_signatures import local_signature, remote_signature
from rejoinder.formats.json.debezium import read_debezium
from rejoinder.formats.paths import open_path
from rejoinder.ir.catalog import Source


def read_file(
    path: str,
    source: Source,
    chunk_rows: int,
    opened: Callable[[str], None] = lambda signature: None,
    columns: Collection[str] | None = None,
) -> Iterator[tuple[bool, pa.Table]]:
    """Yield (True, rows) and, if the source diverts malformed records, (False, rejected records).

    With `columns`, only these are decoded. The others must still exist with types that fit their declaration.
    `opened` is called with the signature of the file (`file_signatures`). Raises `MissingInput` if the file cannot be
    read, and `MalformedInput` for the first malformed record of a source that does not divert them.
    """
    read = read_debezium if source.is_enveloped else source_side(source).reader
    if read is None:
        raise Unsupported(f"format `{source.format}` of `{source.name}` cannot be read from a file")
    try:
        filesystem, local = open_path(path)
        is_local = isinstance(filesystem, pafs.LocalFileSystem)
        signature = local_signature(local) if is_local else ""
        with filesystem.open_input_file(local) as file:
            opened(signature or remote_signature(filesystem, local, file))
            schema_of = source_side(source).schema_reader
            if columns is not None and schema_of is not None:
                conform(schema_of(file, path, source).empty_table(), source.schema, path, source.name)
                source = source.with_columns(columns)
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
