"""Random queries whose expressions fail on some rows, with what DuckDB is asked to know what should happen.

Every expression that can fail has a condition that is true when it does. So the model never fails itself, and does
not depend on the order in which DuckDB evaluates anything. A query fails if one of its *failing tuples* exists: rows
that meet by the equalities, on which no condition is false, and on which something fails.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
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


def _where_sound(fails: str, value: str) -> str:
    return f"CASE WHEN NOT ({fails}) THEN {value} END"


def casts(a: str) -> list[Term]:
    """Casts of text to each type. Texts are 1, 2, 3, n/a and NULL."""
    fails, digit = f"{a}.s = 'n/a'", f"TRY_CAST({a}.s AS INTEGER)"
    flag = f"replace(replace({a}.s, '2', 'no'), '3', 'F')"
    texts = {
        f"CAST({a}.s AS BIGINT)": digit,
        f"CAST({a}.s AS SMALLINT)": digit,
        f"CAST({a}.s AS TINYINT)": digit,
        f"CAST(CAST({a}.s AS DOUBLE) AS INT)": digit,
        f"CAST(CAST({a}.s AS FLOAT) AS INT)": digit,
        f"CAST(CAST({a}.s AS DECIMAL(5, 2)) AS INT)": digit,
        f"DAY(CAST(concat('2026-01-0', {a}.s) AS DATE))": digit,
        f"HOUR(CAST(concat('2026-01-01 0', {a}.s, ':00:00') AS TIMESTAMP))": digit,
        f"CASE WHEN CAST({flag} AS BOOLEAN) THEN 7 END": f"CASE WHEN {a}.s = '1' THEN 7 END",
    }
    return [Term(text, value, fails) for text, value in texts.items()]


def arithmetic(a: str) -> list[Term]:
    """Divisions, overflows of each type, arrays and dates. Numbers are 0 to 5 and NULL."""
    b, most = f"{a}.b", "50000000000000000000000000000000000000"
    return [
        Term(f"100 % {b}", _where_sound(f"{b} = 0", f"100 % {b}"), f"{b} = 0"),
        Term(f"CAST(100 / {b} AS INT)", _where_sound(f"{b} = 0", f"100 // {b}"), f"{b} = 0"),
        Term(f"{b} * 1000000000", _where_sound(f"{b} > 2", f"{b} * 1000000000::BIGINT"), f"{b} > 2"),
        Term(f"2147483645 + {b}", _where_sound(f"{b} > 2", f"2147483645::BIGINT + {b}"), f"{b} > 2"),
        Term(f"-2147483646 - {b}", _where_sound(f"{b} > 2", f"-2147483646::BIGINT - {b}"), f"{b} > 2"),
        Term(
            f"CAST({b} AS BIGINT) * 4000000000000000000",
            _where_sound(f"{b} > 2", f"{b} * 4000000000000000000::BIGINT"),
            f"{b} > 2",
        ),
        Term(f"CAST({b} AS SMALLINT) * CAST(16000 AS SMALLINT)", _where_sound(f"{b} > 2", f"{b} * 16000"), f"{b} > 2"),
        Term(
            f"CAST(CAST({b} AS DECIMAL(38, 0)) * CAST('{most}' AS DECIMAL(38, 0)) > 0 AS INT)",
            _where_sound(f"{b} > 1", f"CAST({b} > 0 AS INTEGER)"),
            f"{b} > 1",
        ),
        Term(
            f"CAST(CAST({b} AS DOUBLE) * 1e9 AS INT)",
            _where_sound(f"{b} > 2", f"CAST({b} * 1000000000::BIGINT AS BIGINT)"),
            f"{b} > 2",
        ),
        Term(f"element_at(array(7, 8, 9, 7, 8), {b})", _where_sound(f"{b} = 0", f"[7, 8, 9, 7, 8][{b}]"), f"{b} = 0"),
        Term(f"MONTH(make_date(2026, {b}, 1))", _where_sound(f"{b} = 0", b), f"{b} = 0"),
    ]


def terms(alias: str, other: str | None = None) -> list[Term]:
    """What can fail on a row of a relation, or on a pair."""
    a, found = alias, [*casts(alias), *arithmetic(alias)]
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
        kinds = [self.inner, self.one_sided, self.full, self.group, self.nested, *self.further]
        return self.numbers.choice(kinds)()

    @property
    def further(self) -> list[Callable[[], Query]]:
        """Kinds of queries in which something fails elsewhere than in outputs and conditions on pairs."""
        return [self.keyed, self.grouped, self.total, self.overflow, self.contained, self.below, self.united]

    def keyed(self) -> Query:
        """A join of any kind on an equality that fails: a row of the left side that passes its conditions fails."""
        kind = self.numbers.choice(["", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI"])
        term, tests = self.term("x"), [] if kind in ("FULL", "RIGHT") else self.tests("x", most=1)
        shown = "x.id" if kind.endswith(("SEMI", "ANTI")) else "x.id, y.id AS other"
        joins = f"{kind.removeprefix('LEFT ') if shown == 'x.id' else kind} JOIN y ON"
        return Query(
            f"SELECT {shown} FROM x {kind} JOIN y ON {term.text} = y.k{_where(test.text for test in tests)}",
            f"SELECT {shown} FROM x {joins} {term.value} = y.k{_where(test.value for test in tests)}",
            [_failing("x", tests, [term])],
        )

    def grouped(self) -> Query:
        """Groups by a key that fails, of one relation or of a join, with DISTINCT or a HAVING."""
        term, tests = self.term("x"), self.tests("x", most=1)
        joins = self.numbers.choice(["x", "x JOIN y ON x.k = y.k"])
        where, batch = (_where(getattr(test, part) for test in tests) for part in ("text", "value"))
        if self.numbers.random() < 0.3:
            distinct = "SELECT DISTINCT {} AS g FROM {}{}"
            texts = distinct.format(term.text, joins, where), distinct.format(term.value, joins, batch)
            return Query(*texts, [_failing(joins, tests, [term])])
        failing = [_failing(joins, tests, [term])]
        apart = "(MAX(x.b) - MIN(x.b))"
        text = f"SELECT {term.text} AS g, COUNT(*) AS n FROM {joins}{where} GROUP BY {term.text}"
        asked = f"SELECT {term.value} AS g, COUNT(*) AS n FROM {joins}{batch} GROUP BY 1"
        if self.numbers.random() < 0.5:
            return Query(text, asked, failing)
        failing.append(f"SELECT 1 FROM {joins}{batch} GROUP BY {term.value} HAVING {apart} = 0")
        sound = f"CASE WHEN {apart} <> 0 THEN 12 // {apart} END > 3"
        return Query(f"{text} HAVING 12 DIV {apart} > 3", f"{asked} HAVING {sound}", failing)

    def total(self) -> Query:
        """An aggregate without keys, of what fails, or in what fails; over nothing it has no row where it fails."""
        tests = self.tests("x", most=1)
        where, batch = (_where(getattr(test, part) for test in tests) for part in ("text", "value"))
        failing = [_failing("x", tests, [])]
        match self.numbers.choice(["of", "sum", "count"]):
            case "of":
                term = self.term("x")
                shown = "SELECT MAX({}) AS q, COUNT(*) AS n FROM x{}"
                return Query(
                    shown.format(term.text, where), shown.format(term.value, batch), [_failing("x", tests, [term])]
                )
            case "sum":
                failing.append(f"SELECT 1 FROM x{batch} HAVING SUM(x.b) = 0")
                sound = f"SELECT CASE WHEN SUM(x.b) <> 0 THEN 100 // SUM(x.b) END AS q FROM x{batch}"
                return Query(f"SELECT 100 DIV SUM(x.b) AS q FROM x{where}", sound, failing)
            case _:
                sound = f"SELECT 100 // COUNT(*) AS q FROM x{batch} HAVING COUNT(*) > 0"
                return Query(f"SELECT 100 DIV COUNT(*) AS q FROM x{where}", sound, failing)

    def overflow(self) -> Query:
        """A sum that does not fit its type: only that of all rows of a group counts."""
        large, keyed = "1000000000000000000", self.numbers.random() < 0.6
        joins = self.numbers.choice(["x", "x JOIN y ON x.k = y.k"])
        keys = ("x.k, ", " GROUP BY x.k") if keyed else ("", "")
        total = f"SUM(CAST(x.b AS HUGEINT) * {large})"
        return Query(
            f"SELECT {keys[0]}SUM(CAST(x.b AS BIGINT) * {large}) AS q FROM {joins}{keys[1]}",
            f"SELECT {keys[0]}{total} AS q FROM {joins}{keys[1]}",
            [f"SELECT 1 FROM {joins}{keys[1]} HAVING {total} > 9223372036854775807"],
        )

    def contained(self) -> Query:
        """IN and EXISTS over what fails. Conditions of the subquery are asked of rows that meet one outside."""
        term, tests = self.term("y"), self.tests("y", most=1)
        where, batch = (_where(getattr(test, part) for test in tests) for part in ("text", "value"))
        if self.numbers.random() < 0.5:
            return Query(
                f"SELECT x.id FROM x WHERE x.b IN (SELECT {term.text} FROM y{where})",
                f"SELECT x.id FROM x WHERE x.b IN (SELECT {term.value} FROM y{batch})",
                [_failing("y", tests, [term], only=[]), _failing(f"x JOIN y ON x.b = {term.value}", tests, [])],
            )
        pair = self.test("x", "y")
        sound = f"y.k = x.k AND coalesce({pair.value}, FALSE)"
        return Query(
            f"SELECT x.id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE y.k = x.k AND {pair.text})",
            f"SELECT x.id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE {sound})",
            [_failing("x JOIN y ON y.k = x.k", [pair], [])],
        )

    def below(self) -> Query:
        """What fails below a join: on rows that are joined; below a DISTINCT: on every row there."""
        term, inner = self.term("x"), self.tests("x", most=1)
        where, batch = (_where(getattr(test, part) for test in inner) for part in ("text", "value"))
        distinct = "DISTINCT " * (self.numbers.random() < 0.5)
        shape = "SELECT u.id, u.q, y.id AS other FROM (SELECT {}x.id, x.k, {} AS q FROM x{}) u JOIN y ON u.k = y.k"
        failing = _failing("x" if distinct else "x JOIN y ON x.k = y.k", inner, [term])
        return Query(shape.format(distinct, term.text, where), shape.format(distinct, term.value, batch), [failing])

    def united(self) -> Query:
        """A UNION, with or without ALL, joined with another relation. It is computed by itself, on every row."""
        first, second = self.term("x"), self.term("y")
        union = self.numbers.choice(["UNION", "UNION ALL"])
        shape = "SELECT u.q, z.id FROM (SELECT x.k, {} AS q FROM x {} SELECT y.k, {} AS q FROM y) u JOIN z ON u.k = z.k"
        failing = [_failing("x", [], [first]), _failing("y", [], [second])]
        text = shape.format(first.text, union, second.text)
        return Query(text, shape.format(first.value, union, second.value), failing)

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
