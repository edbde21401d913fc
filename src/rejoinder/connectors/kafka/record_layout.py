"""Records of a topic: which part of a record fills which column of a source.

The value fills all columns that no option gives to another part: `key 'id'`, `timestamp 'ts'`, `partition 'p'`,
`offset 'o'`, `headers 'h'` name columns. A table takes its primary key from the key, unless an option says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rejoinder.ir.catalog import REJECTED_SCHEMA, Source

VALUE_FORMATS = ("json", "avro", "text", "raw")
KEY_FORMATS = ("text", "json", "raw", "none")
REJECTED_RECORDS = pa.schema(
    [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), *list(REJECTED_SCHEMA)[2:]]
)
"""The columns of the relation of rejected records."""
PARTS = ("timestamp", "partition", "offset", "headers")


@dataclass(frozen=True)
class Layout:
    """The columns of each part of a record. `parts` maps a part to its column; the value fills the others."""

    value_format: str
    value: tuple[str, ...]
    key_format: str
    key: tuple[str, ...]
    parts: Mapping[str, str]


def layout_of(source: Source) -> Layout:
    """Read the options of a source, which were checked when it was defined. Columns are named as declared."""
    declared = {name.lower(): name for name in source.schema.names}
    options = source.options
    key_format = options.get("key_format", "")
    key = tuple(declared[name] for name in listed(options.get("key", "").lower()))
    if source.kind == "table" and not key and key_format != "none" and not source.is_enveloped:  # which has the key
        key = source.primary_key
    parts = {part: declared[options[part].lower()] for part in PARTS if part in options}
    other_columns = {*key, *parts.values()}
    value = tuple(name for name in source.schema.names if name not in other_columns)
    kinds = [source.schema.field(name).type for name in key]
    return Layout(options.get("format", "json"), value, key_format or key_format_of(kinds), key, parts)


def key_format_of(kinds: Sequence[pa.DataType]) -> str:
    """Return the default format of a key of these types: one scalar as it is, anything else as a JSON object.

    >>> key_format_of([pa.int64()]), key_format_of([pa.binary()]), key_format_of([pa.int64(), pa.string()])
    ('text', 'raw', 'json')
    """
    if len(kinds) > 1 or any(map(pa.types.is_nested, kinds)):
        return "json"
    return "raw" if any(map(pa.types.is_binary, kinds)) else "text"


def listed(text: str) -> list[str]:
    """Return the names in an option that may have several.

    >>> listed("id, day")
    ['id', 'day']
    """
    return [name.strip() for name in text.split(",") if name.strip()]
