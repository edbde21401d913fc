"""Functions on JSON texts. DuckDB reads texts that mean the same to Spark, `outside.lenient_json` the others."""

from __future__ import annotations

import json
import re

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound

_COMMAS_AND_CONSTANTS = r",[ \t\r\n]*[\]\x7D]|(?i:nan|inf)"
CLEAN = f"(json_valid({{0}}) AND NOT regexp_matches({{0}}, {text_literal(_COMMAS_AND_CONSTANTS)}))"
JAVA_NUMBER = r"[0-9]{8,}[.]|[.]00|[.][0-9]{10,}|[0-9][eE]"
"""Numbers that Java may write in another form than DuckDB. It also matches some texts, which costs time only."""


def _get_object(call: Call) -> str:
    """Find a value. The options are the path as it is written, and its steps; none for a path that finds nothing."""
    if not call.operation.options:
        return "CASE WHEN {0} IS NULL THEN {0} END"
    path, *steps = call.operation.options
    names = [step for step in steps if isinstance(step, str)]
    found = "$" + "".join(f'."{step}"' if isinstance(step, str) else f"[{step}]" for step in steps)
    raw, with_raw = bound(f"CASE WHEN {CLEAN} THEN json_extract({{0}}, {text_literal(found)}) END")
    lenient = f"arrow_json_extract({{0}}, {text_literal(str(path))})"
    # A key that occurs twice is found again if its first value leads nowhere.
    twice = " OR ".join(
        f"regexp_matches({{0}}, {text_literal(f'(?s){quoted}.*{quoted}')})"
        for quoted in (literally(f'"{name}"') for name in dict.fromkeys(names))
    )
    missing = "NULL" if not names else f"CASE WHEN {twice} THEN {lenient} END"
    strange = f"regexp_matches(CAST({raw} AS VARCHAR), {text_literal(JAVA_NUMBER)})"
    is_null = f"{raw} IS NULL OR json_type({raw}) = 'NULL'" if names else f"{raw} IS NULL"
    value = with_raw(
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN NOT {CLEAN} THEN {lenient} WHEN {is_null} THEN {missing} "
        f"WHEN json_type({raw}) = 'VARCHAR' THEN json_extract_string({raw}, '$') "
        f"WHEN {strange} THEN {lenient} ELSE CAST({raw} AS VARCHAR) END"
    )
    return requoted(value)


def requoted(template: str) -> str:
    """A template over a text in which single quotes, if it has no others, are double ones: what Spark reads as well."""
    is_single = "contains({0}, chr(39)) AND NOT contains({0}, chr(34)) AND NOT contains({0}, chr(92))"
    text, with_text = bound(f"CASE WHEN {is_single} THEN replace({{0}}, chr(39), chr(34)) ELSE {{0}} END")
    return with_text(template.replace("{0}", text))


def literally(text: str) -> str:
    """A regular expression for a text, without braces, which would be places."""
    return re.escape(text).replace(r"\{", r"\x7B").replace(r"\}", r"\x7D")


def _lenient(clean: str, lenient: str) -> str:
    return requoted(f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {CLEAN} THEN {clean} ELSE {lenient}({{0}}) END")


def _written(value: str, kind: pa.DataType, depth: int = 0) -> str:
    """A value as JSON; NULL for NULL. Braces are written by their codes, since they would be places."""
    part = f"json_{depth}"
    if pa.types.is_struct(kind):
        fields = ", ".join(
            f"{text_literal(json.dumps(field.name, ensure_ascii=False) + ':')} || "
            + _written(f"struct_extract({value}, {text_literal(field.name)})", field.type, depth)
            for field in kind
        )
        text = f"chr(123) || concat_ws(',', {fields}) || chr(125)"
    elif pa.types.is_list(kind):
        item = f"COALESCE({_written(part, kind.value_type, depth + 1)}, 'null')"
        text = f"'[' || array_to_string(list_transform({value}, lambda {part}: {item}), ',') || ']'"
    elif pa.types.is_map(kind):
        item = f"COALESCE({_written(f'{part}.value', kind.item_type, depth + 1)}, 'null')"
        entry = f"CAST(to_json({part}.key) AS VARCHAR) || ':' || {item}"
        entries = f"list_transform(map_entries({value}), lambda {part}: {entry})"
        text = f"chr(123) || array_to_string({entries}, ',') || chr(125)"
    elif pa.types.is_string(kind):
        return f"CAST(to_json({value}) AS VARCHAR)"
    elif pa.types.is_binary(kind):
        return f"('\"' || base64({value}) || '\"')"
    else:
        return f"CAST({value} AS VARCHAR)"
    return f"CASE WHEN {value} IS NOT NULL THEN {text} END"


_LENGTH = "CASE WHEN json_type({0}) = 'ARRAY' THEN CAST(json_array_length({0}) AS INTEGER) END"
_KEYS = "CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END"


def _json_tuple(call: Call) -> str:
    """The value of a name; of a name that occurs twice, the last one that is not NULL."""
    (name,) = map(str, call.operation.options)
    quoted = literally(f'"{name}"')
    twice = f"regexp_matches({{0}}, {text_literal(f'(?s){quoted}.*{quoted}')})"
    raw, with_raw = bound(
        f"CASE WHEN {CLEAN} THEN json_extract({{0}}, {text_literal(f'$.{chr(34)}{name}{chr(34)}')}) END"
    )
    lenient = f"arrow_json_last({{0}}, {text_literal(name)})"
    strange = f"regexp_matches(CAST({raw} AS VARCHAR), {text_literal(JAVA_NUMBER)})"
    value = with_raw(
        f"CASE WHEN {{0}} IS NULL THEN NULL WHEN NOT {CLEAN} OR {twice} THEN {lenient} "
        f"WHEN {raw} IS NULL OR json_type({raw}) = 'NULL' THEN NULL "
        f"WHEN json_type({raw}) = 'VARCHAR' THEN json_extract_string({raw}, '$') "
        f"WHEN {strange} THEN {lenient} ELSE CAST({raw} AS VARCHAR) END"
    )
    return requoted(value)


RENDERINGS: dict[str, Rendering] = {
    "get_json_object": _get_object,
    "json_array_length": _lenient(_LENGTH, "arrow_json_lengths"),
    "json_object_keys": _lenient(_KEYS, "arrow_json_keys"),
    "json_tuple": _json_tuple,
    "to_json": lambda call: _written("{0}", call.parts[0].type),
}
