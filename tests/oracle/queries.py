"""Random queries, in SQL that Spark and DuckDB read alike: joins of several shapes, nested in each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.oracle.values import PAYLOADS, Kind, literal

Draw = st.DrawFn
SHAPES = ("chain", "star", "cycle", "both keys")
NUMBERED = frozenset({"integer"})
PAYLOAD_ONLY = frozenset(kind.family for kind in PAYLOADS)
UNJOINED = PAYLOAD_ONLY | {"constant"}
SET_OPERATIONS = ("UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL")
HERE = "__here"


@dataclass(frozen=True)
class Relation:
    """Something that can stand in FROM: its text, its columns, and DuckDB's text where that has other words."""

    text: str
    columns: Mapping[str, Kind]
    duckdb: str = ""

    @property
    def oracle(self) -> str:
        """The text for DuckDB."""
        return self.duckdb or self.text


@dataclass(frozen=True)
class Item:
    """An input of a join."""

    alias: str
    columns: Mapping[str, Kind]

    def of_family(self, family: str) -> list[str]:
        """The columns of a family, qualified."""
        return [f"{self.alias}.{name}" for name, kind in self.columns.items() if kind.family == family]


@st.composite
def relations(draw: Draw, known: Sequence[Relation], depth: int) -> Relation:
    """A relation by name, or a subquery."""
    if depth == 0 or draw(st.integers(0, 3)):
        return draw(st.sampled_from(known))
    inner = draw(queries(known, depth - 1))
    return Relation(f"({inner.text})", inner.columns, f"({inner.oracle})")


@st.composite
def queries(draw: Draw, known: Sequence[Relation], depth: int = 1) -> Relation:
    """A SELECT, or a set operation of two; sometimes behind a WITH."""
    if depth and draw(st.integers(0, 5)) == 0:
        named = draw(queries(known, depth - 1))
        inner = draw(queries([*known, Relation("w", named.columns)], depth - 1))
        texts = (f"WITH w AS ({one}) {two}" for one, two in ((named.text, inner.text), (named.oracle, inner.oracle)))
        return Relation(next(texts), inner.columns, next(texts))
    first = draw(selects(known, depth))
    if not depth or draw(st.integers(0, 3)):
        return first
    words = draw(st.sampled_from(SET_OPERATIONS))
    second = draw(selects(known, 0, wanted=first.columns))
    oracle = f"{first.oracle} {words} {second.oracle}"
    return Relation(f"{first.text} {words} {second.text}", first.columns, oracle)


@st.composite
def selects(draw: Draw, known: Sequence[Relation], depth: int, wanted: Mapping[str, Kind] | None = None) -> Relation:
    """A SELECT over one to five inputs. `wanted`: families of the result, to be the second part of a union."""
    count = draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4, 5]))
    chosen = [draw(relations(known, depth)) for _ in range(count)]
    joined = draw(st.sampled_from([commas, inner_joins, mixed_joins, mixed_joins]))
    chain = draw(joined(chosen))
    conditions = [draw(condition(chain.items)) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    if draw(st.integers(0, 3)) == 0:
        conditions.append(draw(subquery_tests(chain.items, known)))
    columns = draw(outputs(chain.items) if wanted is None else matching_outputs(chain.items, wanted))
    listed = ", ".join(f"{text} AS {name}" for name, (text, _) in columns.items())
    distinct = "DISTINCT " if draw(st.integers(0, 4)) == 0 else ""
    texts = []
    for source, own in ((chain.text, ()), (chain.oracle, chain.filters)):
        parts = [*chain.conditions, *conditions, *own]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        texts.append(f"SELECT {distinct}{listed} FROM {source}{where}")
    return Relation(texts[0], {n: kind for n, (_, kind) in columns.items()}, texts[1])


@dataclass(frozen=True)
class Chain:
    """What stands after FROM, the inputs whose columns can be named, and conditions that belong into WHERE.

    `filters` stand there for DuckDB only.
    """

    text: str
    oracle: str
    items: tuple[Item, ...]
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


@st.composite
def commas(draw: Draw, chosen: Sequence[Relation]) -> Chain:
    """Inputs one after the other, linked in WHERE."""
    items = [Item(f"t{at}", relation.columns) for at, relation in enumerate(chosen)]
    linked = draw(links(items))
    used = list(zip(chosen, items, strict=True))[: len(linked) + 1]
    text, oracle = (", ".join(f"{at} {i.alias}" for at, i in listed) for listed in _both(used))
    return Chain(text, oracle, tuple(i for _, i in used), tuple(part for link in linked for part in link))


@st.composite
def inner_joins(draw: Draw, chosen: Sequence[Relation]) -> Chain:
    """Inner joins with equalities."""
    items = [Item(f"t{at}", relation.columns) for at, relation in enumerate(chosen)]
    linked = draw(links(items))
    used = list(zip(chosen, items, strict=True))[: len(linked) + 1]
    texts = []
    for listed in _both(used):
        text = f"{listed[0][0]} {listed[0][1].alias}"
        for (source, item), link in zip(listed[1:], linked, strict=True):
            text += f" JOIN {source} {item.alias} ON {' AND '.join(link)}"
        texts.append(text)
    return Chain(texts[0], texts[1], tuple(i for _, i in used))


def _both(used: Sequence[tuple[Relation, Item]]) -> tuple[list[tuple[str, Item]], list[tuple[str, Item]]]:
    return [(r.text, i) for r, i in used], [(r.oracle, i) for r, i in used]


@st.composite
def mixed_joins(draw: Draw, chosen: Sequence[Relation]) -> Chain:
    """Joins of all kinds, with keys that may be null-safe, residual conditions, and conditions on one side."""
    chain = Chain(f"{chosen[0].text} t0", _marked(chosen[0], "t0"), (Item("t0", chosen[0].columns),))
    has_cross = False
    for at, relation in enumerate(chosen[1:], 1):
        item = Item(f"t{at}", relation.columns)
        before = draw(st.sampled_from([chain.items[-1:], chain.items]))
        pairs = [pair for other in before for pair in joinable(other, item)]
        kind = draw(st.sampled_from(KINDS_OF_JOIN))
        if not has_cross and draw(st.integers(0, 11)) == 0:
            pairs, has_cross = [], True
        elif not pairs:
            break
        keys = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2)) if pairs else []
        on = [draw(equality(*pair)) for pair in keys]
        both = (*chain.items, item)
        on += [draw(condition(both)) for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2])))]
        chain = _joined(chain, relation, item, kind, " AND ".join(on) or "TRUE")
        if chain.filters:
            break
    return chain


