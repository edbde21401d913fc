"""Run a logical tree backwards: from rows of its result to the input rows that make them.

A *block* is the part of a tree that passes single rows on: filters, projections, joins, generators. Within a block, the
witnesses of a row are found in one go: the block is evaluated with all columns of its leaves, restricted to the wanted
rows. Below a block is an operation that combines rows, such as a group. `causes` tells for each operation which rows
of its input make its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import singledispatch

import pyarrow as pa
import pyarrow.compute as pc

from rejoinder.engine.causes.tree_rows import TreeRows, scans_of
from rejoinder.errors import Unsupported
from rejoinder.ir.expressions.expression import Expression, column, literal
from rejoinder.ir.logical import (
    Aggregate,
    Arrival,
    AtMostOne,
    Current,
    Distinct,
    Enrich,
    Expand,
    Filter,
    Join,
    Latest,
    Node,
    Project,
    Query,
    Records,
    Scan,
    Session,
    SetOperation,
    Validity,
    WindowCalls,
)
from rejoinder.kernels.arrow.columns import DIFF, HASH, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.plan.unnest.tree_columns import columns_of, identity

_PRESENT = "present."


@dataclass(frozen=True)
class Part:
    """The rows of an input tree that make rows of an operation, with a text for the step. No columns: all rows."""

    node: Node
    wanted: pa.Table
    step: str


@dataclass(frozen=True)
class Witnesses:
    """Rows of a relation that make wanted rows. `steps` leads from the result to them.

    No rows: the result is as it is because no row of the relation matches.
    """

    scan: Scan
    rows: pa.Table
    steps: tuple[str, ...]


@dataclass(frozen=True)
class _Leaf:
    node: Node
    present: str
    """The id of a column that is NULL where an outer join has padded the leaf."""
    step: str
    is_absent: bool = False
    """Whether it is the right side of an anti join, in which no row matches."""


def result_of(query: Query) -> Project:
    """Return a query as a tree whose columns are the names of the result."""
    return Project(query.root, query.outputs)


def witnesses(inputs: TreeRows, node: Node, wanted: pa.Table, steps: tuple[str, ...] = ()) -> Iterator[Witnesses]:
    """Yield the rows of all relations that make the wanted rows of a tree."""
    leaves: list[_Leaf] = []
    tree = _exposed(node, leaves, "")
    matched = [leaf for leaf in leaves if not leaf.is_absent]
    ids = [i for leaf in matched for i in (*columns_of(leaf.node), leaf.present)]
    found = inputs.rows(tree, ids, wanted)
    if found.num_rows == 0:
        return
    for leaf in leaves:
        below = (*steps, leaf.step) if leaf.step else steps
        present = None if leaf.is_absent else found.column(leaf.present)
        if present is None or present.null_count:
            scan = scans_of(leaf.node)[0]
            yield Witnesses(scan, scan.schema.empty_table(), (*below, "no match"))
        if present is None or present.null_count == len(present):
            continue
        rows = distinct_rows(found.filter(pc.is_valid(present)).select([*columns_of(leaf.node)]))
        if isinstance(leaf.node, Scan):
            yield Witnesses(leaf.node, rows.rename_columns([name for _, name in leaf.node.columns]), below)
            continue
        for part in causes(leaf.node, rows):
            yield from witnesses(inputs, part.node, part.wanted, (*below, part.step))


def distinct_rows(rows: pa.Table) -> pa.Table:
    """Return each distinct row once."""
    if rows.num_columns == 0 or rows.num_rows < 2:
        return rows
    return without(consolidate(rows), [DIFF, HASH])


def _exposed(node: Node, leaves: list[_Leaf], step: str) -> Node:
    """Return a block with the columns of its leaves added to its own."""
    match node:
        case Filter():
            return replace(node, input=_exposed(node.input, leaves, step))
        case Project():
            inner = _exposed(node.input, leaves, step)
            own = {i for i, _ in node.outputs}
            passed = {i: e for i, e in identity(columns_of(inner)).items() if i not in own}
            return replace(node, input=inner, outputs=(*node.outputs, *passed.items()))
        case Expand():
            return replace(node, input=_exposed(node.input, leaves, step))
        case Join(kind="anti"):
            left = _exposed(node.left, leaves, step)
            if any(predicate.equality for predicate in node.predicates):
                leaves.append(_Leaf(node.right, "", _joined(node, step), is_absent=True))
            return replace(node, left=left)
        case Join():
            text = _joined(node, step)
            left, right = _exposed(node.left, leaves, step), _exposed(node.right, leaves, text)
            return replace(node, left=left, right=right, kind="inner" if node.kind == "semi" else node.kind)
        case Arrival():
            raise Unsupported(
                "WHY is not supported for a join at arrival",
                detail="FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP joins rows as they were, which are not kept",
                hint="ask WHY of the views and sources that it reads",
            )
    present = f"{_PRESENT}{len(leaves)}"
    leaves.append(_Leaf(node, present, step))
    outputs = {**identity(columns_of(node)), present: literal(True, pa.bool_())}
    return Project(node, tuple(outputs.items()))


def _joined(node: Join, step: str) -> str:
    conditions = " AND ".join(p.expression.text for p in node.predicates if p.expression.text)
    text = f"{'' if node.kind == 'inner' else node.kind + ' '}join{' on ' + conditions if conditions else ''}"
    return f"{step}; {text}" if step else text


@singledispatch
def causes(node: Node, rows: pa.Table) -> Sequence[Part]:
    """Return the input rows that make the `rows` of an operation."""
    raise AssertionError(f"{type(node).__name__} is part of a block")


@causes.register
def _(node: Aggregate, rows: pa.Table) -> Sequence[Part]:
    keys = [i for i, _ in node.keys]
    texts = ", ".join(e.text for _, e in node.keys if e.text)
    return [
        Part(
            keyed_input(node),
            distinct_rows(rows.select(keys)),
            f"group by {texts}" if texts else "aggregate of all rows",
        )
    ]


@causes.register
def _(node: Distinct, rows: pa.Table) -> Sequence[Part]:
    return [Part(node.input, rows, "distinct")]


@causes.register
def _(node: SetOperation, rows: pa.Table) -> Sequence[Part]:
    branches = branches_of(node)[:1] if node.operation.startswith("EXCEPT") else branches_of(node)
    return [Part(branch, rows, f"{node.operation}, branch {number}") for number, branch in enumerate(branches, 1)]


@causes.register
def _(node: WindowCalls, rows: pa.Table) -> Sequence[Part]:
    whole = distinct_rows(rows.select(list(node.partition)))
    return [
        Part(node.input, rows.select([i for i, _ in node.columns]), "the row itself"),
        Part(node.input, whole, "window partition"),
    ]


@causes.register
def _(node: AtMostOne, rows: pa.Table) -> Sequence[Part]:
    return [Part(node.input, distinct_rows(rows.select(list(node.key))), "scalar subquery")]


@causes.register
def _(node: Validity, rows: pa.Table) -> Sequence[Part]:
    following = rows.select([*node.partition, node.end]).rename_columns([*node.partition, node.time])
    return [
        Part(node.input, rows.select([i for i, _ in node.columns]), "version"),
        Part(node.input, distinct_rows(following), "next version"),
    ]


@causes.register(Session)
@causes.register(Current)
@causes.register(Latest)
@causes.register(Records)
def _(node: Session | Current | Latest | Records, rows: pa.Table) -> Sequence[Part]:
    return [Part(node.input, distinct_rows(rows.select([i for i, _ in node.columns])), type(node).__name__.lower())]


@causes.register
def _(node: Enrich, rows: pa.Table) -> Sequence[Part]:
    return [Part(node.input, distinct_rows(rows.select([*columns_of(node.input)])), "enrich")]


def keyed_input(node: Aggregate) -> Project:
    """Return the input of a group with the keys as columns."""
    return Project(node.input, (*node.keys, *_others(node.input, [i for i, _ in node.keys])))


def branches_of(node: SetOperation) -> list[Project]:
    """Return the inputs of a set operation, with the columns of its result."""
    result = []
    for tree, selected in zip(node.inputs, node.selected, strict=True):
        types = columns_of(tree)
        outputs = [(i, column(own, types[own])) for (i, _), own in zip(node.columns, selected, strict=True)]
        result.append(Project(tree, (*outputs, *_others(tree, [i for i, _ in outputs]))))
    return result


def _others(node: Node, names: Sequence[str]) -> tuple[tuple[str, Expression], ...]:
    return tuple((i, e) for i, e in identity(columns_of(node)).items() if i not in names)
