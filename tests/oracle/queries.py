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


@dataclass(frozen=True)
class Relation:
    """Something that can stand in FROM: its text and its columns."""

    text: str
    columns: Mapping[str, Kind]


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
    return Relation(f"({inner.text})", inner.columns)


@st.composite
def queries(draw: Draw, known: Sequence[Relation], depth: int = 1) -> Relation:
    """A SELECT, or the union of two; sometimes behind a WITH."""
    if depth and draw(st.integers(0, 5)) == 0:
        named = draw(queries(known, depth - 1))
        inner = draw(queries([*known, Relation("w", named.columns)], depth - 1))
        return Relation(f"WITH w AS ({named.text}) {inner.text}", inner.columns)
    first = draw(selects(known, depth))
    if not depth or draw(st.integers(0, 3)):
        return first
    words = draw(st.sampled_from(["UNION ALL", "UNION"]))
    second = draw(selects(known, 0, wanted=first.columns))
    return Relation(f"{first.text} {words} {second.text}", first.columns)


@st.composite
def selects(draw: Draw, known: Sequence[Relation], depth: int, wanted: Mapping[str, Kind] | None = None) -> Relation:
    """A SELECT over one to five inputs. `wanted`: families of the result, to be the second part of a union."""
    count = draw(st.sampled_from([1, 2, 2, 2, 3, 3, 4, 5]))
    chosen = [draw(relations(known, depth)) for _ in range(count)]
    items = [Item(f"t{at}", relation.columns) for at, relation in enumerate(chosen)]
    linked = draw(links(items))
    chosen, items = chosen[: len(linked) + 1], items[: len(linked) + 1]
    conditions = [draw(condition(items)) for _ in range(draw(st.sampled_from([0, 0, 1, 2])))]
    text = f"{chosen[0].text} {items[0].alias}"
    if draw(st.booleans()):
        text += "".join(f", {r.text} {i.alias}" for r, i in zip(chosen[1:], items[1:], strict=True))
        conditions = [*(part for link in linked for part in link), *conditions]
    else:
        for relation, item, link in zip(chosen[1:], items[1:], linked, strict=True):
            text += f" JOIN {relation.text} {item.alias} ON {' AND '.join(link)}"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    columns = draw(outputs(items) if wanted is None else matching_outputs(items, wanted))
    listed = ", ".join(f"{text} AS {name}" for name, (text, _) in columns.items())
    distinct = "DISTINCT " if draw(st.integers(0, 4)) == 0 else ""
    return Relation(f"SELECT {distinct}{listed} FROM {text}{where}", {n: kind for n, (_, kind) in columns.items()})


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
    shape = draw(st.integers(0, 7))
    if shape == 0:
        return f"{right} = {left}"
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
            # A constant is no key: an equality with it links nothing.
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