KINDS_OF_JOIN = (
    *("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "FULL JOIN"),
    *("SEMI JOIN", "ANTI JOIN", "ANTI JOIN", "RIGHT SEMI JOIN", "RIGHT ANTI JOIN", "FULL ANTI JOIN"),
)


def _joined(chain: Chain, relation: Relation, item: Item, kind: str, on: str) -> Chain:
    """One more join. DuckDB has no RIGHT SEMI and RIGHT ANTI (its sides are swapped), and no FULL ANTI JOIN.

    That is a FULL JOIN of which only padded rows are kept: a filter, so that no other join may follow.
    """
    text = f"{chain.text} {kind} {relation.text} {item.alias} ON {on}"
    right = _marked(relation, item.alias)
    if kind.startswith("RIGHT ") and kind != "RIGHT JOIN":
        oracle = f"{right} {kind.removeprefix('RIGHT ')} ({chain.oracle}) ON {on}"
        return Chain(text, oracle, (item,))
    if kind in ("SEMI JOIN", "ANTI JOIN"):
        return Chain(text, f"{chain.oracle} {kind} {right} ON {on}", chain.items)
    filters: tuple[str, ...] = ()
    if kind == "FULL ANTI JOIN":
        left = ", ".join(f"{i.alias}.{HERE}" for i in chain.items)
        filters = (f"(COALESCE({left}, NULL) IS NULL OR {item.alias}.{HERE} IS NULL)",)
    oracle = f"{chain.oracle} {kind.replace('FULL ANTI', 'FULL')} {right} ON {on}"
    return Chain(text, oracle, (*chain.items, item), filters=filters)


def _marked(relation: Relation, alias: str) -> str:
    """A relation for DuckDB, with a column that only padding leaves NULL."""
    return f"(SELECT *, TRUE AS {HERE} FROM {relation.oracle} r) {alias}"


@st.composite
def subquery_tests(draw: Draw, items: Sequence[Item], known: Sequence[Relation]) -> str:
    """[NOT] EXISTS or [NOT] IN, correlated or not."""
    relation = draw(st.sampled_from(known))
    inner = Item("s", relation.columns)
    pairs = [pair for item in items for pair in joinable(item, inner)]
    word = draw(st.sampled_from(["", "NOT "]))
    is_correlated = draw(st.integers(0, 2)) > 0
    conditions = [draw(equality(*draw(st.sampled_from(pairs))))] if pairs and is_correlated else []
    if draw(st.integers(0, 2)) == 0:
        conditions.append(draw(condition([inner])))
    if draw(st.integers(0, 3)) == 0:
        conditions.append(draw(condition([*items, inner])))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if not pairs or draw(st.booleans()):
        return f"{word}EXISTS (SELECT 1 FROM {relation.text} s{where})"
    left, right, _ = draw(st.sampled_from(pairs))
    return f"{left} {word}IN (SELECT {right} FROM {relation.text} s{where})"


@st.composite
def links(draw: Draw, items: Sequence[Item]) -> list[list[str]]:
    """For each input but the first, the equalities that link it with earlier ones; ends early if there are none."""
    shape = draw(st.sampled_from(SHAPES))
    result: list[list[str]] = []
    for at in range(1, len(items)):
        before = {"chain": [items[at - 1]], "star": [items[0]]}.get(shape, list(items[:at]))
        pairs = [pair for other in before for pair in joinable(other, items[at])]
        if not pairs:
            break
        wanted = 1 if shape in ("chain", "star") else draw(st.integers(1, 3))
        chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=wanted, unique=True))
        result.append([draw(equality(*pair)) for pair in chosen])
    return result


