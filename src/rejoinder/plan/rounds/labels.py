"""What people read instead of the names that the plan has made: for EXPLAIN alone, nothing is looked up by them.

A derived relation is named by a hash and its columns are `c0`, `c1`, …, so that equal computations are one. Here it is
called by the beginning of that hash, and its columns by what they are made of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate, islice, pairwise

from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import DerivedRows, OperationInput, RelationId
from rejoinder.kernels.duckdb.render import duckdb_text
from rejoinder.plan.blocks.normal_form import Block, Derived
from rejoinder.plan.join.join_graph import input_of
from rejoinder.plan.physical.arrangement import Arrangement, Key

SHORTEST = 4
LONGEST = 72
_NAME = re.compile(r"""'(?:[^']|'')*'|(?<!\w)\("([^"]*)"\)|"([^"]*)\"""")
_QUALIFIER = re.compile(r"('(?:[^']|'')*')|\b[A-Za-z_]\w*\.(?=[A-Za-z_`])")
_COLUMN = re.compile(r"[\w.`]+")
_IDENTIFIER = re.compile(r"(?<![\w.])\d+\.[A-Za-z_]")


class Labels:
    """Labels of relations, columns and arrangements."""

    def __init__(self, derived: Mapping[RelationId, Derived]) -> None:
        self._derived = derived
        self._length = _shortest(derived)
        self._columns: dict[RelationId, dict[str, str]] = {}

    def relation(self, relation: RelationId) -> str:
        """Return a relation; for a derived one, the shortest prefix of its name that is unique."""
        return str(self._short(relation))

    def _short(self, relation: RelationId) -> RelationId:
        match relation:
            case DerivedRows():
                return DerivedRows(relation.kind, relation.digest[: self._length])
            case OperationInput(DerivedRows() as made):
                return OperationInput(DerivedRows(made.kind, made.digest[: self._length]))
            case _:
                return relation

    def column(self, relation: RelationId, name: str) -> str:
        """Return the label of a column: the column of a source, a call, or an expression as written."""
        own = relation.of if isinstance(relation, OperationInput) else relation
        if own not in self._derived:
            return name
        if own not in self._columns:
            made = self._derived[own]
            self._columns[own] = made.operation.column_labels(made, self)
        return self._columns[own].get(name, name)

    def key(self, key: Key, names: Mapping[str, str]) -> str:
        """Return the label of a key."""
        if key.whole:
            return "*"
        safe = (" or NULL" if at in key.null_safe else "" for at in range(len(key.parts)))
        return ", ".join(shown(part, names) + word for part, word in zip(key.parts, safe, strict=True))

    def arrangement(self, arrangement: Arrangement) -> str:
        """Return the label of an arrangement: relation, key and order."""
        names = {name: self.column(arrangement.relation, name) for name in arrangement.schema.names}
        order = "" if arrangement.order is None else f"; {names[arrangement.order]}"
        return f"{self.relation(arrangement.relation)}[{self.key(arrangement.key, names)}{order}]"

    def names(self, block: Block) -> dict[str, str]:
        """Return the labels of a block's columns, by column id."""
        return {i: self.column(each.relation, name) for each in block.inputs for i, name in each.columns}

    def conditions(self, predicates: Iterable[Expression], block: Block, names: Mapping[str, str] | None = None) -> str:
        """Return conditions of a block as written, combined with AND; generated conditions are written out."""
        labels = names or self.names(block)

        def in_full(predicate: Expression) -> str:
            owners = {i: self.relation(block.inputs[input_of(i)].relation) for i in predicate.columns}
            return shown(predicate, {i: f"{owners[i]}.{labels[i]}" for i in predicate.columns if i in labels})

        texts = list(dict.fromkeys(written(p) or in_full(p) for p in predicates))
        text = " AND ".join(f"({each})" if len(texts) > 1 and " OR " in each else each for each in texts)
        return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"

    def outputs(self, blocks: tuple[Block, ...]) -> dict[str, str]:
        """Return the labels of the outputs of blocks, qualified where two would be the same."""
        plain: dict[str, str] = {}
        qualified: dict[str, str] = {}
        for at, (name, first) in enumerate(blocks[0].outputs):
            block, expression = blocks[0], first
            if not first.columns and len(blocks) > 1:  # padding
                block, expression = blocks[1], blocks[1].outputs[at][1]
            plain[name] = self._output(block, expression) or name
            qualified[name] = plain[name]
            if expression.is_column:
                owner = block.inputs[input_of(expression.columns[0])].relation
                qualified[name] = f"{self.relation(owner)}.{plain[name]}"
        plain = _with_ends(plain)
        often = Counter(plain.values())
        result = {name: label if often[label] == 1 else qualified[name] for name, label in plain.items()}
        often = Counter(result.values())
        return {name: label if often[label] == 1 else name for name, label in result.items()}

    def _output(self, block: Block, expression: Expression) -> str | None:
        if expression.is_column:
            return self.names(block)[expression.columns[0]]
        text = written(expression)
        return text if text is not None and len(text) <= LONGEST else None


def _with_ends(labels: dict[str, str]) -> dict[str, str]:
    """Label the two consecutive columns of a window, which have the same text, as its start and its end."""
    result = dict(labels)
    entries = list(labels.items())
    for (start, one), (end, two) in pairwise(entries):
        if one == two and one.endswith(")") and result[start] == one:
            result[start], result[end] = f"{one}.start", f"{one}.end"
    return result


def written(expression: Expression) -> str | None:
    """Return an expression as the user wrote it; None if it is generated."""
    text = expression.text
    return text if text and not _IDENTIFIER.search(text) else None


def shown(expression: Expression, names: Mapping[str, str]) -> str:
    """Return an expression over the labels of columns, without qualifiers; a cast column has its type."""
    if expression.is_column:
        return names.get(expression.columns[0], expression.columns[0])
    text = written(expression)
    if text is not None and not _COLUMN.fullmatch(text):
        return _QUALIFIER.sub(lambda token: token.group(1) or "", text)

    def bare(token: re.Match[str]) -> str:
        name = token.group(1) or token.group(2)
        return token.group() if name is None else names.get(name, name)

    text = _NAME.sub(bare, _without_brackets(duckdb_text(expression.node)))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _without_brackets(text: str) -> str:
    """Remove the brackets around a whole text."""
    depths = accumulate((sign == "(") - (sign == ")") for sign in text)
    is_enclosed = text.startswith("(") and 0 not in islice(depths, len(text) - 1)
    return text[1:-1] if is_enclosed else text


def _shortest(relations: Iterable[RelationId]) -> int | None:
    """Return the length of the shortest unique prefix of the digests; None: they are shown in full."""
    derived = [relation for relation in relations if isinstance(relation, DerivedRows)]
    lengths = (
        length for length in range(SHORTEST, 12) if len({(d.kind, d.digest[:length]) for d in derived}) == len(derived)
    )
    return next(lengths, None)
