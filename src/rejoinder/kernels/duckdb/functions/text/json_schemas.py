"""FROM_JSON and TO_CSV. DuckDB reads texts that mean the same to Spark, `outside.lenient_json` makes others so."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing
from rejoinder.kernels.duckdb.functions.text.json_functions import CLEAN, JAVA_NUMBER, literally, requoted

_JAVA = failing("from_json does not support the text of a number that Java writes in another form")
_CONSTANT = failing("NaN and Infinity in JSON are not supported by from_json")


def _from_json(call: Call) -> str:
    names = dict.fromkeys(_names(call.type))
    quoted = [literally(f'"{name}"') for name in names]
    twice = " OR ".join(f"regexp_matches({{0}}, {text_literal(f'(?s){name}.*{name}')})" for name in quoted)
    is_plain = f"{CLEAN} AND NOT ({twice}) AND NOT regexp_matches({{0}}, {text_literal(JAVA_NUMBER)})"
    text, with_text = bound(f"CASE WHEN {is_plain} THEN {{0}} ELSE arrow_json_normal({{0}}) END")
    fields = ", ".join(
        f"{text_literal(field.name)}: "
        + _converted(f"json_extract({text}, {text_literal(f'$.{chr(34)}{field.name}{chr(34)}')})", field.type)
        for field in call.type
    )
    struct = with_text(f"{{{fields}}}")
    is_blank = "regexp_full_match({0}, '[ \\t\\r\\n]*')"
    is_constant = "regexp_matches({0}, '(?i:nan|inf)') AND arrow_json_normal({0}) = 'null'"
    whens = f"WHEN {{0}} IS NULL OR {is_blank} THEN NULL WHEN {is_constant} THEN {_CONSTANT}"
    return requoted(f"CASE {whens} ELSE {struct} END")


def _names(kind: pa.DataType) -> list[str]:
    if pa.types.is_struct(kind):
        return [name for field in kind for name in (field.name, *_names(field.type))]
    return _names(kind.value_type) if pa.types.is_list(kind) else []


def _converted(value: str, kind: pa.DataType, depth: int = 0) -> str:
    """A JSON value as a type; NULL if it is of another."""
    if pa.types.is_string(kind):
        texts = f"WHEN 'VARCHAR' THEN json_extract_string({value}, '$') WHEN 'NULL' THEN NULL"
        java = f"regexp_matches(CAST({value} AS VARCHAR), {text_literal(JAVA_NUMBER)})"
        other = f"CASE WHEN {java} THEN {_JAVA} ELSE CAST({value} AS VARCHAR) END"
        return f"CASE json_type({value}) {texts} ELSE {other} END"
    if pa.types.is_boolean(kind):
        return f"CASE WHEN json_type({value}) = 'BOOLEAN' THEN CAST({value} AS BOOLEAN) END"
    if pa.types.is_integer(kind):
        number = f"TRY_CAST(CAST({value} AS VARCHAR) AS {duckdb_type(kind)})"
        return f"CASE WHEN json_type({value}) IN ('UBIGINT', 'BIGINT') THEN {number} END"
    if pa.types.is_floating(kind):
        number = f"TRY_CAST(CAST({value} AS VARCHAR) AS {duckdb_type(kind)})"
        words = f"json_extract_string({value}, '$')"
        named = f"CASE WHEN {words} IN ('NaN', 'Infinity', '-Infinity') THEN CAST({words} AS {duckdb_type(kind)}) END"
        return f"CASE json_type({value}) WHEN 'VARCHAR' THEN {named} WHEN 'BOOLEAN' THEN NULL ELSE {number} END"
    if pa.types.is_list(kind):
        item = f"item_{depth}"
        inner = _converted(item, kind.value_type, depth + 1)
        made = f"list_transform(json_extract({value}, '$[*]'), lambda {item}: {inner})"
        nulls = f"len(list_filter(json_extract({value}, '$[*]'), lambda {item}: json_type({item}) = 'NULL'))"
        # one element of another type makes the whole NULL
        whole = f"len({made}) - list_count({made}) = {nulls}"
        return f"CASE WHEN json_type({value}) = 'ARRAY' THEN CASE WHEN {whole} THEN {made} END END"
    fields = ", ".join(
        f"{text_literal(field.name)}: "
        + _converted(f"json_extract({value}, {text_literal(f'$.{chr(34)}{field.name}{chr(34)}')})", field.type, depth)
        for field in kind
    )
    return f"CASE WHEN json_type({value}) = 'OBJECT' THEN {{{fields}}} END"


def _to_csv(call: Call) -> str:
    """Fields with commas between them; one with a comma, quote or line break stands in quotes, and so does none."""
    parts = []
    for field in call.parts[0].type:
        value = f"struct_extract({{0}}, {text_literal(field.name)})"
        if not pa.types.is_string(field.type):
            parts.append(f"COALESCE(CAST({value} AS VARCHAR), '')")
            continue
        trimmed = rf"regexp_replace({value}, '^[\x00-\x20]+|[\x00-\x20]+$', '', 'g')"
        escaped = rf"""replace(replace({trimmed}, '\', '\\'), '"', '\"')"""
        inside = f"""'"' || {escaped} || '"'"""
        strange = rf"regexp_matches({value}, '[,\"\n\r]') OR {trimmed} = ''"
        parts.append(f"CASE WHEN {value} IS NULL THEN '' WHEN {strange} THEN {inside} ELSE {trimmed} END")
    line = " || ',' || ".join(parts)
    only_null = f" AND struct_extract({{0}}, {text_literal(call.parts[0].type[0].name)}) IS NOT NULL"
    return f"CASE WHEN {{0}} IS NOT NULL{only_null if len(parts) == 1 else ''} THEN {line} END"


RENDERINGS: dict[str, Rendering] = {"from_json": _from_json, "to_csv": _to_csv}
