"""Parts of a URL, as Java's `URI` takes it apart: a text that is not a URI to Java has no parts."""

from __future__ import annotations

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, failing

_OTHER = (
    r"[^\x00-\x7F\x{80}-\x{9F}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]"
    r"|%[0-9A-Fa-f][0-9A-Fa-f]"
)
_UNRESERVED = r"A-Za-z0-9_\-!.~'()*"


def _signs(more: str) -> str:
    """A sign that may be written as it is, or one above ASCII, or its code."""
    return f"(?:[{_UNRESERVED}{more}]|{_OTHER})"


_PATH_SIGN = _signs(r":@&=+$,;/")
_SIGN = _signs(r";/?:@&=+$,\[\]")
_SCHEME = r"[A-Za-z][A-Za-z0-9+.\-]*"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\-]*[A-Za-z0-9])?"
_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}\.{_OCTET}\.{_OCTET}\.{_OCTET}"
_HEX = r"[0-9A-Fa-f]{1,4}"
_IPV6 = "|".join(
    (
        f"(?:{_HEX}:){{7,7}}{_HEX}",
        f"(?:{_HEX}:){{1,7}}:",
        *(f"(?:{_HEX}:){{1,{7 - after}}}(?::{_HEX}){{1,{after}}}" for after in range(1, 7)),
        f":(?::{_HEX}){{1,7}}",
        "::",
        f"::(?:[fF][fF][fF][fF]:)?{_IPV4}",
    )
)
_NAME = rf"(?:{_LABEL}\.)*[A-Za-z](?:[A-Za-z0-9\-]*[A-Za-z0-9])?\.?"
_HOST = rf"(?:{_IPV4}|{_NAME}|\[(?:{_IPV6})\])"
_USER = f"(?:({_signs(';:&=+$,')}*)@)?"
_SERVER = f"{_USER}({_HOST})(?::[0-9]*)?"
_AUTHORITY = f"(?:{_SERVER}|{_signs('$,;:@&=+')}+)"
_REST = rf"(?:\?{_SIGN}*)?(?:#{_SIGN}*)?"
_VALID = "|".join(
    (
        f"(?:{_SCHEME}:)?//{_AUTHORITY}(?:/{_PATH_SIGN}*)?{_REST}",
        f"(?:{_SCHEME}:)?//(?:[/?#].*)",
        f"(?:{_SCHEME}:)?/(?:{_signs(':@&=+$,;')}{_PATH_SIGN}*)?{_REST}",
        f"(?:{_signs('@&=+$,;')}+(?:/{_PATH_SIGN}*)?)?{_REST}",
        f"{_SCHEME}:{_signs('?:@&=+$,;')}{_SIGN}*(?:#{_SIGN}*)?",
    )
)
_WITHOUT_AUTHORITY = f"(?:{_SCHEME}:)?//(?:/{_PATH_SIGN}*)?{_REST}"
_PARTS = r"^(?:[^:/?#]+:)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$"


def _group(number: int) -> str:
    return f"regexp_extract({{0}}, {text_literal(f'(?s){_PARTS}')}, {number})"


def _matches(pattern: str) -> str:
    return f"regexp_matches({{0}}, {text_literal(pattern)})"


_IS_OPAQUE = _matches(r"^[^:/?#]+:[^/]")
_IS_VALID = (
    f"(regexp_full_match({{0}}, {text_literal(_VALID)}) AND "
    f"(NOT {_matches('^(?:[^:/?#]+:)?//[/?#]')} OR regexp_full_match({{0}}, {text_literal(_WITHOUT_AUTHORITY)})))"
)
_QUERY = f"CASE WHEN {_matches(r'^[^#]*[?]')} AND NOT {_IS_OPAQUE} THEN {_group(3)} END"
_PATH = f"CASE WHEN NOT {_IS_OPAQUE} THEN {_group(2)} END"


def _of_server(group: int) -> str:
    found = f"regexp_full_match({_group(1)}, {text_literal(_SERVER)})"
    part = f"nullif(regexp_extract({_group(1)}, {text_literal(f'^{_SERVER}$')}, {group}), '')"
    return f"CASE WHEN NOT {_IS_OPAQUE} AND {found} THEN {part} END"


_RENDERED = {
    "HOST": _of_server(2),
    "PATH": _PATH,
    "QUERY": _QUERY,
    "REF": f"CASE WHEN contains({{0}}, '#') THEN {_group(4)} END",
    "PROTOCOL": r"nullif(regexp_extract({0}, '^([^:/?#]+):', 1), '')",
    "FILE": f"({_PATH} || COALESCE('?' || {_QUERY}, ''))",
    "AUTHORITY": f"CASE WHEN NOT {_IS_OPAQUE} THEN nullif({_group(1)}, '') END",
    "USERINFO": _of_server(1),
}
PARTS = tuple(_RENDERED)


def _part(otherwise: str) -> Rendering:
    def rendering(call: Call) -> str:
        name, *keys = (str(option) for option in call.operation.options)
        found = _RENDERED.get(name, "CAST(NULL AS VARCHAR)")
        for key in keys:
            pattern = text_literal(f"(?:&|^){key}=([^&]*)")
            found = f"CASE WHEN regexp_matches({found}, {pattern}) THEN regexp_extract({found}, {pattern}, 1) END"
        return f"CASE WHEN {{0}} IS NULL THEN NULL WHEN {_IS_VALID} THEN {found} ELSE {otherwise} END"

    return rendering


RENDERINGS: dict[str, Rendering] = {
    "parse_url": _part(failing("the text is not a URL")),
    "try_parse_url": _part("NULL"),
}
