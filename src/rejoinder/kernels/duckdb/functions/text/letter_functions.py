"""Functions that look at each letter of a text, and at bits of bytes."""

from __future__ import annotations

from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing
from rejoinder.kernels.duckdb.functions.text.encodings import RENDERINGS as ENCODINGS

_UPPER = r"regexp_replace({0}, '\p{Lu}', 'X', 'g')"
_LOWER = rf"regexp_replace({_UPPER}, '\p{{Ll}}', 'x', 'g')"
_NOT_HEX = failing("the text is not hexadecimal")

RENDERINGS: dict[str, Rendering] = {
    "bitmap_bit_position": "CAST(CASE WHEN {0} > 0 THEN {0} - 1 ELSE -CAST({0} AS HUGEINT) END % 32768 AS BIGINT)",
    "bitmap_bucket_number": "CASE WHEN {0} > 0 THEN 1 + ({0} - 1) // 32768 ELSE {0} // 32768 END",
    "bitmap_count": "CASE WHEN octet_length({0}) > 0 THEN CAST(bit_count(CAST({0} AS BIT)) AS BIGINT) "
    "WHEN {0} IS NOT NULL THEN 0 END",
    "mask": rf"regexp_replace({_LOWER}, '\p{{Nd}}', 'n', 'g')",
    "to_binary": f"CASE WHEN {{0}} IS NOT NULL THEN COALESCE({ENCODINGS['unhex']}, {_NOT_HEX}) END",
    "typeof": lambda call: text_literal(str(call.operation.options[0])),
    "try_url_decode": "CASE WHEN NOT contains(regexp_replace({0}, '%[0-9A-Fa-f]{2,2}', '', 'g'), '%') "
    "THEN url_decode(replace({0}, '+', ' ')) END",
}
