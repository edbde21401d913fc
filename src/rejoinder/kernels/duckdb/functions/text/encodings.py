"""Bytes of text, and text of bytes."""

from __future__ import annotations

import pyarrow as pa

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing


def _hex(call: Call) -> str:
    if pa.types.is_integer(call.parts[0].type):
        return "to_hex({0})"
    return "hex({0})"


def _bytes(call: Call) -> str:
    return "octet_length({0})" if pa.types.is_binary(call.parts[0].type) else "octet_length(encode({0}))"


# Java's encoder writes a space as +, and leaves * but not ~.
_ENCODED = "replace(replace(replace(url_encode({0}), '%20', '+'), '~', '%7E'), '%2A', '*')"
IS_BROKEN = "contains(regexp_replace({0}, '%[0-9A-Fa-f]{2,2}', '', 'g'), '%')"
"""Whether a text has a percent sign that starts no byte."""
URL_DECODED = "url_decode(replace({0}, '+', ' '))"
_LETTER = "[A-Za-z0-9+/]"
_BASE64 = f"^({_LETTER}{{4,4}})*({_LETTER}{{2,2}}==|{_LETTER}{{3,3}}=)?$"
_DIGITS = "CASE WHEN length({0}) % 2 = 1 THEN '0' || {0} ELSE {0} END"

RENDERINGS: dict[str, Rendering] = {
    "base64": "base64({0})",
    "bit_length": lambda call: f"CAST(8 * {_bytes(call)} AS INTEGER)",
    "crc32": "arrow_crc32({0})",
    "decode": f"CASE WHEN TRY(decode({{0}})) IS NULL AND {{0}} IS NOT NULL THEN {failing('bytes are not UTF-8')} "
    "ELSE TRY(decode({0})) END",
    "encode": "encode({0})",
    "hex": _hex,
    "is_valid_utf8": "({0} IS NOT NULL OR CAST(NULL AS BOOLEAN))",
    "make_valid_utf8": "{0}",
    "md5": "md5({0})",
    "octet_length": lambda call: f"CAST({_bytes(call)} AS INTEGER)",
    "sha1": "sha1({0})",
    "sha2": "sha256({0})",
    "try_validate_utf8": "{0}",
    "unbase64": f"CASE WHEN regexp_matches({{0}}, '{_BASE64}') THEN from_base64({{0}}) "
    f"WHEN {{0}} IS NOT NULL THEN {failing('the text is not base64')} END",
    "unhex": f"CASE WHEN regexp_matches({{0}}, '^[0-9A-Fa-f]*$') THEN unhex({_DIGITS}) END",
    "url_decode": f"CASE WHEN {IS_BROKEN} THEN {failing('the text is not percent-encoded')} ELSE {URL_DECODED} END",
    "url_encode": _ENCODED,
    "validate_utf8": "{0}",
}
