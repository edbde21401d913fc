"""Split a condition into conjuncts, also where they are hidden in an OR.

A condition that is in every arm of an OR holds on its own, so an equality among them can be the key of a join:

    WHERE (p.k = l.k AND p.brand = 'A' AND l.n < 5) OR (l.k = p.k AND p.brand = 'B' AND l.n < 9)
    WHERE p.k = l.k AND ((p.brand = 'A' AND l.n < 5) OR (p.brand = 'B' AND l.n < 9))

What the arms say about one relation alone holds on its own, too, and can be tested before the join:

    … AND (p.brand = 'A' OR p.brand = 'B') AND (l.n < 5 OR l.n < 9)

Both are valid in three-valued logic.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from rejoinder.ir.identities import column_id
from rejoinder.sql.functions.expression_compiler import Scope, compile_expression


def conjuncts(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the operands of the outermost ANDs of a condition, and what all arms of an OR have in common."""
    bare = node.unnest() if isinstance(node, exp.Paren) else node
    if isinstance(bare, exp.And):
        for part in bare.flatten():
            yield from conjuncts(part)
    elif isinstance(bare, exp.Or):
        yield from _factored(bare)
    else:
        yield bare


def implied(node: exp.Or, scope: Scope) -> list[exp.Expr]:
    """Return the conditions on one input each that follow from an OR, as far as they cannot fail."""
    arms = [[(part, _input_of(part, scope)) for part in conjuncts(arm)] for arm in _arms(node)]
    first = dict.fromkeys(number for _, number in arms[0] if number is not None)
    shared = [number for number in first if all(any(own == number for _, own in arm) for arm in arms)]
    if len({number for arm in arms for _, number in arm}) < 2:
        return []  # the OR is about one input itself
    return [_joined([[part for part, own in arm if own == number] for arm in arms]) for number in shared]


def _factored(node: exp.Or) -> Iterator[exp.Expr]:
    arms = [{_key(part): part for part in conjuncts(arm)} for arm in _arms(node)]
    common = [key for key in arms[0] if all(key in arm for arm in arms)]
    if not common:
        yield node
        return
    yield from (arms[0][key] for key in common)
    rest = [[part for key, part in arm.items() if key not in common] for arm in arms]
    if all(rest):
        yield _joined(rest)


def _arms(node: exp.Or) -> list[exp.Expr]:
    """The operands of an OR, and of ORs among them."""
    parts = [part.unnest() for part in node.flatten()]
    return [arm for part in parts for arm in (_arms(part) if isinstance(part, exp.Or) else [part])]


def _joined(arms: list[list[exp.Expr]]) -> exp.Expr:
    ands = [exp.and_(*(_enclosed(part.copy(), exp.Or) for part in arm), wrap=False) for arm in arms]
    return exp.or_(*(_enclosed(arm, exp.And) for arm in ands), wrap=False)


def _enclosed(node: exp.Expr, kind: type[exp.Expr]) -> exp.Expr:
    return exp.paren(node, copy=False) if isinstance(node, kind) else node


def _key(part: exp.Expr) -> str:
    """The text of a condition; the sides of an equality are in order, since it does not matter which is first."""
    if isinstance(part, exp.EQ):
        return " = ".join(sorted(side.sql(dialect="spark") for side in (part.this, part.expression)))
    return part.sql(dialect="spark")


def _input_of(part: exp.Expr, scope: Scope) -> int | None:
    """The number of the only input that a condition reads; None if it reads several or none, or can fail."""
    compiled = compile_expression(part, scope)
    numbers = {column_id(i).input for i in compiled.columns}
    return numbers.pop() if len(numbers) == 1 and not compiled.can_fail else None
