"""GROUPING SETS, ROLLUP and CUBE: several groupings of the same rows, as one aggregate over repeated rows.

    SELECT a, b, GROUPING_ID() AS g, sum(x) FROM t GROUP BY ROLLUP(a, b)

    SELECT k0, k1, set AS g, sum(x)
    FROM (SELECT *, IF(set & 2 = 0, a, NULL) AS k0, IF(set & 1 = 0, b, NULL) AS k1
          FROM (SELECT *, explode(array(0, 1, 3)) AS set FROM t))
    GROUP BY k0, k1, set

The inputs are read once. The number of a set has a bit for each grouping expression, the first one highest, which is 1
where the set lacks it: Spark's GROUPING_ID. A set that is listed again differs in higher bits. An expression that every
set has stays as it is, so that frontiers pass through a window that is grouped by in all sets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.host.caps import cap_reached, caps
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.operators import when
from rejoinder.ir.logical import Expand, Node
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, call

MOST_EXPRESSIONS = 32
_SUFFIXES = ("rollup", "cube", "grouping_sets")
"""The clauses behind a list of expressions: GROUP BY a, b WITH ROLLUP, GROUP BY a, b GROUPING SETS (…)."""

Set = tuple[exp.Expr, ...]


def has_sets(group: exp.Expr | None) -> bool:
    """Whether a GROUP BY has several grouping sets."""
    return group is not None and bool(
        any(group.args.get(name) for name in _SUFFIXES)
        or any(isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets) for item in group.expressions)
    )


def grouped_expressions(group: exp.Expr) -> list[exp.Expr]:
    """The expressions of all grouping sets, in the order in which GROUPING_ID numbers them."""
    if group.args.get("grouping_sets") and group.expressions:
        return list(group.expressions)
    return [node for item in (*group.expressions, *_suffixes(group)) for node in _leaves(item)]


def read_sets(group: exp.Expr) -> list[Set]:
    """The grouping sets: every combination of those of the items. Raises `LimitReached` if there are too many."""
    suffixes = _suffixes(group)
    if suffixes and not group.args.get("grouping_sets"):  # GROUP BY a, b WITH ROLLUP
        suffixes[0].set("expressions", [item.copy() for item in group.expressions])
        items: Sequence[exp.Expr] = suffixes
    else:
        items = suffixes or group.expressions
    choices = [_sets(item, group) for item in items]
    count = 1
    for choice in choices:
        count *= len(choice)
        _check_count(count, group)
    return [tuple(node for part in chosen for node in part) for chosen in product(*choices)]


def _suffixes(group: exp.Expr) -> list[exp.Expr]:
    return [item.copy() for name in _SUFFIXES for item in group.args.get(name) or []]


def _sets(item: exp.Expr, group: exp.Expr) -> list[Set]:
    """The sets that one item of GROUP BY stands for."""
    if isinstance(item, exp.GroupingSets):
        return [inner for part in item.expressions for inner in _sets(part, group)]
    parts = [_listed(part) for part in item.expressions] if isinstance(item, exp.Rollup | exp.Cube) else []
    if isinstance(item, exp.Rollup):
        return [_joined(parts[:length]) for length in range(len(parts), -1, -1)]
    if isinstance(item, exp.Cube):
        _check_count(1 << len(parts), group)
        lengths = range(len(parts), -1, -1)
        return [_joined(chosen) for length in lengths for chosen in combinations(parts, length)]
    return [_listed(item)]


def _check_count(count: int, group: exp.Expr) -> None:
    if count > caps().max_grouping_sets:
        fact, detail = "GROUP BY has too many grouping sets", f"{count:,} in `{text_of(group)}`"
        raise cap_reached(fact, "max_grouping_sets", detail, remedy="list the sets that you need: GROUPING SETS (…)")


def _joined(parts: Sequence[Set]) -> Set:
    return tuple(node for part in parts for node in part)


def _listed(item: exp.Expr) -> Set:
    """The expressions of `(a, b)`, or of a single one."""
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def _leaves(item: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        for part in item.expressions:
            yield from _leaves(part)
    else:
        yield item.this if isinstance(item, exp.Paren) else item


@dataclass(frozen=True)
class GroupingSets:
    """The grouping sets of a query over its keys, which are numbered from 0; `id` is the column with the set of a row.

    `text` is the clause.
    """

    id: str
    keys: int
    sets: tuple[frozenset[int], ...]
    text: str

    @property
    def column(self) -> Expression:
        """The number of the set, with higher bits for a set that is listed again."""
        return column(self.id, spark_types.BIGINT)

    def expanded(self, root: Node) -> Node:
        """The rows, each once for every set."""
        copies: Counter[int] = Counter()
        elements = []
        for members in self.sets:
            number = sum(1 << self._bit(key) for key in range(self.keys) if key not in members)
            elements.append(number | copies[number] << self.keys)
            copies[number] += 1
        kind = spark_types.array_of(spark_types.BIGINT)
        listed = call("grouping_sets", kind, options=tuple(elements), nulls="never")
        return Expand(root, self.id, Expression(listed.node, f"grouping set of {self.text}"))

    def has_all(self, key: int) -> bool:
        """Whether every set has a key."""
        return all(key in members for members in self.sets)

    def part(self, key: int, expression: Expression) -> Expression:
        """A key, or a part of it: NULL in rows of sets that lack it."""
        if self.has_all(key):
            return expression
        present = call("is_in_set", spark_types.BOOLEAN, self._number, options=(self._bit(key),), nulls="propagated")
        return Expression(when(present.node, expression.node), expression.text)

    def grouping(self, key: int) -> Expression:
        """GROUPING of a key: 1 where the set lacks it."""
        return Expression(call("grouping", spark_types.TINYINT, self._number, options=(self._bit(key),)).node)

    def grouping_id(self) -> Expression:
        """GROUPING_ID of all keys."""
        mask = (1 << self.keys) - 1
        return Expression(call("grouping_id", spark_types.BIGINT, self._number, options=(mask,)).node)

    @property
    def _number(self) -> Term:
        return Term(nodes.Column(self.id, spark_types.BIGINT))

    def _bit(self, key: int) -> int:
        return self.keys - 1 - key


def bind_sets(group: exp.Expr, identifier: str, bind_key: Callable[[exp.Expr], int]) -> GroupingSets:
    """The grouping sets of a GROUP BY. `bind_key` makes an expression a key, and returns the number of the key."""
    places = {text_of(given): bind_key(given) for given in grouped_expressions(group)}
    count = len(set(places.values()))
    if count > MOST_EXPRESSIONS:
        raise Unsupported(
            f"more than {MOST_EXPRESSIONS} expressions in grouping sets are not supported",
            detail=text_of(group),
            hint="group by fewer expressions, or compute some of the sets in a view of their own",
        )
    sets = []
    for members in read_sets(group):
        foreign = next((node for node in members if text_of(node) not in places), None)
        if foreign is not None:
            raise InvalidSql(
                f"`{text_of(foreign)}` in GROUPING SETS is not grouped by",
                detail=text_of(group),
                hint="add it to the expressions before GROUPING SETS",
            )
        sets.append(frozenset(places[text_of(node)] for node in members))
    return GroupingSets(identifier, count, tuple(sets), text_of(group))


def with_grouping_id(node: exp.Select, is_column: Callable[[exp.Column], bool]) -> exp.Select:
    """A SELECT in which GROUPING__ID, Hive's name of a column that its groups have, is written GROUPING_ID()."""

    def is_meant(part: exp.Expr) -> bool:
        named = isinstance(part, exp.Column) and not part.table and part.name.lower() == "grouping__id"
        return named and isinstance(part, exp.Column) and not is_column(part)

    if not has_sets(node.args.get("group")) or not any(is_meant(part) for part in node.find_all(exp.Column)):
        return node
    node = node.copy()
    for item in [item for item in node.expressions if is_meant(item)]:
        item.replace(exp.alias_(item.copy(), item.name))
    for part in [part for part in node.find_all(exp.Column) if is_meant(part)]:
        part.replace(exp.GroupingId())
    return node