def joinable(left: Item, right: Item) -> list[tuple[str, str, str]]:
    """Pairs of columns that may be compared, with their family. Columns called alike come first."""
    pairs = [
        (f"{left.alias}.{a}", f"{right.alias}.{b}", kind.family)
        for a, kind in left.columns.items()
        for b, other in right.columns.items()
        if kind.family == other.family and kind.family not in UNJOINED
    ]
    return sorted(pairs, key=lambda pair: pair[0].split(".")[1] != pair[1].split(".")[1])


@st.composite
def equality(draw: Draw, left: str, right: str, family: str) -> str:
    """An equality of columns, or of expressions of them."""
    shape = draw(st.integers(0, 8))
    if shape == 0:
        return f"{right} = {left}"
    if shape == 8:
        return f"{left} IS NOT DISTINCT FROM {right}"
    if shape == 1:
        return f"CASE WHEN {left} IS NULL THEN NULL ELSE {left} END = {right}"
    if shape == 2 and family in NUMBERED:
        return f"COALESCE({left}, 1) = COALESCE({right}, 1)"
    return f"{left} = {right}"


@st.composite
def condition(draw: Draw, items: Sequence[Item]) -> str:
    """A predicate on one input, or on two that no key can answer."""
    item = draw(st.sampled_from(items))
    name, kind = draw(st.sampled_from(list(item.columns.items())))
    column = f"{item.alias}.{name}"
    other = draw(st.sampled_from(items))
    same = [text for text in other.of_family(kind.family) if text != column and kind.family != "constant"]
    shape = draw(st.integers(0, 4))
    if shape == 0 or kind.family in PAYLOAD_ONLY:
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if shape == 1 and same:
        sign = draw(st.sampled_from(["<", "<=", "<>", ">", "IS NOT DISTINCT FROM"]))
        return f"{column} {sign} {draw(st.sampled_from(same))}"
    if shape == 2 and same:
        return f"({column} = {draw(st.sampled_from(same))} OR {column} IS NULL)"
    value = literal(draw(st.sampled_from(kind.values[:4])), kind)
    if shape == 3:
        return f"{column} IN ({value}, {literal(kind.values[0], kind)})"
    return f"{column} {draw(st.sampled_from(['=', '<', '>=', '<>']))} {value}"


@st.composite
def outputs(draw: Draw, items: Sequence[Item]) -> dict[str, tuple[str, Kind]]:
    """A SELECT list: columns of all inputs, now and then an expression or a constant."""
    every = [(f"{item.alias}.{name}", kind) for item in items for name, kind in item.columns.items()]
    chosen = draw(st.lists(st.sampled_from(every), min_size=1, max_size=5))
    result = {}
    for at, (text, kind) in enumerate(chosen):
        shape = draw(st.integers(0, 9))
        if shape == 0 and kind.family not in PAYLOAD_ONLY:
            text = f"COALESCE({text}, {literal(kind.values[1], kind)})"
            result[f"c{at}"] = (f"CAST({text} AS {kind.sql})", kind)
        elif shape == 1 and kind.family not in PAYLOAD_ONLY:
            # A constant is not a key: an equality with it links nothing.
            constant = replace(kind, family="constant")
            result[f"c{at}"] = (f"CAST({literal(kind.values[0], kind)} AS {kind.sql})", constant)
        else:
            result[f"c{at}"] = (text, kind)
    return result


@st.composite
def matching_outputs(draw: Draw, items: Sequence[Item], wanted: Mapping[str, Kind]) -> dict[str, tuple[str, Kind]]:
    """A SELECT list whose columns can be united with the wanted ones."""
    result = {}
    for name, kind in wanted.items():
        same = [text for item in items for text in item.of_family(kind.family) if kind.family != "constant"]
        result[name] = (draw(st.sampled_from([f"CAST(NULL AS {kind.sql})", *same])), kind)
    return result
