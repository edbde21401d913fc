"""Numbers as text by a pattern such as `S9,990.99`, and back. The options of a call are the parts of the pattern."""

from __future__ import annotations

from dataclasses import dataclass

from rejoinder.ir.expressions.nodes import Call
from rejoinder.kernels.duckdb.duckdb_types import duckdb_type
from rejoinder.kernels.duckdb.duckdb_words import text_literal
from rejoinder.kernels.duckdb.functions.templates import Rendering, bound, failing


@dataclass(frozen=True)
class NumberPattern:
    """A pattern, taken apart: sign, currency, groups of digits before the point, digits after it, sign."""

    before: str
    currency: str
    groups: str
    """Digits, with commas between them."""
    point: str
    fraction: str
    after: str

    @property
    def options(self) -> tuple[str, ...]:
        """The parts as options of a call."""
        return (self.before, self.currency, self.groups, self.point, self.fraction, self.after)

    @property
    def whole_digits(self) -> int:
        """The number of digits before the point."""
        return len(self.groups.replace(",", ""))


def _pattern(call: Call) -> NumberPattern:
    return NumberPattern(*(str(option) for option in call.operation.options))


def _to_char(call: Call) -> str:
    pattern, scale = _pattern(call), call.parts[0].type.scale
    text, with_text = bound("CAST(abs({0}) AS VARCHAR)")
    whole, with_whole = bound(f"ltrim(split_part({text}, '.', 1), '0')")
    rest, with_rest = bound(f"rtrim(split_part({text}, '.', 2), '0')" if scale else "''")
    fits = f"length({whole}) <= {pattern.whole_digits} AND length({rest}) <= {len(pattern.fraction)}"
    body = " || ".join(_whole(pattern.groups, whole)) or "''"
    if pattern.point:
        body = f"{body} || '.' || rpad({rest}, {len(pattern.fraction)}, '0')"
    dots = "." if pattern.point else ""
    hashes = "".join(" " if sign == "," else "#" for sign in pattern.groups) + dots + "#" * len(pattern.fraction)
    shown, with_shown = bound(f"CASE WHEN {fits} THEN {body} ELSE {text_literal(hashes)} END")
    signed = _signed(pattern, shown)
    if pattern.point:
        signed = f"regexp_replace({signed}, ' [.]', '0.')"
    if pattern.point and not pattern.fraction:
        signed = f"replace({signed}, '.', ' ')"
    inner = with_whole(with_rest(with_shown(signed)))
    return f"CASE WHEN {{0}} IS NOT NULL THEN {with_text(inner)} END"


def _whole(groups: str, digits: str) -> list[str]:
    """The signs before the point: of a group that starts with 0, missing digits are zeros, else blanks."""
    signs: list[str] = []
    place = len(groups.replace(",", ""))
    filler = "' '"
    for at, sign in enumerate(groups):
        if sign == ",":
            signs.append(f"CASE WHEN {signs[-1]} = ' ' THEN ' ' ELSE ',' END")
            continue
        if at == 0 or groups[at - 1] == ",":
            filler = "'0'" if sign == "0" else "' '"
        digit = f"substring({digits}, CAST(length({digits}) - {place - 1} AS INTEGER), 1)"
        signs.append(f"CASE WHEN length({digits}) >= {place} THEN {digit} ELSE {filler} END")
        place -= 1
    return signs


def _signed(pattern: NumberPattern, body: str) -> str:
    """A sign stands beside the digits, blanks outside of it."""
    signs = {"S": ("'-'", "'+'"), "MI": ("'-'", "' '")}
    blanks, digits = f"regexp_extract({body}, '^ *')", f"ltrim({body}, ' ')"
    if pattern.after == "PR":
        marked = f"{blanks} || '<' || {digits} || '>'"
        body = f"CASE WHEN {{0}} < 0 THEN {marked} ELSE {body} || '  ' END"
    elif pattern.after:
        negative, positive = signs[pattern.after]
        sign = f"CASE WHEN {{0}} < 0 THEN {negative} ELSE {positive} END"
        body = f"(rtrim({body}, ' ') || {sign} || regexp_extract({body}, ' *$'))"
    if not pattern.before:
        return f"({text_literal(pattern.currency)} || {body})"
    negative, positive = signs[pattern.before]
    sign = f"CASE WHEN {{0}} < 0 THEN {negative} ELSE {positive} END"
    if pattern.currency:
        return f"({sign} || {text_literal(pattern.currency)} || {body})"
    return f"({blanks} || {sign} || {digits})"


def _to_number(otherwise: str) -> Rendering:
    def rendering(call: Call) -> str:
        pattern = _pattern(call)
        text, with_text = bound(r"regexp_replace({0}, '[\s\v]', '', 'g')")
        expression = _expression(pattern)
        negative = f"contains({text}, '<')" if pattern.after == "PR" else f"contains({text}, '-')"
        digits = f"regexp_replace({text}, '[^0-9.]', '', 'g')"
        # one more digit before the point than the type has: a point needs one to be cast
        value = f"CAST(CASE WHEN {negative} THEN '-0' ELSE '0' END || {digits} AS {duckdb_type(call.type)})"
        foreign = failing("digits other than 0 to 9 are not supported")
        # blanks may stand among the digits, not before a sign
        is_blank = r"regexp_matches({0}, '^[^0-9]*[\s\v][-+$<]')"
        has_digits = f"regexp_matches({text}, '[0-9]') AND NOT {is_blank}"
        matched = f"regexp_full_match({text}, {text_literal(expression)}) AND {has_digits}"
        chosen = (
            f"CASE WHEN {matched} THEN {value} WHEN regexp_matches({text}, '[^0-9]') AND {_FOREIGN} THEN {foreign} "
        )
        return f"CASE WHEN {{0}} IS NOT NULL THEN {with_text(f'{chosen}ELSE {otherwise} END')} END"

    return rendering


_FOREIGN = r"regexp_matches(regexp_replace({0}, '[0-9]', '', 'g'), '\p{Nd}')"


def _expression(pattern: NumberPattern) -> str:
    """The regular expression of texts that a pattern reads. Groups on the left may be missing if they start with 9."""
    whole = ""
    for group in pattern.groups.split(",") if pattern.groups else ():
        size = len(group)
        digits = f"[0-9]{{{size},{size}}}" if group.startswith("0") else f"[0-9]{{0,{size}}}"
        whole = digits if not whole else f"{whole},{digits}" if "0" in pattern.groups[:1] else f"(?:{whole},)?{digits}"
    fraction = rf"(?:\.[0-9]{{0,{len(pattern.fraction)}}})?" if pattern.point else ""
    before, after = ({"S": "[+-]?", "MI": "-?"}.get(sign, "") for sign in (pattern.before, pattern.after))
    number = f"{before}{'[$]' if pattern.currency else ''}{whole}{fraction}{after}"
    return f"{number}|<{number}>" if pattern.after == "PR" else number


_MISMATCH = failing("the text does not match the format of to_number")

RENDERINGS: dict[str, Rendering] = {
    "to_char": _to_char,
    "to_number": _to_number(_MISMATCH),
    "try_to_number": _to_number("NULL"),
}
