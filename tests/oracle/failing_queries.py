"""Random queries whose expressions fail on some rows, with what DuckDB is asked to know what should happen.

Every expression that can fail comes with a condition that tells when it does. So the model never fails itself, and does
not depend on the order in which DuckDB evaluates anything. A query fails if one of its *failing tuples* exists: rows
that meet by the equalities, on which no condition is false, and on which something fails.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

ALIASES = {"x": "x", "y": "y", "z": "z"}


@dataclass(frozen=True)
class Term:
    """An integer: in our SQL, as DuckDB computes it without failing, and when it fails."""

    text: str
    value: str
    fails: str

    @property
    def is_failing(self) -> str:
        """The condition that it fails, never NULL."""
        return f"coalesce({self.fails}, FALSE)"


@dataclass(frozen=True)
class Test:
    """A condition: in our SQL, as DuckDB computes it without failing, and when it fails."""

    text: str
    value: str
    fails: str = "FALSE"

    @property
    def passes(self) -> str:
        """TRUE, or fails."""
        return f"(coalesce({self.value}, FALSE) OR {self.fails})"


def terms(alias: str, other: str | None = None) -> list[Term]:
    """What can fail on a row of a relation, or on a pair."""
    a, found = alias, []
    found.append(Term(f"100 DIV {a}.b", f"CASE WHEN {a}.b <> 0 THEN 100 // {a}.b END", f"{a}.b = 0"))
    number = f"TRY_CAST({a}.s AS INTEGER)"
    found.append(Term(f"CAST({a}.s AS INT)", number, f"{a}.s IS NOT NULL AND {number} IS NULL"))
    element = f"CASE WHEN {a}.b BETWEEN 0 AND 2 THEN [7, 8, 9][{a}.b + 1] END"
    found.append(Term(f"array(7, 8, 9)[{a}.b]", element, f"{a}.b > 2"))
    large = f"CASE WHEN {a}.b * 30 < 128 THEN {a}.b * 30 END"
    found.append(Term(f"CAST({a}.b * 30 AS TINYINT) + 0", large, f"{a}.b * 30 > 127"))
    most = f"CASE WHEN {a}.b * 30 < 100 THEN {a}.b * 30 END"
    found.append(Term(f"CAST(CAST({a}.b * 30 AS DECIMAL(2, 0)) AS INT)", most, f"{a}.b * 30 > 99"))
    if other is not None:
        apart = f"({a}.b - {other}.b)"
        quotient = f"CASE WHEN {apart} <> 0 THEN CAST(trunc(12.0 / {apart}) AS BIGINT) END"
        found.append(Term(f"12 DIV {apart}", quotient, f"{apart} = 0"))
    return found


@dataclass
class Query:
    """A query in our SQL, the same for DuckDB, and DuckDB's question whether it fails."""

    text: str
    batch: str
    failing: list[str] = field(default_factory=list)