def is_grouping(node: exp.Expr) -> bool:
    """Whether a node is a call of GROUPING or GROUPING_ID."""
    return isinstance(node, exp.Grouping | exp.GroupingId)


def bind_grouping(
    node: exp.Expr, sets: GroupingSets | None, keys: Sequence[exp.Expr], place: Callable[[exp.Expr], int | None]
) -> Expression:
    """The value of GROUPING or GROUPING_ID. `place` returns the number of the key that an expression is."""
    if sets is None:
        raise InvalidSql(
            f"`{text_of(node)}` without ROLLUP, CUBE or GROUPING SETS",
            detail="it tells which expressions a grouping set lacks, and there is one set only",
            hint="write GROUP BY ROLLUP(…), CUBE(…) or GROUPING SETS (…), or leave it out",
        )
    name, grouped = node.sql_name() if isinstance(node, exp.Func) else node.key, ", ".join(map(text_of, keys))
    places = []
    for argument in node.expressions:
        number = place(argument)
        if number is None:
            raise InvalidSql(
                f"`{text_of(argument)}` is not grouped by",
                detail=f"in `{text_of(node)}`",
                hint=f"{name} is about grouping expressions: {grouped}",
            )
        places.append(number)
    if isinstance(node, exp.Grouping):
        if len(places) != 1:
            raise InvalidSql(
                f"GROUPING takes one argument, not {len(places)}",
                detail=text_of(node),
                hint="GROUPING_ID() is the number of all of them",
            )
        return sets.grouping(places[0])
    if places and places != list(range(len(keys))):
        raise InvalidSql(
            f"the arguments of `{text_of(node)}` are not all grouping expressions in order",
            detail=f"grouped by {grouped}",
            hint=f"write GROUPING_ID(), or GROUPING_ID({grouped})",
        )
    return sets.grouping_id()
