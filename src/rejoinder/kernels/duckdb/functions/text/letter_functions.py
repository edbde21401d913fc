"""Functions that look at each letter of a text, and at bits of bytes."""

from __future__ import annotations

import string

from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.parts import letter_case
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing
from rejoinder.kernels.duckdb.functions.text.encodings import IS_BROKEN, URL_DECODED
from rejoinder.kernels.duckdb.functions.text.encodings import RENDERINGS as ENCODINGS

_UPPER = r"regexp_replace({0}, '\p{Lu}', 'X', 'g')"
_LOWER = rf"regexp_replace({_UPPER}, '\p{{Ll}}', 'x', 'g')"
_NOT_HEX = failing("the text is not hexadecimal")


def _initcap() -> str:
    lower, with_lower = bound(letter_case.lower("{0}"))
    words = f"list_transform(string_split({lower}, ' '), lambda word: upper(left(word, 1)) || substring(word, 2))"
    special = f"regexp_matches({lower}, {text_literal('(?:^| )' + letter_case.NO_PLAIN_CAPITAL)})"
    message = failing("INITCAP of a word with this first letter is not supported")
    return with_lower(f"CASE WHEN {special} THEN {message} ELSE array_to_string({words}, ' ') END")


_CODES = "01230127022455012623017202"
"""The codes of A to Z; 0 separates equal codes, and 7 does not."""


def _soundex() -> str:
    letters = string.ascii_uppercase
    upper, with_upper = bound(f"translate({{0}}, '{string.ascii_lowercase}', '{letters}')")
    codes = f"translate(regexp_replace({upper}, '[^A-Z]', 'A', 'g'), '{letters}', '{_CODES}')"
    # H and W are left out, but not at the start
    parts = f"replace(left({codes}, 1), '7', '0') || replace(substring({codes}, 2), '7', '')"
    for code in "123456":
        parts = f"regexp_replace({parts}, '{code}+', '{code}', 'g')"
    code, with_code = bound(parts)
    coded = f"left({upper}, 1) || left(replace(substring({code}, 2), '0', '') || '000', 3)"
    return with_upper(f"CASE WHEN regexp_matches({upper}, '^[A-Z]') THEN {with_code(coded)} ELSE {{0}} END")


RENDERINGS: dict[str, Rendering] = {
    "bitmap_bit_position": "CAST(CASE WHEN {0} > 0 THEN {0} - 1 ELSE -CAST({0} AS HUGEINT) END % 32768 AS BIGINT)",
    "bitmap_bucket_number": "CASE WHEN {0} > 0 THEN 1 + ({0} - 1) // 32768 ELSE {0} // 32768 END",
    "bitmap_count": "CASE WHEN octet_length({0}) > 0 THEN CAST(bit_count(CAST({0} AS BIT)) AS BIGINT) "
    "WHEN {0} IS NOT NULL THEN 0 END",
    "initcap": _initcap(),
    "mask": rf"regexp_replace({_LOWER}, '\p{{Nd}}', 'n', 'g')",
    "soundex": _soundex(),
    "to_binary": f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({ENCODINGS['unhex']}, {_NOT_HEX}) END",
    "typeof": lambda call: text_literal(str(call.operation.options[0])),
    "try_url_decode": f"CASE WHEN NOT {IS_BROKEN} THEN {URL_DECODED} END",
}
