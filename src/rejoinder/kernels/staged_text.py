"""Deep expressions in stages: DuckDB's cost grows with the cube of the depth, so a deep text is cut into shallow ones.

    ((((a + b) + c) + d) + e)   →   stage_0: ((a + b) + c)   then   ((stage_0 + d) + e)

Only what is evaluated whenever the whole is may be cut out: nothing below CASE, AND, OR or a lambda, which would fail
on rows for which it is not asked. Such a text stays as it is, up to DuckDB's own limit of depth.
"""

from __future__ import annotations

import re

DEEP = 60  # brackets in brackets
_TOKENS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<open>\w*[(\[])|(?P<close>[)\]])")
_CONDITIONAL = re.compile(r"\b(?:CASE|COALESCE|IFNULL|NULLIF|IF|AND|OR|TRY|TRY_CAST)\b|->|\bonce_", re.IGNORECASE)
_TEXTS = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")


def stage_name(number: int) -> str:
    """The column of a stage."""
    return f"__stage_{number}"


def staged(sql: str) -> list[str]:
    """The texts to evaluate one after the other, each as column `stage_name(at)`; the last is the whole.

    >>> deep = "(" * 70 + "a" + " + a)" * 70
    >>> [text.count("(") for text in staged(deep)], staged("a + 1")
    ([60, 10], ['a + 1'])
    """
    if len(sql) < 2 * DEEP or sql.count("(") < DEEP:
        return [sql]
    stages: list[str] = []
    levels: list[tuple[list[str], int]] = [([], 0)]  # pieces of each open bracket, and how deep what they hold is
    last = 0
    for token in _TOKENS.finditer(sql):
        levels[-1][0].append(sql[last : token.start()])
        last = token.end()
        if token.lastgroup == "open":
            levels.append(([token[0]], 0))
        elif token.lastgroup == "close" and len(levels) > 1:
            pieces, height = levels.pop()
            text, height = "".join([*pieces, token[0]]), height + 1
            if height >= DEEP and token[0] == ")":
                stages.append(text)
                text, height = f'"{stage_name(len(stages) - 1)}"', 0
            above, tallest = levels[-1]
            above.append(text)
            levels[-1] = (above, max(tallest, height))
        else:
            levels[-1][0].append(token[0])
    stages.append("".join([*levels[0][0], sql[last:]]))
    is_safe = len(levels) == 1 and not any(
        _CONDITIONAL.search(_TEXTS.sub("", text)) for text in stages[1:] if '"__stage_' in text
    )
    return stages if is_safe else [sql]
