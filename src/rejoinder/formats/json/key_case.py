"""Match JSON keys to columns and struct fields without case, where the exact key is missing.

Names of columns compare without case in SQL. If a record has the exact key, its value counts; if that is null and
another spelling is not, the other value counts. Keys of maps are data, and are not changed. Fields of a struct that
contains a map or a float must be spelled exactly.

Cost: one search in the text for all names that are NULL somewhere, about a tenth of the cost of parsing. The text is
parsed again only if another spelling is found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.kernels.duckdb.leaves import has_type

Parse = Callable[[pa.Schema], pa.Table]
Spellings = Mapping[str, Sequence[str]]
_GROUP = 6000  # letters in a pattern, which must fit the memory of the regex engine
_LARGE = 1 << 18  # bytes; for smaller texts, compiling a pattern costs more than a search for each name


def with_other_spellings(table: pa.Table, data: bytes | memoryview, parse: Parse) -> pa.Table:
    """Return the table with columns filled from keys in other cases. `parse` parses the same text with another schema.

    Raises `pa.ArrowInvalid` if a record has two such keys of one name, which is ambiguous.
    """
    names = {name for field in table.schema for name in _names_with_nulls(table.column(field.name), field)}
    spellings = _spellings(data, sorted(names))
    if not spellings:
        return table
    wanted = {field.name: _widened(field, spellings) for field in table.schema}
    changed = [field for field in table.schema if wanted[field.name] != [field]]
    read = _read([wide for field in changed for wide in wanted[field.name]], parse)
    for field in changed:
        parts = [read[wide.name] for wide in wanted[field.name]]
        narrow = [_narrowed(part, field.type, spellings) for part in parts]
        filled = _combined(field.name, narrow, [wide.name for wide in wanted[field.name]])
        table = table.set_column(table.column_names.index(field.name), field, filled)
    return table


def _read(fields: Sequence[pa.Field], parse: Parse) -> dict[str, pa.Array]:
    """Parse columns in as few passes as possible: DuckDB does not support names that are equal without case in one."""
    passes: list[dict[str, pa.Field]] = []
    for field in fields:
        free = next((fields_of_pass for fields_of_pass in passes if field.name.lower() not in fields_of_pass), None)
        if free is None:
            passes.append(free := {})
        free[field.name.lower()] = field
    tables = [parse(pa.schema(list(fields_of_pass.values()))) for fields_of_pass in passes]
    return {name: table.column(name).combine_chunks() for table in tables for name in table.column_names}


def _names_with_nulls(column: pa.ChunkedArray, field: pa.Field) -> Iterator[str]:
    """Yield the names of a column and of its nested fields that are NULL somewhere."""
    if column.null_count:
        yield field.name
    for chunk in column.chunks:
        yield from _nested_names(chunk)


def _nested_names(array: pa.Array) -> Iterator[str]:
    if pa.types.is_struct(array.type):
        for number, field in enumerate(array.type):
            child = array.field(number)
            if child.null_count:
                yield field.name
            yield from _nested_names(child)
    elif pa.types.is_list(array.type):
        yield from _nested_names(array.values)


def _spellings(data: bytes | memoryview, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the spellings of names among the keys of a text, by lower-case name, for names with another spelling."""
    if not names or not _has_others(data, names):
        return {}
    listed = b"|".join(re.escape(name.encode()) for name in names)
    keys = {key.decode() for key in re.findall(rb'(?i)"(' + listed + rb')"\s*:', bytes(data))}
    exact = set(names)
    return {
        name.lower(): sorted(key for key in keys - {name} if key.lower() == name.lower())
        for name in names
        if any(key.lower() == name.lower() for key in keys - exact)
    }


def _has_others(data: bytes | memoryview, names: Iterable[str]) -> bool:
    """Whether a text may contain another spelling of a name as a key."""
    if len(data) < _LARGE:
        text, keys = bytes(data), [f'"{name}"'.encode() for name in names]
        lowered = text.lower()
        return any(lowered.count(key.lower()) != text.count(key) for key in keys)
    ends = pa.py_buffer(np.array([0, len(data)], np.int64))
    whole = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(data)])
    group, letters = list[str](), 0
    for name in [*names, ""]:
        if group and (not name or letters + len(name) > _GROUP):
            pattern = '"(?:' + "|".join(group) + r')"[ \t\r\n]*:'
            if pc.match_substring_regex(whole, pattern)[0].as_py():
                return True
            group, letters = [], 0
        others = list(_others(name))
        group += others
        letters += len(name) * len(others)
    return False


def _others(name: str) -> Iterator[str]:
    """Yield patterns of all spellings but the exact one: an equal prefix, a letter in the other case, then any case."""
    for index, letter in enumerate(name):
        if letter.isascii() and letter.isalpha():
            yield re.escape(name[:index]) + letter.swapcase() + "".join(map(_any_case, name[index + 1 :]))


def _any_case(letter: str) -> str:
    is_letter = letter.isascii() and letter.isalpha()
    return f"[{letter.lower()}{letter.upper()}]" if is_letter else re.escape(letter)


def _widened(field: pa.Field, spellings: Spellings) -> list[pa.Field]:
    """Return a field under its name and its other spellings, with those of its nested fields."""
    wide = field.with_type(_widened_type(field.type, spellings))
    others = [key for key in spellings.get(field.name.lower(), ()) if key != field.name]
    return [wide, *(wide.with_name(key) for key in others)]


def _widened_type(kind: pa.DataType, spellings: Spellings) -> pa.DataType:
    if has_type(kind, lambda leaf: pa.types.is_map(leaf) or pa.types.is_floating(leaf)):
        return kind  # DuckDB may parse it, whose structs compare names without case
    if pa.types.is_struct(kind):
        return pa.struct([wide for field in kind for wide in _widened(field, spellings)])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_widened_type(kind.value_type, spellings)))
    return kind


def _narrowed(array: pa.Array, kind: pa.DataType, spellings: Spellings) -> pa.Array:
    """Return an array of a widened type in its original type."""
    if array.type == kind:
        return array
    if pa.types.is_list(kind):
        values = _narrowed(array.values, kind.value_type, spellings)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=mask)
    children = []
    for field in kind:
        keys = [wide.name for wide in _widened(field, spellings)]
        parts = [_narrowed(array.field(array.type.get_field_index(key)), field.type, spellings) for key in keys]
        children.append(_combined(field.name, parts, keys))
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=array.is_null())


def _combined(name: str, parts: Sequence[pa.Array], keys: Sequence[str]) -> pa.Array:
    """Return the value of the exact key, the first of `keys`, or else that of the other spelling."""
    exact, others = parts[0], parts[1:]
    counts = sum((np.asarray(part.is_valid()).astype(np.int8) for part in others), np.zeros(len(exact), np.int8))
    if np.any((counts > 1) & np.asarray(exact.is_null())):
        listed = " and ".join(f"`{key}`" for key in keys[1:])
        raise pa.ArrowInvalid(f"the keys {listed} differ in case only, and none is `{name}`")
    result = exact
    for part in others:
        result = pc.if_else(result.is_valid(), result, part)
    return result
