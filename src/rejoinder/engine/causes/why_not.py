"""WHY NOT: the first step at which an expected row of a view fails, with values.

The logical tree is followed from the result to its inputs. Where the input of a node has rows that could make the
expected row, and the node has none, the node is the reason. Otherwise its input is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import singledispatchmethod
from typing import Any

import pyarrow as pa

from rejoinder.engine.causes.absent_input import absent_from_source, late_row, no_longer_there
from rejoinder.engine.causes.arrivals import like_rows
from rejoinder.engine.causes.expected_row import expected_row, row_text
from rejoinder.engine.causes.near_keys import near_keys
from rejoinder.engine.causes.tree_rows import TreeRows, scans_of
from rejoinder.engine.causes.why import LIMIT, asked_view
from rejoinder.engine.causes.witnesses import branches_of, keyed_input, result_of, witnesses
from rejoinder.engine.engine import Engine
from rejoinder.engine.status.explain_statements import show
from rejoinder.engine.status.pending_changes import pending_views
from rejoinder.errors import NotCommitted, Unsupported
from rejoinder.formats.text.plain_rows import Rows
from rejoinder.ir.catalog import View
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.logical import (
    Aggregate,
    Arrival,
    Distinct,
    Filter,
    Join,
    Node,
    Predicate,
    Project,
    Scan,
    SetOperation,
    WindowCalls,
)
from rejoinder.kernels.duckdb.evaluate import project, select_rows
from rejoinder.plan.unnest.tree_columns import columns_of, inputs_of

COLUMNS = ("level", "relation", "reason", "detail")
SHOWN = 3


@dataclass(frozen=True)
class Reason:
    """A reason why a row is absent. Reasons of the next level say why a row that it misses is absent."""

    level: int
    relation: str
    reason: str
    """One of: present, retracted, pending, filtered, out of the first rows, null key, no match, condition, excluded,
    other value, late, rejected, expired, absent, never arrived; and near, for similar values."""
    detail: str


class Reasons(Rows):
    """The answer of WHY NOT: one row per reason; as text, one line each, indented by level."""

    def __init__(self, reasons: Iterable[Reason]) -> None:
        self.note = None
        self.reasons = list(reasons)
        super().__init__([asdict(reason) for reason in self.reasons], COLUMNS)

    def __str__(self) -> str:
        first = min((each.level for each in self.reasons), default=0)
        lines = [(each.level - first, f"{each.relation}: {each.reason}: {each.detail}") for each in self.reasons]
        return "\n".join(f"{'    ' * level}{line}" for level, line in lines)


def why_not(engine: Engine, view: str, where: str | None) -> Reasons:
    """Return why a view has no row with the values of a condition. Raises a `PlanningError`."""
    with engine.lock:  # a commit may collect the files of the version before it
        if engine.version.manifest is None:
            raise NotCommitted("nothing is committed yet", hint="run the flow first")
        inputs = TreeRows(engine, engine.epoch)
        asked = asked_view(inputs, view)
        if where is None:
            raise Unsupported(
                "WHY NOT needs the values of the expected row",
                detail=f"WHY NOT {asked.name}",
                hint=f"WHY NOT {asked.name} WHERE column = value AND …",
            )
        search = _Search(inputs)
        search.view(asked, expected_row(asked, where, engine.version.catalog.time_zone), 0)
        return Reasons(search.reasons)


class _Search:
    """Follows the trees of views towards their inputs, and collects reasons."""

    def __init__(self, inputs: TreeRows) -> None:
        self.reasons: list[Reason] = []
        self._inputs = inputs
        self._views: list[str] = []
        self._relation = ""

    def view(self, view: View, wanted: pa.Table, level: int) -> None:
        """Add why a view has no wanted row."""
        engine = self._inputs.engine
        self._relation = view.name
        present = _equal(self._inputs.table(view.name), wanted)
        if present.num_rows:
            self._add(level, "present", f"the view has the row {row_text(present)}")
            return
        gone = no_longer_there(engine, view, wanted)
        if gone is not None:
            self._add(level, "retracted", gone)
        self._views.append(view.name)
        tree = result_of(self._inputs.bound(view))
        computed = self._rows(tree, wanted)
        if computed.num_rows == 0:
            self.absent(tree, wanted, level)
        else:
            self._add(level, *self._held_back(view, tree, computed))
        self._views.pop()
        self._relation = view.name

    def _held_back(self, view: View, tree: Node, computed: pa.Table) -> tuple[str, str]:
        """Return why a row that follows from the inputs is not in the view: an input was late, or it is pending."""
        engine = self._inputs.engine
        for found in witnesses(self._inputs, tree, computed):
            for number in range(min(found.rows.num_rows, LIMIT)):
                late = late_row(engine, view.name, str(found.scan.relation), found.rows.slice(number, 1))
                if late is not None:
                    return "late", late
        if view.name in pending_views(engine):
            (status,) = [row for row in show(engine, "VIEWS") if row["view"] == view.name]
            blocked = f"; blocked by {status['blocked_by']}" if status["blocked_by"] else ""
            return "pending", f"the row is computed, and waits {pending_views(engine)[view.name]}{blocked}"
        return "expired", f"the row {row_text(computed)} follows from rows that are kept, but were not in time for it"

    # -- one method per node: it has no wanted row -----------------------------------------------------------------

    @singledispatchmethod
    def absent(self, node: Node, wanted: pa.Table, level: int) -> None:
        """Add why a node has no wanted row."""
        (tree,) = inputs_of(node)
        inner = _within(tree, wanted)
        if self._rows(tree, inner).num_rows == 0:
            self.absent(tree, inner, level)
            return
        actual = self._rows(node, _without(wanted, inner))
        detail = "; ".join(map(str, _texts(actual))) or "the row is left out here"
        self._add(level, "other value", f"{detail}, not {row_text(wanted)}")

    @absent.register
    def _(self, node: Scan, wanted: pa.Table, level: int) -> None:
        named = wanted.rename_columns([dict(node.columns)[i] for i in wanted.column_names])
        relation = self._inputs.relation(str(node.relation))
        if isinstance(relation, View):
            self.view(relation, named, level + 1)
            return
        before, self._relation = self._relation, relation.name
        self._add(level + 1, *absent_from_source(self._inputs.engine, self._views[-1], relation.name, named))
        near = near_keys(named, self._inputs.table(relation.name))
        if near:
            self._add(level + 1, "near", near)
        self._relation = before

    @absent.register
    def _(self, node: Filter, wanted: pa.Table, level: int) -> None:
        rows = self._rows(node.input, wanted)
        if rows.num_rows == 0:
            self.absent(node.input, wanted, level)
            return
        self._fails(node.predicates, rows, level, "out of the first rows" if _ranks(node) else "filtered")

    @absent.register
    def _(self, node: Project, wanted: pa.Table, level: int) -> None:
        outputs = dict(node.outputs)
        plain = [i for i in wanted.column_names if outputs[i].is_column]
        inner = wanted.select(plain).rename_columns([outputs[i].columns[0] for i in plain])
        rows = self._rows(node.input, inner)
        if rows.num_rows == 0:
            self.absent(node.input, inner, level)
            return
        computed = [(i, outputs[i]) for i in wanted.column_names if i not in plain]
        values = project(rows.slice(0, SHOWN), [(i, e) for i, e in computed])
        shown = "; ".join(_texts(values))
        self._add(level, "other value", f"{shown}, not {row_text(wanted.select([i for i, _ in computed]))}")

    @absent.register
    def _(self, node: Aggregate, wanted: pa.Table, level: int) -> None:
        keys = [i for i, _ in node.keys if i in wanted.column_names]
        tree, inner = keyed_input(node), wanted.select(keys)
        if self._rows(tree, inner).num_rows == 0:
            self.absent(tree, inner, level)
            return
        actual = self._rows(node, inner)
        self._add(level, "other value", f"the group has {'; '.join(_texts(actual))}, not {row_text(wanted)}")

    @absent.register
    def _(self, node: Distinct, wanted: pa.Table, level: int) -> None:
        self.absent(node.input, wanted, level)

    @absent.register
    def _(self, node: SetOperation, wanted: pa.Table, level: int) -> None:
        branches = branches_of(node)
        has = [self._rows(branch, wanted).num_rows > 0 for branch in branches]
        if node.operation.startswith("EXCEPT") and has[0]:
            other = scans_of(branches[1])[0].relation
            self._add(level, "excluded", f"{node.operation} removes the row: `{other}` has it too")
            return
        for branch, found in zip(branches, has, strict=True):
            if not found and (not node.operation.startswith("EXCEPT") or branch is branches[0]):
                self.absent(branch, wanted, level)

    @absent.register
    def _(self, node: Arrival, wanted: pa.Table, level: int) -> None:
        left = _within(node.left, wanted)
        if self._rows(node.left, left).num_rows == 0:
            self.absent(node.left, left, level)
            return
        scan = scans_of(node.right)[0]
        self._add(
            level, "no match", f"`{scan.relation}` had no matching row when the row arrived; later rows do not count"
        )

    @absent.register
    def _(self, node: Join, wanted: pa.Table, level: int) -> None:
        sides = [_within(side, wanted) for side in (node.left, node.right)]
        left = self._rows(node.left, sides[0])
        if left.num_rows == 0 and (node.kind != "full" or sides[0].num_columns):
            self.absent(node.left, sides[0], level)
            return
        right = scans_of(node.right)[0].relation
        if node.kind == "anti":
            pairs = self._rows(Join(node.left, node.right, node.predicates), sides[0])
            matched = _texts(pairs.select([*columns_of(node.right)]).slice(0, 1))
            self._add(level, "excluded", f"`{right}` has a matching row: {matched[0] if matched else 'unknown'}")
            return
        if node.kind != "semi" and sides[1].num_columns and self._rows(node.right, sides[1]).num_rows == 0:
            self.absent(node.right, sides[1], level)
            return
        equal = tuple(p for p in node.predicates if p.equality is not None)
        both = pa.table({**_columns(sides[0]), **(_columns(sides[1]) if node.kind != "semi" else {})})
        pairs = self._rows(Join(node.left, node.right, equal), both)
        if pairs.num_rows:
            others = tuple(p for p in node.predicates if p.equality is None)
            self._fails(others, pairs, level, "condition")
            return
        self._no_match(node, left, equal, level)

    def _no_match(self, node: Join, left: pa.Table, equal: tuple[Predicate, ...], level: int) -> None:
        own, other = columns_of(node.left), scans_of(node.right)[0].relation
        keys: list[tuple[Expression, Expression]] = []
        for predicate in equal:
            assert predicate.equality is not None, "these predicates are equalities"
            first, second = predicate.equality
            keys.append((first, second) if set(first.columns) <= own.keys() else (second, first))
        values = project(left, [(f"k{number}", key) for number, (key, _) in enumerate(keys)])
        for number, (key, _) in enumerate(keys):
            nulls = values.column(f"k{number}").null_count
            if nulls == values.num_rows and not equal[number].null_safe:
                row = row_text(left.select([i for i in left.column_names if i in key.columns] or left.column_names))
                self._add(
                    level, "null key", f"{key.text or row} is NULL, which equals no key of `{other}` ({row_text(left)})"
                )
                return
        texts = [f"{theirs.text} = {_first(values, n)}" for n, (_, theirs) in enumerate(keys)]
        self._add(level, "no match", f"no row of `{other}` has {' and '.join(texts)}; it is needed by {row_text(left)}")
        if all(theirs.is_column for _, theirs in keys):
            self.absent(node.right, values.slice(0, 1).rename_columns([theirs.columns[0] for _, theirs in keys]), level)
            return
        wanted = values.slice(0, 1).rename_columns([f"right.{n}" for n in range(len(keys))])
        tree = Project(node.right, tuple((f"right.{n}", theirs) for n, (_, theirs) in enumerate(keys)))
        near = near_keys(wanted, self._rows(tree, wanted.select([])))
        if near:
            self._add(level + 1, "near", near)

    def _fails(self, predicates: tuple[Predicate, ...], rows: pa.Table, level: int, reason: str) -> None:
        """Add the first condition that no row fulfils, of rows that fulfil those before it."""
        for predicate in predicates:
            passing = select_rows(rows, predicate.expression)
            if passing.num_rows == 0:
                read = rows.select(list(dict.fromkeys(predicate.expression.columns))).slice(0, SHOWN)
                text = predicate.expression.text or "a condition"
                self._add(level, reason, f"{text} is not true with {'; '.join(_texts(read))} ({_own_text(rows)})")
                return
            rows = passing

    def _rows(self, node: Node, wanted: pa.Table) -> pa.Table:
        return self._inputs.rows(node, [*columns_of(node)], wanted)

    def _add(self, level: int, reason: str, detail: str) -> None:
        self.reasons.append(Reason(level, self._relation, reason, detail))


def _within(node: Node, wanted: pa.Table) -> pa.Table:
    columns = columns_of(node)
    return wanted.select([i for i in wanted.column_names if i in columns])


def _without(wanted: pa.Table, inner: pa.Table) -> pa.Table:
    return wanted.select([i for i in wanted.column_names if i in inner.column_names])


def _columns(table: pa.Table) -> dict[str, Any]:
    return dict(zip(table.column_names, table.columns, strict=True))


def _texts(rows: pa.Table) -> list[str]:
    return [row_text(rows.slice(number, 1)) for number in range(min(rows.num_rows, SHOWN))]


def _own_text(rows: pa.Table) -> str:
    """Return the first row as text, with the columns of the first input only."""
    number = rows.column_names[0].partition(".")[0]
    return row_text(rows.select([i for i in rows.column_names if i.partition(".")[0] == number]))


def _first(values: pa.Table, number: int) -> str:
    return row_text(values.select([f"k{number}"])).partition(" = ")[2]


def _equal(rows: pa.Table, wanted: pa.Table) -> pa.Table:
    return like_rows(rows, wanted)


def _ranks(node: Filter) -> bool:
    """Return whether a filter limits the ranks of window functions."""
    tree: Node = node.input
    while isinstance(tree, Project):
        tree = tree.input
    return isinstance(tree, WindowCalls)
