"""Diagnose the first line of a CSV file that does not fit: an undeclared or missing header, or a wrong separator.

Errors show names of columns, never values of rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from rejoinder.errors import MalformedInput
from rejoinder.ir.catalog import Source

SEPARATORS = {",": "','", ";": "';'", "\t": "'\\t'", "|": "'|'"}


def separator_of(source: Source) -> str:
    """Return the separator that a source declares."""
    return source.options.get("sep", source.options.get("delimiter", ","))


def refuse_hidden_header(line: str, declared: Sequence[str], path: str, source: Source) -> None:
    """Raise `MalformedInput` for an undeclared header that would be read as a row: all columns are text.

    A single column is not enough evidence, and an explicit `header 'false'` is respected.
    """
    if "header" in source.options or source.diverts or len(declared) < 2:
        return
    if _fields(line, separator_of(source), source) == [name.lower() for name in declared]:
        raise _header_found(declared[0], path, source)


def refuse_other_header(line: str, declared: Sequence[str], path: str, source: Source) -> None:
    """Raise `MalformedInput` for a declared header that contains none of the columns."""
    columns = {name.lower() for name in declared}
    if columns & set(_fields(line, separator_of(source), source)):
        return
    for separator, text in SEPARATORS.items():
        if columns & set(_fields(line, separator, source)) and separator != separator_of(source):
            raise _other_separator(line, separator, text, declared, path, source)
    raise MalformedInput(
        f"the first line of `{path}` of `{source.name}` is not a header: column `{declared[0]}` is not in it",
        detail=f"declared columns: {', '.join(declared)}; none of them is named in the first line",
        hint="remove header 'true' if the file has no header; else declare the columns that it names, or its sep",
    )


def explained(line: str, declared: Sequence[str], path: str, source: Source) -> MalformedInput | None:
    """Return why the first line of a file without a declared header cannot be read; None if unknown."""
    own = _fields(line, separator_of(source), source)
    columns = {name.lower(): name for name in declared}
    named = [columns[field] for field in own if field in columns]
    if named:
        return _header_found(named[0], path, source)
    if len(own) == 1 < len(declared):
        for separator, text in SEPARATORS.items():
            if len(_fields(line, separator, source)) == len(declared):
                return _other_separator(line, separator, text, declared, path, source)
    return None


def _header_found(column: str, path: str, source: Source) -> MalformedInput:
    return MalformedInput(
        f"the first line of `{path}` of `{source.name}` looks like a header: it names column `{column}`",
        detail="the source does not declare a header",
        hint="set OPTIONS (header 'true'), or header 'false' if it is a row",
    )


def _other_separator(
    line: str, separator: str, text: str, declared: Sequence[str], path: str, source: Source
) -> MalformedInput:
    count = len(_fields(line, separator_of(source), source))
    count_text = "only one column was" if count == 1 else f"{count} columns were"
    return MalformedInput(
        f"{count_text} found in the first line of `{path}`, and `{source.name}` has {len(declared)}: "
        f"column `{declared[0]}`, …",
        detail=f"the line was split at {SEPARATORS.get(separator_of(source), repr(separator_of(source)))}; "
        f"at {text} it has {len(_fields(line, separator, source))} columns",
        hint=f"set OPTIONS (sep {text})",
    )


def _fields(line: str, separator: str, source: Source) -> list[str]:
    """Return the fields of a line in lower case, without quotes. Separators within quotes also split."""
    quote = source.options.get("quote", '"')
    return [field.strip().strip(quote or None).strip().lower() for field in line.split(separator)]
