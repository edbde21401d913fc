"""Rewrite the logical plan to the normal form: flatten joins into blocks, and make the rest derived relations.

- Inner joins, filters and projections are flattened:

      SELECT f(x) FROM (SELECT * FROM a WHERE p) JOIN b ON q   →  block [a, b | p, q | f(x)]

- LEFT, SEMI and ANTI joins are flattened, too, as inputs with a mode. The padded or tested side is one relation:

      a LEFT JOIN b ON a.k = b.k JOIN c ON q                   →  block [a, left b on a.k = b.k, c | q | …]

  If the equalities are the only conditions on *pairs* of rows, the match status of a row depends on its key only.
  Otherwise all conditions must be about one input of the left side, whose match status is computed row by row.
- Without an equality, or if matches would never expire, the matched left rows are kept as a relation:

      a LEFT JOIN b ON a.x < b.y   →  pairs UNION ALL padding, with
          pairs   = a JOIN b ON a.x < b.y
          padding = a ANTI JOIN (SELECT DISTINCT a.* FROM pairs) ON all columns are equal

- FULL joins are unions:

      a FULL JOIN b ON q           →  a LEFT JOIN b ON q UNION ALL padding of (b ANTI JOIN a ON q)
      a FULL ANTI JOIN b ON q      →  padding of (a ANTI JOIN b ON q) UNION ALL padding of (b ANTI JOIN a ON q)

- Joins at arrival are derived relations.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expressions.expression import Expression, column, literal, substitute
from rejoinder.ir.expressions.operators import NULL_SAFE, compared, when
from rejoinder.ir.identities import RelationId, SourceRows, column_part
from rejoinder.ir.logical import Bound, Node, Predicate, Query, after
from rejoinder.ir.source_reading import EVERYTHING, Reading
from rejoinder.plan.blocks.containment import containment
from rejoinder.plan.blocks.normal_form import (
    PRESENT,
    Block,
    Derived,
    Input,
    Mode,
    Normalized,
    derive,
    finished,
    inlined,
    selected,
)
from rejoinder.plan.blocks.on_conditions import Conditions, oriented
from rejoinder.plan.blocks.rank_limits import with_rank_limits
from rejoinder.plan.operations.at_most_one import at_most_one
from rejoinder.plan.operations.change_records import recorded
from rejoinder.plan.operations.distinct import Distinct
from rejoinder.plan.operations.enrichment import enriched
from rejoinder.plan.operations.grouping import aggregated
from rejoinder.plan.operations.ordered.window_functions import windowed
from rejoinder.plan.operations.set_operations import SET_OPERATIONS
from rejoinder.plan.operations.time.current_rows import current
from rejoinder.plan.operations.time.latest_rows import latest
from rejoinder.plan.operations.time.sessions import in_sessions, session_groups
from rejoinder.plan.operations.time.validity_windows import valid
from rejoinder.plan.operations.union import Union


class DerivedRelations(dict[RelationId, Derived]):
    """The derived relations of a query, how it reads its sources, and numbers for generated column ids."""

    def __init__(self, on_time: frozenset[str], reading: Reading, *, imposed: bool, by_matches: bool) -> None:
        super().__init__()
        self.numbers = count()
        self.on_time, self.reading, self.imposed, self.by_matches = on_time, reading, imposed, by_matches

    def relation(self, scan: logical.Scan) -> RelationId:
        """Return the relation that a scan reads."""
        if not isinstance(scan.relation, SourceRows):
            return scan.relation
        source = scan.relation.source
        on_time = source in self.on_time or (self.imposed and bool(scan.imposed))
        return self.reading.relation(source, on_time=on_time)


def normalize(
    query: Query,
    on_time: frozenset[str] = frozenset(),
    reading: Reading = EVERYTHING,
    *,
    imposed: bool = False,
    by_matches: bool = True,
) -> Normalized:
    """Return the normal form of a query, without late rows of sources in `on_time` and of scans with `imposed` order.

    With `by_matches`, the match status of a left row is computed from its matches wherever there is an equality.
    Otherwise the matched left rows are kept as a relation.
    """
    derived = DerivedRelations(on_time, reading, imposed=imposed, by_matches=by_matches)
    block = flatten(query.root, derived)
    return finished(_with_earlier_emit_time(query, block), block, derived)


def _with_earlier_emit_time(query: Query, block: Block) -> Query:
    """Emit rows by their own time instead of the end of a validity window, if the end is not selected.

        before: SELECT o.id, v.rate … WHERE v.start <= o.ts AND o.ts < v.end EMIT WHEN WATERMARK PAST v.end
        after:  SELECT o.id, v.rate … WHERE v.start <= o.ts AND o.ts < v.end EMIT WHEN WATERMARK PAST o.ts

    A later version can end the window sooner, but the window still contains times that the watermark has passed.
    """
    if query.emission is None or query.emission.emit_time is None:
        return query
    columns = dict(block.outputs)
    emit_time = substitute(query.emission.emit_time, columns)
    shown = {i for _, e in query.outputs for i in substitute(e, columns).columns}
    for each in block.inputs:
        ends = [i for i, name in each.columns if each.versions is not None and name == each.versions.end]
        found = containment(each, (*block.predicates, *each.on))
        if found is not None and emit_time.is_column and emit_time.columns[0] in ends and not shown & set(ends):
            return replace(query, emission=replace(query.emission, emit_time=after(found.time)))
    return query


def flatten(node: Node, derived: DerivedRelations) -> Block:
    """Return the block of a tree; add the derived relations that it reads to `derived`.

    Every kind of node has its case: mypy reports a missing return if one has none.
    """
    match node:
        case logical.Scan():
            outputs = tuple((i, column(i, node.schema.field(name).type)) for i, name in node.columns)
            only = Input(derived.relation(node), node.columns, node.schema)
            return Block((only,), (), outputs)
        case logical.Filter():
            block = flatten(with_rank_limits(node).input, derived)
            return replace(block, predicates=(*block.predicates, *inlined(node.predicates, dict(block.outputs))))
        case logical.Project():
            block = flatten(node.input, derived)
            columns = dict(block.outputs)
            return replace(block, outputs=tuple((i, substitute(e, columns)) for i, e in node.outputs))
        case logical.Join():
            return _join(node, derived)
        case logical.Arrival():
            return _arrival(node, derived)
        case logical.Latest():
            return latest(node, flatten(node.input, derived), derived)
        case logical.Records():
            return recorded(node, flatten(node.input, derived), derived)
        case logical.SetOperation():
            parts = zip(node.inputs, node.selected, strict=True)
            blocks = tuple(selected(flatten(part, derived), ids) for part, ids in parts)
            return SET_OPERATIONS[node.operation].read(blocks, node.columns, derived)
        case logical.Distinct():
            inner = selected(flatten(node.input, derived), [i for i, _ in node.columns])
            return derive("distinct", Distinct(), (inner,), node.columns, derived)
        case logical.Aggregate():
            groups = aggregated if node.session is None else session_groups
            return groups(node, flatten(node.input, derived), derived)
        case logical.AtMostOne():
            return at_most_one(node, flatten(node.input, derived), derived)
        case logical.Validity():
            return valid(node, flatten(node.input, derived), derived)
        case logical.Current():
            return current(node, flatten(node.input, derived), derived)
        case logical.Session():
            return in_sessions(node, flatten(node.input, derived), derived)
        case logical.WindowCalls():
            return windowed(node, flatten(node.input, derived), derived)
        case logical.Enrich():
            return enriched(node, flatten(node.input, derived), derived)
        case logical.Expand():
            block = flatten(node.input, derived)
            elements = substitute(node.elements, dict(block.outputs))
            repeated = replace(elements, repeats=True, text=node.elements.text)
            kept = tuple((i, e) for i, e in block.outputs if node.kept is None or i in node.kept)
            block = replace(block, outputs=(*kept, (node.output, repeated)))
            return derive("rows", Union(), (block,), block.columns, derived)


def _side(node: Node, derived: DerivedRelations) -> Block:
    """Flatten a side of a join. Expressions over an aggregate without keys that can fail become a derived relation."""
    block = flatten(node, derived)
    computed = [*(e for _, e in block.outputs), *(p.expression for p in block.predicates)]
    if block.optional is None or not any(e.can_fail for e in computed):
        return block
    return derive("rows", Union(), (block,), block.columns, derived)


def _join(node: logical.Join, derived: DerivedRelations) -> Block:
    left, right = _side(node.left, derived), _side(node.right, derived)
    match node.kind:
        case "inner":
            return _inner(left, right, node.predicates)
        case "left" | "semi" | "anti":
            return _one_sided(left, right, node.predicates, node.kind, derived)
        case "full" | "full anti":
            left, right = _relation(left, derived), _relation(right, derived)
            unmatched_right = _padded(_one_sided(right, left, node.predicates, "anti", derived), left, right)
            if node.kind == "full":
                first = _one_sided(left, right, node.predicates, "left", derived)
            else:
                first = _padded(_one_sided(left, right, node.predicates, "anti", derived), left, right)
            columns = (*left.columns, *right.columns)
            union = Union(f"{node.kind.upper()} JOIN", pads=True)
            return derive("union", union, (first, unmatched_right), columns, derived)


def _arrival(node: logical.Arrival, derived: DerivedRelations) -> Block:
    """Flatten a join at arrival: a derived relation, because no later change may join its rows again."""
    left, right = _side(node.left, derived), _side(node.right, derived)
    columns = (*left.columns, *right.columns)
    if node.kind != "full":
        block = _at_arrival(left, right, node.predicates, node.kind, derived)
        return derive("arrivals", Union(), (block,), block.columns, derived)
    left, right = _relation(left, derived), _relation(right, derived)
    blocks = (
        _inner(left, right, node.predicates),
        _padded(_at_arrival(left, right, node.predicates, "anti", derived), left, right),
        _padded(_at_arrival(right, left, node.predicates, "anti", derived), left, right),
    )
    return derive("arrivals", Union("FULL JOIN at arrival"), blocks, columns, derived)


def _at_arrival(left: Block, right: Block, on: tuple[Predicate, ...], mode: Mode, derived: DerivedRelations) -> Block:
    if len(left.inputs) > 1:
        left = _relation(left, derived)
    if len(right.inputs) > 1:
        right = _relation(right, derived)
    only = replace(right.inputs[0], arrival=True)
    if mode == "inner":
        return _inner(left, replace(right, inputs=(only,)), on)
    outputs = left.outputs
    if mode == "left":
        only, padded = _nullable(only, right)
        outputs = (*outputs, *padded)
    conditions = oriented(inlined(on, dict((*left.outputs, *right.outputs))), {i for i, _ in only.columns})
    joined = replace(only, mode=mode, on=(*right.predicates, *conditions))
    return Block((*left.inputs, joined), left.predicates, outputs)


def _inner(left: Block, right: Block, predicates: tuple[Predicate, ...]) -> Block:
    outputs = (*left.outputs, *right.outputs)
    on = inlined(predicates, dict(outputs))
    return Block((*left.inputs, *right.inputs), (*left.predicates, *right.predicates, *on), outputs)


def _one_sided(left: Block, right: Block, on: tuple[Predicate, ...], mode: Mode, derived: DerivedRelations) -> Block:
    """Flatten a LEFT, SEMI or ANTI join."""
    if len(right.inputs) > 1:
        right = _relation(right, derived)
    conditions = Conditions.of(left, right, on, mode)
    if conditions.residual and not (conditions.keyed and derived.by_matches):
        return _counted(left, right, on, mode, derived)
    if conditions.needs_one_input:
        left = _relation(left, derived)
        conditions = Conditions.of(left, right, on, mode)
    only = right.inputs[0]
    outputs = left.outputs
    if mode == "left":
        only, padded = _nullable(only, right)
        outputs = (*outputs, *padded)
    joined = replace(only, mode=mode, on=(*right.predicates, *conditions.all))
    return Block((*left.inputs, joined), left.predicates, outputs)


def _nullable(only: Input, right: Block) -> tuple[Input, tuple[tuple[str, Expression], ...]]:
    """Make the outputs of the right side of a LEFT join NULL in padding, whatever they compute."""
    if all(e.is_column for _, e in right.outputs):
        return only, right.outputs
    present = column_part(only.columns[0][0], PRESENT)
    outputs = tuple((i, e if e.is_column else _where(present, e)) for i, e in right.outputs)
    return replace(only, columns=(*only.columns, (present, PRESENT))), outputs


def _where(present: str, e: Expression) -> Expression:
    return Expression(when(column(present, pa.bool_()).node, e.node), e.text)


def _counted(left: Block, right: Block, on: tuple[Predicate, ...], mode: Mode, derived: DerivedRelations) -> Block:
    """Flatten a one-sided join on conditions other than equalities: keep the matched left rows as a relation."""
    if not all(e.is_column for _, e in left.outputs):
        left = _relation(left, derived)
    pairs = _inner(left, right, on)
    number = next(derived.numbers)
    columns = tuple((column_part(i, f"matched{number}"), dtype) for i, dtype in left.columns)
    inner = replace(pairs, outputs=left.outputs)
    matched = derive("distinct", Distinct("left rows that have a match"), (inner,), columns, derived)
    matched = replace(matched, inputs=(replace(matched.inputs[0], match_inputs=len(right.inputs)),))
    same = tuple(
        _same(column(i, e.type), theirs) for (i, e), (_, theirs) in zip(left.outputs, matched.outputs, strict=True)
    )
    ours = {i for i, _ in left.outputs}
    same += tuple(p for p in on if p.expression.columns and ours.issuperset(p.expression.columns))
    if mode != "left":
        return _one_sided(left, matched, same, mode, derived)
    unmatched = _padded(_one_sided(left, matched, same, "anti", derived), left, right)
    return derive("union", Union("LEFT JOIN", pads=True), (pairs, unmatched), (*left.columns, *right.columns), derived)


def _same(ours: Expression, theirs: Expression) -> Predicate:
    whole = Expression(compared(ours.node, NULL_SAFE, theirs.node))
    bounds = (Bound(ours, theirs), Bound(theirs, ours))
    return Predicate(whole, equality=(ours, theirs), null_safe=True, bounds=bounds)


def _padded(block: Block, left: Block, right: Block) -> Block:
    """Pad rows of one side with NULL in the columns of the other."""
    there = dict(block.outputs)
    outputs = tuple((i, there.get(i, literal(None, e.type))) for i, e in (*left.outputs, *right.outputs))
    return replace(block, outputs=outputs)


def _relation(block: Block, derived: DerivedRelations) -> Block:
    """Return a block that reads one relation, without computed columns."""
    if len(block.inputs) == 1 and all(e.is_column for _, e in block.outputs):
        return block
    return derive("rows", Union(), (block,), block.columns, derived)
