"""Options of sources on files, checked before the first file exists."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.type_names import spark_name

CSV_OPTIONS = ("header", "sep", "delimiter", "quote", "nullvalue", "multiline")
_PICKING = ("maxfilespertrigger", "maxbytespertrigger", "pathglobfilter", "recursivefilelookup", "maxfileage")
_TIDYING = ("cleansource", "sourcearchivedir", "latestfirst")
ALTERABLE = ("path", *CSV_OPTIONS, *_PICKING, "latestfirst")
FILE_OPTIONS = ("path", "envelope", "time_unit", *CSV_OPTIONS, *_PICKING, *_TIDYING)


def _is_character(value: str) -> bool:
    return len(value) == 1 and value.isascii() and value not in "\r\n\0"


# Options, a check of their values, and the values in words.
_VALUES: tuple[tuple[tuple[str, ...], Callable[[str], bool], str], ...] = (
    (
        ("header", "multiline", "recursivefilelookup", "latestfirst"),
        lambda value: value.lower() in ("true", "false"),
        "'true' or 'false'",
    ),
    (
        ("maxfilespertrigger", "maxbytespertrigger"),
        lambda value: value.isascii() and value.isdigit() and int(value) > 0,
        "a whole number from 1 on",
    ),
    (("sep", "delimiter"), _is_character, "one character of ASCII, and no line end"),
    (("quote",), lambda value: not value or _is_character(value), "one character of ASCII, or '' for none"),
    (("cleansource",), lambda value: value.lower() in ("archive", "delete", "off"), "'archive', 'delete' or 'off'"),
)


def check_files(source: Source, *, is_csv: bool = False) -> None:
    """Raise `InvalidSql` for an option of another format, or a value that an option cannot have."""
    values = source.options
    listed = f"options: {', '.join(values) or 'none'}"
    for option, value in values.items():
        if option in CSV_OPTIONS and not is_csv:
            fact = f"option `{option}` of `{source.name}` is for CSV, and this is {source.format}"
            raise InvalidSql(fact, detail=listed, hint="leave it out, or say USING csv")
        for options, is_fitting, words in _VALUES:
            if option in options and not is_fitting(value):
                raise InvalidSql(f"option `{option}` of `{source.name}` is `{value}`", detail=listed, hint=words)
    if "sep" in values and "delimiter" in values:
        hint = "they mean the same: give one of them"
        raise InvalidSql(f"`{source.name}` has both `sep` and `delimiter`", detail=listed, hint=hint)
    if values.get("sep", values.get("delimiter", ",")) == values.get("quote", '"'):
        hint = "use another character for one of them"
        raise InvalidSql(f"`{source.name}` has one character as separator and as quote", detail=listed, hint=hint)


def check_flat(source: Source) -> None:
    """Raise `Unsupported` for a column that a field of CSV cannot contain."""
    nested = next((field for field in source.schema if pa.types.is_nested(field.type)), None)
    if nested is not None:
        kind = spark_name(nested.type)
        raise Unsupported(
            f"CSV has no form for column `{nested.name}` of `{source.name}`, which is of type {kind}",
            detail="a field of CSV is one value",
            hint="declare it as STRING, or use USING json or USING parquet",
        )
