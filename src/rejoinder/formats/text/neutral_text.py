"""Neutralise text from rows and names, so that it cannot control a terminal or a spreadsheet that opens a CSV file.

Control characters and marks of writing direction are replaced by a visible character. A text that a spreadsheet would
read as a formula gets an apostrophe before it. Numbers stay as they are, also numbers as text.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
# C1 controls; Arabic letter mark; left-to-right and other marks, embeddings, overrides, isolates and what Unicode had
# before them; line separators; characters without width that join nothing, the byte order mark among them; tags.
_MARKS = (
    *(*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x2070), 0x2028, 0x2029),
    *(0x00AD, 0x200B, *range(0x2060, 0x2065), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xE0000, 0xE0080)),
)
_NEUTRAL = {**_PICTURES, **dict.fromkeys(_MARKS, 0xFFFD), 0x0A: 0x23CE}
_NEUTRAL_LINES = {code: sign for code, sign in _NEUTRAL.items() if code not in (0x09, 0x0A)}
_ODD = "".join(map(chr, _MARKS))
_ODD_JSON = re.compile(f"[{re.escape(_ODD)}\x7f]")
_ODD_FIELD = f"[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f{_ODD}]"
_FORMULA = r"^\s*[=+\-@\t\r\n＝＋－＠﹦﹢﹣﹫]"  # as they are, in full width, and as small forms
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def neutral(text: str) -> str:
    """Return a text on one line, with a visible character for each control character and direction mark.

    The length stays the same.

    >>> neutral("a\\x1b[2Jb\\u202ec\\n")
    'a␛[2Jb�c⏎'
    """
    return text.translate(_NEUTRAL)


def neutral_lines(text: str) -> str:
    """Neutralise a text of several lines, which keeps its line ends and tabs."""
    return text.translate(_NEUTRAL_LINES)


def escaped_json(line: str) -> str:
    r"""Escape characters of a JSON line that a terminal would interpret. The values stay the same.

    >>> escaped_json('"\u202e"')
    '"\\u202e"'
    """
    return _ODD_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def guarded(value: str) -> str:
    """Return a CSV field that a spreadsheet does not read as a formula, nor a terminal as a command.

    >>> guarded("=1+1"), guarded("-12.5"), guarded("-x"), guarded("plain")
    ("'=1+1", '-12.5', "'-x", 'plain')
    """
    value = re.sub(_ODD_FIELD, "\ufffd", value)
    return f"'{value}" if re.match(_FORMULA, value) and not re.match(_NUMBER, value) else value


def guarded_table(table: pa.Table) -> pa.Table:
    """Guard all texts of a table, and the names of its columns. Cost: three passes over the texts."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = table.column(number)
            if pc.any(pc.match_substring_regex(column, _ODD_FIELD)).as_py():
                column = pc.replace_substring_regex(column, _ODD_FIELD, "\ufffd")
            is_formula = pc.and_not(
                pc.match_substring_regex(column, _FORMULA), pc.match_substring_regex(column, _NUMBER)
            )
            if pc.any(is_formula).as_py():
                prefixed = pc.binary_join_element_wise(pa.scalar("'", field.type), column, pa.scalar("", field.type))
                column = pc.if_else(is_formula, prefixed, column)
            table = table.set_column(number, field, column)
    return table.rename_columns([guarded(name) for name in table.column_names])
