"""UPPER and LOWER with the full case mappings of Unicode, which DuckDB does not have.

DuckDB maps letter by letter. Letters for which Spark does more are replaced first. A letter that DuckDB does not know,
or a capital sigma beside one, fails the row, so that no result differs from Spark's.
"""

from __future__ import annotations

from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import failing

_UPPER_REPLACED = {letter: letter.upper() for letter in "ßŉǰΐΰևẖẗẘẙẚﬀﬁﬂﬃﬄﬅﬆﬓﬔﬕﬖﬗ"}
_UPPER_UNKNOWN = (
    r"[\x{19B}\x{264}\x{1C8A}\x{1F50}\x{1F52}\x{1F54}\x{1F56}\x{1F80}-\x{1FAF}\x{1FB2}-\x{1FB4}\x{1FB6}\x{1FB7}\x{1FBC}"
    r"\x{1FC2}-\x{1FC4}\x{1FC6}\x{1FC7}\x{1FCC}\x{1FD2}\x{1FD3}\x{1FD6}\x{1FD7}\x{1FE2}-\x{1FE4}\x{1FE6}\x{1FE7}"
    r"\x{1FF2}-\x{1FF4}\x{1FF6}\x{1FF7}\x{1FFC}\x{A7CD}\x{A7CF}\x{A7D3}\x{A7D5}\x{A7DB}\x{10D70}-\x{10D85}\x{16EBB}-\x{16ED3}]"
)
_LOWER_UNKNOWN = (
    r"[\x{1C89}\x{A7CB}\x{A7CC}\x{A7CE}\x{A7D2}\x{A7D4}\x{A7DA}\x{A7DC}\x{10D50}-\x{10D65}\x{16EA0}-\x{16EB8}]"
)

_CASED = r"[\p{Lu}\p{Ll}\p{Lt}]"
_IGNORED = (
    r"[\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:\x{B7}\x{387}\x{2018}\x{2019}\x{2024}\x{2027}"
    r"\x{55F}\x{5F4}\x{FE13}\x{FE52}\x{FE55}\x{FF07}\x{FF0E}\x{FF1A}]"
)
_NEITHER = (
    r"[^\p{Lu}\p{Ll}\p{Lt}\p{Mn}\p{Me}\p{Cf}\p{Lm}\p{Sk}'.:\x{B7}\x{387}\x{2018}\x{2019}\x{2024}\x{2027}"
    r"\x{55F}\x{5F4}\x{FE13}\x{FE52}\x{FE55}\x{FF07}\x{FF0E}\x{FF1A}]"
)
# At the end of a word: a letter before, none after; what Unicode ignores between does not count.
_FINAL_SIGMA = rf"({_CASED}{_IGNORED}*)Σ({_IGNORED}*(?:{_NEITHER}|$))"
_UNKNOWN_BESIDE_SIGMA = (
    r"[\x{AA}\x{BA}\x{295}\x{897}\x{1ACF}-\x{1ADD}\x{1AE0}-\x{1AEB}\x{1C89}-\x{1C8A}\x{2160}-\x{217F}\x{24B6}-\x{24E9}"
    r"\x{A7CB}-\x{A7CF}\x{A7D2}\x{A7D4}\x{A7DA}-\x{A7DC}\x{A7F1}\x{10D4E}\x{10D50}-\x{10D65}\x{10D69}-\x{10D6D}\x{10D6F}-\x{10D85}"
    r"\x{10EC5}\x{10EFA}-\x{10EFC}\x{113BB}-\x{113C0}\x{113CE}\x{113D0}\x{113D2}\x{113E1}-\x{113E2}\x{1171E}\x{11B60}"
    r"\x{11B62}-\x{11B64}\x{11B66}\x{11DD9}\x{11F5A}\x{1611E}-\x{16129}\x{1612D}-\x{1612F}\x{16D40}-\x{16D42}"
    r"\x{16D6B}-\x{16D6C}\x{16EA0}-\x{16EB8}\x{16EBB}-\x{16ED3}\x{16FF2}-\x{16FF3}\x{1E5EE}-\x{1E5EF}\x{1E6E3}\x{1E6E6}"
    r"\x{1E6EE}-\x{1E6EF}\x{1E6F5}\x{1E6FF}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}]"
)

_DIGRAPHS_AND_GEORGIAN = r"[\x{1C4}-\x{1CC}\x{1F1}-\x{1F3}\x{10D0}-\x{10FF}]"
NO_PLAIN_CAPITAL = f"(?:{_UPPER_UNKNOWN}|[{''.join(_UPPER_REPLACED)}]|{_DIGRAPHS_AND_GEORGIAN})"
"""Letters whose title case is not one letter, or another one than the capital."""


def upper(text: str) -> str:
    """The template of UPPER."""
    replaced = text
    for letter, letters in _UPPER_REPLACED.items():
        replaced = f"replace({replaced}, '{letter}', '{letters}')"
    special = "[" + "".join(_UPPER_REPLACED) + "]"
    return (
        f"CASE WHEN regexp_matches({text}, '{_UPPER_UNKNOWN}') THEN {failing('UPPER of this letter is not supported')} "
        f"WHEN regexp_matches({text}, '{special}') THEN upper({replaced}) ELSE upper({text}) END"
    )


def lower(text: str) -> str:
    """The template of LOWER."""
    dotted = f"replace({text}, 'İ', 'i\u0307')"
    ended = f"regexp_replace({dotted}, {text_literal(_FINAL_SIGMA)}, '\\1ς\\2', 'g')"
    return (
        f"CASE WHEN regexp_matches({text}, '{_LOWER_UNKNOWN}') THEN {failing('LOWER of this letter is not supported')} "
        f"WHEN NOT contains({text}, 'Σ') THEN lower({dotted}) WHEN regexp_matches({text}, '{_UNKNOWN_BESIDE_SIGMA}') "
        f"THEN {failing('LOWER of a sigma beside such letters is not supported')} ELSE lower({ended}) END"
    )