class Writer:
    """Writes random queries over x, y and z, which have the columns id, k, b and s."""

    def __init__(self, numbers: random.Random) -> None:
        self.numbers = numbers

    def write(self) -> Query:
        """One query."""
        kinds = [self.inner, self.inner, self.inner, self.one_sided, self.one_sided, self.full, self.group, self.nested]
        return self.numbers.choice(kinds)()

    def term(self, *aliases: str) -> Term:
        """What can fail, on one of the relations or on a pair of them."""
        alias = self.numbers.choice(aliases)
        others = [each for each in aliases if each != alias]
        return self.numbers.choice(terms(alias, self.numbers.choice(others) if others else None))

    def test(self, *aliases: str) -> Test:
        """A condition, that can fail or not."""
        if self.numbers.random() < 0.4:
            text = f"{self.numbers.choice(aliases)}.b <> {self.numbers.randrange(3)}"
            return Test(text, text)
        term, least = self.term(*aliases), self.numbers.randrange(-1, 9)
        return Test(f"{term.text} > {least}", f"{term.value} > {least}", term.is_failing)

    def tests(self, *aliases: str, most: int = 2) -> list[Test]:
        """Some conditions."""
        return [self.test(*aliases) for _ in range(self.numbers.randrange(most + 1))]

    def inner(self) -> Query:
        """An inner join of one to three relations, or a product."""
        count = self.numbers.choice([1, 2, 2, 3])
        aliases = list(ALIASES)[:count]
        keys = {"y": "x.k = y.k", "z": self.numbers.choice(["y.k = z.k", "x.b = z.k"])}
        if count == 2 and self.numbers.random() < 0.15:
            keys["y"] = "TRUE"
        tests = self.tests(*aliases, most=3)
        outputs = [self.term(*aliases) for _ in range(self.numbers.randrange(1, 3))]
        if self.numbers.random() < 0.2:
            outputs = [Term("x.b", "x.b", "FALSE")]
        distinct = "DISTINCT " * (self.numbers.random() < 0.2)
        joins = "x" + "".join(f" JOIN {each} ON {keys[each]}" for each in aliases[1:])
        shown = ", ".join(f"{output.text} AS q{at}" for at, output in enumerate(outputs))
        asked = ", ".join(f"{output.value} AS q{at}" for at, output in enumerate(outputs))
        return Query(
            f"SELECT {distinct}x.id, {shown} FROM {joins}{_where(test.text for test in tests)}",
            f"SELECT {distinct}x.id, {asked} FROM {joins}{_where(test.value for test in tests)}",
            [_failing(joins, tests, outputs)],
        )

    def one_sided(self) -> Query:
        """A LEFT, SEMI or ANTI join, perhaps of what an inner join follows."""
        kind = self.numbers.choice(["LEFT", "LEFT", "LEFT SEMI", "LEFT ANTI"])
        on, where = self.tests("x", "y"), self.tests("x", most=1)
        further = "JOIN z ON z.k = x.k" if self.numbers.random() < 0.3 else ""
        aliases = ["x", "y"] if kind == "LEFT" else ["x"]
        output = self.term(*aliases)
        keyed = "x.k = y.k"
        sound = " AND ".join([keyed, *(f"coalesce({test.value}, FALSE)" for test in on)])
        text = (
            f"SELECT x.id, {output.text} AS q FROM x {kind} JOIN y ON "
            + " AND ".join([keyed, *(test.text for test in on)])
            + f" {further}{_where(test.text for test in where)}"
        )
        joined = f"x {'LEFT JOIN' if kind == 'LEFT' else kind.removeprefix('LEFT ') + ' JOIN'} y ON {sound} {further}"
        pairs = _failing(f"x JOIN y ON {keyed} {further}", [*on, *where], [], only=on)
        return Query(
            text,
            f"SELECT x.id, {output.value} AS q FROM {joined}{_where(test.value for test in where)}",
            [pairs, _failing(joined, where, [output])],
        )

    def full(self) -> Query:
        """A FULL join."""
        on, output = self.tests("x", "y"), self.term("x", "y")
        sound = " AND ".join(["x.k = y.k", *(f"coalesce({test.value}, FALSE)" for test in on)])
        return Query(
            f"SELECT x.id, y.id AS other, {output.text} AS q FROM x FULL JOIN y ON "
            + " AND ".join(["x.k = y.k", *(test.text for test in on)]),
            f"SELECT x.id, y.id AS other, {output.value} AS q FROM x FULL JOIN y ON {sound}",
            [_failing("x JOIN y ON x.k = y.k", on, []), _failing(f"x FULL JOIN y ON {sound}", [], [output])],
        )

    def group(self) -> Query:
        """Groups over a join, perhaps with a HAVING that fails."""
        tests, argument = self.tests("x", "y"), self.term("x", "y")
        function = self.numbers.choice(["SUM", "MIN", "MAX", "COUNT"])
        joins, where = "x JOIN y ON x.k = y.k", _where(test.value for test in tests)
        failing = [_failing(joins, tests, [argument])]
        text = f"SELECT x.k, {function}({argument.text}) AS q FROM {joins}{_where(test.text for test in tests)}"
        batch = f"SELECT x.k, {function}({argument.value}) AS q FROM {joins}{where} GROUP BY x.k"
        if self.numbers.random() < 0.5:
            return Query(f"{text} GROUP BY x.k", batch, failing)
        failing.append(f"SELECT x.k FROM {joins}{where} GROUP BY x.k HAVING SUM(y.b) = 0")
        having = "HAVING CASE WHEN SUM(y.b) <> 0 THEN 100 // SUM(y.b) END > 1"
        return Query(f"{text} GROUP BY x.k HAVING 100 DIV SUM(y.b) > 1", f"{batch} {having}", failing)

    def nested(self) -> Query:
        """A join with groups, or a union with what is below a DISTINCT."""
        if self.numbers.random() < 0.5:
            groups = "(SELECT k, SUM(b) AS b FROM y GROUP BY k) g"
            joins = f"x JOIN {groups} ON x.k = g.k"
            return Query(
                f"SELECT x.id, 100 DIV g.b AS q FROM {joins}",
                f"SELECT x.id, CASE WHEN g.b <> 0 THEN 100 // g.b END AS q FROM {joins}",
                [f"SELECT 1 FROM {joins} WHERE g.b = 0"],
            )
        first, second = self.term("x"), self.term("y")
        tests = self.tests("y")
        return Query(
            f"SELECT k, q FROM (SELECT x.k, {first.text} AS q FROM x UNION ALL "
            f"SELECT DISTINCT y.k, {second.text} AS q FROM y{_where(test.text for test in tests)}) u",
            f"SELECT k, q FROM (SELECT x.k, {first.value} AS q FROM x UNION ALL "
            f"SELECT DISTINCT y.k, {second.value} AS q FROM y{_where(test.value for test in tests)}) u",
            [_failing("x", [], [first]), _failing("y", tests, [second])],
        )


def _where(tests: Iterable[str]) -> str:
    listed = " AND ".join(f"({test})" for test in tests)
    return f" WHERE {listed}" if listed else ""


def _failing(joins: str, tests: list[Test], outputs: list[Term], only: list[Test] | None = None) -> str:
    """The tuples on which something fails: of `only` these conditions, if they are given."""
    some = [test.fails for test in (tests if only is None else only)] + [output.is_failing for output in outputs]
    return f"SELECT 1 FROM {joins}{_where([*(test.passes for test in tests), ' OR '.join(some) or 'FALSE'])}"
