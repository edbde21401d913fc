"""Expressions as DuckDB text, written when an expression is evaluated. `functions` has the templates of functions.

Three properties of Spark's evaluation are properties of this text:

- a part that may fail is evaluated only where Spark evaluates it: NULL stops the arguments of a call, and AND, OR and
  CASE decide in turn (`_called`, `short_circuit`);
- a long part that is used more than once is evaluated once (`_called`, `Let`);
- a deep tree is cut into stages: DuckDB's cost grows with the cube of the depth (`render`).

    ((((a + b) + c) + d) + e)   →   __stage_0: ((a + b) + c)   then   ((__stage_0 + d) + e)

Cost: linear in the number of different nodes, without recursion, and cached by tree.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache

from rejoinder.ir.expressions.nodes import (
    And,
    Attempt,
    Call,
    Case,
    Cast,
    Column,
    Lambda,
    Let,
    Literal,
    Node,
    Or,
    Variable,
    walk,
)
from rejoinder.kernels.duckdb.duckdb_words import FAILURE, literal_text, once, quoted, text_literal
from rejoinder.kernels.duckdb.functions.function_templates import template_of

DEEP = 60  # levels of brackets
SHORT = 150
_PLACE = re.compile(r"(?<!\\x)\{([0-9]+)\}|\{!([^{}]*)\}")  # \x{85} is a character of a regular expression
_BINDER = "lambda once_"


@lru_cache(maxsize=4096)
def render(root: Node, *, under_try: bool = False) -> tuple[str, ...]:
    """The texts to evaluate one after the other, each as column `stage_name(number)`; the last is the whole.

    Only what is evaluated whenever the whole is, or cannot fail, is cut out as a stage. `under_try`: failures of ours
    are written so that TRY takes them.
    """
    return _Renderer(root, under_try=under_try).stages


def duckdb_text(root: Node) -> str:
    """An expression in one text, however deep it is, for people."""
    return _Renderer(root, under_try=False, deep=len(walk(root)) * DEEP).stages[-1]


def stage_name(number: int) -> str:
    """The column of a stage."""
    return f"__stage_{number}"


def messages(root: Node) -> set[str]:
    """The messages with which an expression itself fails rows. DuckDB has others."""
    templates = (template_of(node) for node in walk(root) if isinstance(node, Call | Cast))
    return {place[2] for template in templates for place in _PLACE.finditer(template) if place[2]}


class _Renderer:
    def __init__(self, root: Node, *, under_try: bool, deep: int = DEEP) -> None:
        self.under_try = under_try
        self.texts: dict[bytes, str] = {}
        self.depths: dict[bytes, int] = {}
        self.open: set[bytes] = set()
        """Nodes with a variable in them that DuckDB binds: they cannot be evaluated elsewhere."""
        order = walk(root)
        always = _always_evaluated(order)
        self.values = {node.variable: node.parts[0].digest for node in order if isinstance(node, Let)}
        stages: list[str] = []
        for node in order:
            template = template_of(node) if isinstance(node, Call | Cast) else ""
            text, depth = self._text(node, template), self._depth(node, template)
            is_open = any(part.digest in self.open for part in node.parts)
            if is_open or (isinstance(node, Variable) and text == node.name):
                self.open.add(node.digest)
            elif depth >= deep and node is not root and (node.digest in always or not node.can_fail):
                stages.append(text)
                text, depth = quoted(stage_name(len(stages) - 1)), 0
            self.texts[node.digest], self.depths[node.digest] = text, depth
        self.stages = (*stages, self.texts[root.digest])

    def _depth(self, node: Node, template: str) -> int:
        below = max((self.depths[part.digest] for part in node.parts), default=0)
        return below + (_levels(template) if template else 1 if node.parts else 0)

    def _text(self, node: Node, template: str) -> str:
        parts = [self.texts[part.digest] for part in node.parts]
        match node:
            case Column():
                return quoted(node.name)
            case Literal():
                return literal_text(node.value, node.type)
            case Variable():
                return self._variable(node)
            case Call() | Cast():
                return _called(node, template, parts, under_try=self.under_try)
            case Case():
                whens = " ".join(f"WHEN {a} THEN {b}" for a, b in zip(parts[::2], parts[1::2], strict=False))
                return f"CASE {whens}{f' ELSE {parts[-1]}' if len(parts) % 2 else ''} END"
            case And() | Or():
                conditions = [(f"({text})", part.can_fail) for text, part in zip(parts, node.parts, strict=True)]
                return short_circuit(conditions, "AND" if isinstance(node, And) else "OR")
            case Let():
                return parts[1] if len(parts[0]) <= SHORT else once(node.variable, parts[0], parts[1])
            case Lambda():
                return f"lambda {', '.join(variable.name for variable in node.variables)}: {parts[0]}"
        raise AssertionError(f"{type(node).__name__} has no text")

    def _variable(self, node: Variable) -> str:
        """A short value in its place; otherwise the name that `once` or a lambda binds."""
        value = self.texts[self.values[node.name]] if node.name in self.values else None
        return node.name if value is None or len(value) > SHORT else value


def _always_evaluated(order: Sequence[Node]) -> set[bytes]:
    """The nodes that are evaluated for every row for which the whole is."""
    always = {order[-1].digest}
    for node in reversed(order):
        if node.digest in always:
            parts = node.parts
            if isinstance(node, Call):
                evaluation = node.operation.evaluation
                first = parts[-1:] if evaluation == "from the right" else parts[:1]
                parts = parts if evaluation == "all" else first
            elif isinstance(node, Case | And | Or):
                parts = parts[:1]
            elif isinstance(node, Lambda):
                parts = ()
            always.update(part.digest for part in parts)
    return always


@lru_cache(maxsize=1024)
def _levels(template: str) -> int:
    """How many brackets in brackets a template has, at least one."""
    depth = deepest = 0
    for sign in template:
        depth += (sign in "([") - (sign in ")]")
        deepest = max(deepest, depth)
    return max(deepest, 1)


def _called(call: Call | Cast, template: str, texts: Sequence[str], *, under_try: bool) -> str:
    """Fill a template in. A part that is used more than once is evaluated once; a guarded one before those after it.

    The smaller of two long parts is written twice instead: DuckDB's cost doubles with each text that is evaluated once
    inside of another, and the larger one must not be inside.
    """
    evaluation = call.operation.evaluation if isinstance(call, Call) else "all"
    turns = range(len(texts))[::-1] if evaluation == "from the right" else range(len(texts))
    guarded = set() if evaluation in ("all", "lazy") else _guarded(call, turns)
    counts = Counter([int(place[1]) for place in _PLACE.finditer(template) if place[1]])
    counts.update(guarded)
    names = list(texts)
    bound: set[int] = set()
    for place, text in enumerate(texts):
        if len(text) > SHORT and counts[place] > 1:
            inside = max(
                (len(other) for other_place, other in enumerate(texts) if other_place != place and _BINDER in other),
                default=0,
            )
            if counts[place] > 2 or len(text) > inside:
                names[place] = f"once_{call.parts[place].digest.hex()[:12]}"
                bound.add(place)
    result = _PLACE.sub(_filling(names, under_try=under_try), template)
    for place in reversed(turns):
        if place in guarded:
            result = f"CASE WHEN {names[place]} IS NOT NULL THEN {result} END"
        if place in bound:
            result = once(names[place], texts[place], result)
    return result


def _guarded(call: Node, turns: Sequence[int]) -> Collection[int]:
    """The arguments that must not be NULL for a later one, which may fail, to be evaluated."""
    failing = [turn for turn, place in enumerate(turns) if call.parts[place].can_fail]
    return {place for place in turns[: max(failing, default=0)] if call.parts[place].nullable}


def _filling(names: Sequence[str], *, under_try: bool) -> Callable[[re.Match[str]], str]:
    def fill(place: re.Match[str]) -> str:
        if place[1] is not None:
            return names[int(place[1])]
        if under_try:
            return FAILURE
        is_text = place[2].startswith("=")
        return f"error({place[2][1:] if is_text else text_literal(place[2])})"

    return fill


def short_circuit(conditions: Sequence[tuple[str, bool]], word: str) -> str:
    """Connect conditions, each with whether it may fail, by AND or OR, so that a row stops where Spark would stop.

    DuckDB evaluates all of them for all rows; CASE narrows the rows down from condition to condition. Where none has
    decided, none has failed, and all of them are connected:

        CASE WHEN a THEN TRUE WHEN b THEN TRUE ELSE (a OR b OR c) END

    Where texts are long, each half of the conditions is evaluated once, the second one inside (`once`): DuckDB's cost
    doubles with each level of that, and halves make few levels.
    """
    if not any(can_fail for _, can_fail in conditions[1:]):
        return "(" + f" {word} ".join(text for text, _ in conditions) + ")"
    *before, last = [text for text, _ in conditions]
    if all(len(text) <= SHORT for text in before):
        return _decided(before, last, word)
    half = len(conditions) // 2
    first = short_circuit(conditions[:half], word)
    if len(first) <= SHORT:
        return _decided([first], short_circuit(conditions[half:], word), word)
    name = f"once_half_{len(conditions)}"
    return once(name, first, _decided([name], short_circuit(conditions[half:], word), word))


def _decided(tested: Sequence[str], rest: str, word: str) -> str:
    """Test conditions in turn before the rest is evaluated."""
    test, result = ("(NOT {})", "FALSE") if word == "AND" else ("{}", "TRUE")
    whens = " ".join(f"WHEN {test.replace('{}', condition)} THEN {result}" for condition in tested)
    return f"CASE {whens} ELSE ({f' {word} '.join([*tested, rest])}) END"


def attempt_text(attempt: Attempt) -> str | None:
    """An attempt as one text; None if it is too deep for one."""
    stages = render(attempt.parts[0], under_try=True)
    if len(stages) > 1:
        return None
    return f"{tried(stages[0])} IS NULL" if attempt.is_test else f"TRY({stages[0]})"


def tried(text: str) -> str:
    """The value of a text in a struct, NULL if it fails: so a failure is not taken for a value that is NULL."""
    return f"TRY(struct_pack(v := {text}))"
