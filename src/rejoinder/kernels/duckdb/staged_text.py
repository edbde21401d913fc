"""Deep expressions in stages: DuckDB's cost grows with the cube of the depth, so a deep text is cut into shallow ones.

    ((((a + b) + c) + d) + e)   →   stage_0: ((a + b) + c)   then   ((stage_0 + d) + e)

Only what is evaluated whenever the whole is may be cut out: nothing behind CASE, AND or OR in its brackets, nothing
inside of COALESCE, TRY or a lambda, which would fail on rows for which it is not asked. Such parts stay as they are, up
to DuckDB's own limit of depth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

DEEP = 60  # brackets in brackets
_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<open>\w*[(\[])|(?P<close>[)\]])")
_CONDITIONAL = re.compile(r"\b(?:CASE|AND|OR|lambda)\b|->", re.IGNORECASE)
_CONDITIONAL_CALLS = re.compile(r"(?:COALESCE|IFNULL|NULLIF|IF|TRY|TRY_CAST)\(", re.IGNORECASE)


@dataclass
class _Level:
    """An open bracket: its text so far, how deep that is, and whether what comes next is for some rows only."""

    pieces: list[str] = field(default_factory=list)
    height: int = 0
    is_conditional: bool = False

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self.is_conditional = self.is_conditional or _CONDITIONAL.search(text) is not None


def stage_name(number: int) -> str:
    """The column of a stage."""
    return f"__stage_{number}"


def is_deep(sql: str) -> bool:
    """Whether a text may be deep enough for stages; a quick look."""
    return len(sql) >= 2 * DEEP and sql.count("(") >= DEEP


def staged(sql: str) -> list[str]:
    """The texts to evaluate one after the other, each as column `stage_name(at)`; the last is the whole.

    >>> deep = "(" * 70 + "a" + " + a)" * 70
    >>> [text.count("(") for text in staged(deep)], staged("a + 1")
    ([60, 10], ['a + 1'])
    >>> len(staged(f"CASE WHEN a > 0 THEN {deep} END"))
    1
    """
    if not is_deep(sql):
        return [sql]
    stages: list[str] = []
    levels = [_Level()]
    last = 0
    for token in _TOKENS.finditer(sql):
        levels[-1].add(sql[last : token.start()])
        last = token.end()
        if token.lastgroup == "open":
            is_conditional = levels[-1].is_conditional or _CONDITIONAL_CALLS.fullmatch(token[0]) is not None
            levels.append(_Level([token[0]], is_conditional=is_conditional))
        elif token.lastgroup == "close" and len(levels) > 1:
            level, above = levels.pop(), levels[-1]
            text, height = "".join([*level.pieces, token[0]]), level.height + 1
            if height >= DEEP and token[0] == ")" and not above.is_conditional:
                stages.append(text)
                text, height = f'"{stage_name(len(stages) - 1)}"', 0
            above.pieces.append(text)
            above.height = max(above.height, height)
        else:
            levels[-1].pieces.append(token[0])
    stages.append("".join([*levels[0].pieces, sql[last:]]))
    return stages if len(levels) == 1 else [sql]
