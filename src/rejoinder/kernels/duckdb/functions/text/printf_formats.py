"""FORMAT_STRING: the parts of a format one after the other. NULL is written `null`."""

from __future__ import annotations

import re

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing

BLANK, PERCENT, LINE = "text", "percent", "line"
"""Options that are not specifiers: plain text, which is the next option; a percent sign; the end of a line."""
_ABOVE = r"[^\x{10000}-\x{10FFFF}]"
_LARGE = failing("a format supports numbers of at most 15 digits")


def _format_string(call: Call) -> str:
    options = list(call.operation.options)
    texts = []
    while options:
        option = options.pop(0)
        if option == BLANK:
            texts.append(_literal(str(options.pop(0))))
        elif option in (PERCENT, LINE):
            texts.append("'%'" if option == PERCENT else "chr(10)")
        else:
            place, flags, width, precision, kind = options[:5]
            del options[:5]
            bits = call.parts[int(place)].type.bit_width if kind in ("x", "X", "o") else 0
            texts.append(_specified(f"{{{place}}}", str(flags), int(width), int(precision), str(kind), bits))
    return f"({' || '.join(texts)})" if texts else "''"


def _literal(text: str) -> str:
    """A text without braces, which would be places."""
    signs = {"{": "chr(123)", "}": "chr(125)"}
    return " || ".join(signs.get(word) or text_literal(word) for word in re.split(r"([{}])", text) if word)


def _specified(value: str, flags: str, width: int, precision: int, kind: str, bits: int) -> str:
    if kind in ("s", "b", "c"):
        texts = {"s": value, "b": f"CAST({value} AS VARCHAR)", "c": f"chr(CAST({value} AS INTEGER))"}
        null = "'false'" if kind == "b" else "'null'"
        return _padded(f"COALESCE({texts[kind]}, {null})", flags, width)
    if kind in ("x", "X", "o"):
        unsigned = f"CAST(CASE WHEN {value} < 0 THEN {value} + {1 << bits}::HUGEINT ELSE {value} END AS UBIGINT)"
        null = "'NULL'" if kind == "X" else "'null'"
        return _justified(value, f"format(chr(123) || ':{kind}' || chr(125), {unsigned})", flags, width, null=null)
    if kind == "d":
        number = f"abs(CAST({value} AS HUGEINT))"
        digits = f"CAST({number} AS VARCHAR)" if "," not in flags else f"format(chr(123) || ':,' || chr(125), {number})"
        return _justified(value, digits, flags, width, negative=f"{value} < 0")
    comma = "," if "," in flags else ""
    digits = f"format(chr(123) || ':{comma}.{precision}f' || chr(125), {_half_up(f'abs({value})', precision)})"
    checked = f"CASE WHEN abs({value}) >= 1e{15 - precision} THEN {_LARGE} ELSE {digits} END"
    negative = f"({value} < 0 OR CAST({value} AS VARCHAR) = '-0.0')"
    null = text_literal("null"[:precision])  # the precision cuts it
    return _justified(value, checked, flags, width, negative=negative, null=null, is_real=True)


def _half_up(value: str, precision: int) -> str:
    """Java rounds the shortest text of a number, half up; DuckDB's ROUND does that to a DECIMAL."""
    return f"CAST(round(CAST(CAST({value} AS VARCHAR) AS DECIMAL(38,18)), {precision}) AS DOUBLE)"


def _justified(
    value: str, digits: str, flags: str, width: int, *, negative: str = "", null: str = "'null'", is_real: bool = False
) -> str:
    """Digits with a sign, zeros and spaces. What is not a number has no zeros before it."""
    opened, closed = ("'('", "')'") if "(" in flags else ("'-'", "''")
    positive = "'+'" if "+" in flags else "' '" if " " in flags else "''"
    before = f"CASE WHEN {negative} THEN {opened} ELSE {positive} END" if negative else "''"
    after = f"CASE WHEN {negative} THEN {closed} ELSE '' END" if negative else "''"
    text, with_text = bound(digits)
    body = text
    if "0" in flags:
        room = f"({width} - length({before}) - length({after}))"
        body = f"CASE WHEN length({text}) < {room} THEN lpad({text}, CAST({room} AS INTEGER), '0') ELSE {text} END"
    whole = with_text(f"{before} || {body} || {after}")
    if is_real:
        infinite = f"CASE WHEN isnan({value}) THEN 'NaN' ELSE {before} || 'Infinity' || {after} END"
        whole = f"CASE WHEN isfinite({value}) THEN {whole} ELSE {infinite} END"
    return _padded(f"CASE WHEN {value} IS NULL THEN {null} ELSE {whole} END", flags, width)


def _padded(text: str, flags: str, width: int) -> str:
    """Fill up with spaces. Java counts a character above U+FFFF twice."""
    if not width:
        return f"({text})"
    name, with_name = bound(text)
    missing = f"({width} - length({name}) - length(regexp_replace({name}, '{_ABOVE}', '', 'g')))"
    spaces = f"repeat(' ', CAST(greatest({missing}, 0) AS INTEGER))"
    return with_name(f"({name} || {spaces})" if "-" in flags else f"({spaces} || {name})")


RENDERINGS: dict[str, Rendering] = {"format_string": _format_string}
