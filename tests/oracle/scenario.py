"""A scenario: sources, and what happens to them and to the views, step by step; played on the Driver and in DuckDB."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from rejoinder.formats.text.plain_rows import plain_rows
from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, with_payload, without
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.state.completeness import has_columns
from rejoinder.store.runs.run import read_run
from rejoinder.testing import Driver
from tests.oracle.model import Change, Model, Row, SourceSpec, bag, frozen

DUCKDB_TYPES = {
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "ARRAY<DOUBLE>": "DOUBLE[]",
    "STRUCT<a: INT, b: STRING>": "STRUCT(a INTEGER, b VARCHAR)",
}


@dataclass(frozen=True)
class CreateView:
    """Make a view; `duckdb` is the same query for the oracle, where it must be written differently."""

    name: str
    query: str
    duckdb: str | None = None


@dataclass(frozen=True)
class ReplaceView:
    """Give a view another query, with the same columns unless nothing reads it."""

    name: str
    query: str
    duckdb: str | None = None


@dataclass(frozen=True)
class RenameView:
    """Rename a view that no other view reads."""

    name: str
    new_name: str


@dataclass(frozen=True)
class AlterSource:
    """Change columns of a source that no view reads."""

    sql: str
    spec: SourceSpec

    def row(self, row: Row) -> Row:
        """A row of the past, with the new columns."""
        words = self.sql.split()
        if "RENAME" in words:
            return {words[7] if name == words[5] else name: value for name, value in row.items()}
        default = int(words[-1]) if "DEFAULT" in words else None
        return {name: row.get(name, default) for name in self.spec.columns}


@dataclass(frozen=True)
class DropView:
    """Drop a view."""

    name: str


@dataclass(frozen=True)
class Statement:
    """A statement that changes no result: CREATE INDEX, DROP INDEX."""

    sql: str


@dataclass(frozen=True)
class Select:
    """Ask a query once; `duckdb` as above."""

    query: str
    duckdb: str | None = None


@dataclass(frozen=True)
class Epoch:
    """Changes that arrive together."""

    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Restart:
    """Start again from the stored state, with another number of buckets."""

    parallelism: int


Action = CreateView | ReplaceView | AlterSource | RenameView | DropView | Statement | Select | Epoch | Restart


@dataclass(frozen=True)
class Scenario:
    """What a test plays."""

    sources: tuple[SourceSpec, ...]
    actions: tuple[Action, ...]
    parallelism: int = 1
    history: int = 10_000
    tolerance: float = 0.0
    """Relative difference up to which doubles are equal: DuckDB rounds variances while it adds."""

    def __str__(self) -> str:
        lines = [f"Scenario(parallelism={self.parallelism}, history={self.history}"]
        lines += [f"  {source.ddl}" for source in self.sources]
        lines += [f"  {action}" for action in self.actions]
        return "\n".join(lines) + ")"

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        """Let Hypothesis show it in a form that can be read."""
        printer.text(str(self))


@dataclass
class Doubles:
    """Replaces a double by the first one that was within the tolerance of it, so that rows can be compared as texts."""

    tolerance: float
    known: list[float] = field(default_factory=list)

    def row(self, row: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self._value(value) for name, value in row.items()}

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._value(each) for each in value]
        if not isinstance(value, float) or not math.isfinite(value) or not self.tolerance:
            return value
        at = bisect.bisect(self.known, value)
        for near in self.known[max(at - 1, 0) : at + 1]:
            if math.isclose(near, value, rel_tol=self.tolerance, abs_tol=self.tolerance):
                return near
        self.known.insert(at, value)
        return value


@dataclass
class Player:
    """Plays a scenario, and compares after every action."""

    scenario: Scenario
    doubles: Doubles = field(init=False)
    driver: Driver = field(init=False)
    model: Model = field(init=False)
    oracle: duckdb.DuckDBPyConnection = field(init=False)
    views: dict[str, Counter[str]] = field(default_factory=dict)
    past: dict[str, dict[int, Counter[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.doubles = Doubles(self.scenario.tolerance)
        self.driver = Driver(parallelism=self.scenario.parallelism, history=self.scenario.history)
        self.model = Model({source.name: source for source in self.scenario.sources})
        self.oracle = duckdb.connect(":memory:", config={"threads": "1"})
        for source in self.scenario.sources:
            self.driver.sql(source.ddl)
            self.oracle.register(source.name, self.model.arrow(source.name))

    def play(self) -> None:
        """Play all actions."""
        for action in self.scenario.actions:
            self.act(action)
            for view in self.views:
                self.compare(view, action)
        self.compare_past()
        self.compare_state()

    def act(self, action: Action) -> None:
        """Carry one action out in both worlds."""
        match action:
            case CreateView():
                self.oracle.execute(f"CREATE TEMP VIEW {action.name} AS {for_duckdb(action.duckdb or action.query)}")
                self.driver.sql(f"CREATE VIEW {action.name} AS {action.query}")
                self.views[action.name] = self.expected(f"SELECT * FROM {action.name}")
                self.past[action.name] = {}
            case ReplaceView():
                self.replace(action)
            case AlterSource():
                self.alter(action)
            case RenameView():
                self.driver.rename(action.name, action.new_name)
                self.oracle.execute(f"ALTER VIEW {action.name} RENAME TO {action.new_name}")
                self.views[action.new_name] = self.views.pop(action.name)
                self.past[action.new_name] = self.past.pop(action.name)
            case DropView():
                self.driver.sql(f"DROP VIEW {action.name}")
                self.oracle.execute(f"DROP VIEW {action.name}")
                del self.views[action.name], self.past[action.name]
            case Statement():
                self.driver.sql(action.sql)
            case Select():
                found = self.bag(self.driver.sql(action.query))
                wanted = self.expected(for_duckdb(action.duckdb or action.query))
                assert found == wanted, f"{action}: missing {wanted - found}, surplus {found - wanted}"
            case Restart():
                self.driver.restart(parallelism=action.parallelism)
            case Epoch():
                self.epoch(action.changes)

    def epoch(self, changes: Iterable[Change]) -> None:
        """Commit an epoch; its changes must lead from each view's last content to the present one."""
        touched = set()
        for change in changes:
            act = self.driver.insert if change.sign > 0 else self.driver.delete
            act(change.source, change.row)
            touched.add(change.source)
        self.model.apply(changes)
        for source in touched:
            self.oracle.register(source, self.model.arrow(source))
        self.add(self.driver.step())

    def replace(self, action: ReplaceView) -> None:
        """Replace a view; the difference must lead from the old content of all views to the new one."""
        self.oracle.execute(f"CREATE OR REPLACE TEMP VIEW {action.name} AS {for_duckdb(action.duckdb or action.query)}")
        columns, files = self.driver.catalog.get(action.name).schema, self.source_files()
        changes = self.driver.replace(action.name, action.query)
        after = self.source_files()
        for name in files.keys() & after.keys():
            (old, before), (new, now) = files[name], after[name]
            assert before == now or not has_columns(old, new), f"{name} was arranged again, and had all columns"
        self.add(changes)
        if self.driver.epoch < 0:
            self.views = {view: self.expected(f"SELECT * FROM {view}") for view in self.views}
        elif self.driver.catalog.get(action.name).schema != columns:
            self.views[action.name], self.past[action.name] = self.expected(f"SELECT * FROM {action.name}"), {}

    def alter(self, action: AlterSource) -> None:
        """Alter a source. No view gets other rows. Only a changelog is arranged again."""
        files, name, epoch = self.source_files(), action.spec.name, self.driver.epoch
        self.driver.sql(action.sql)
        after = self.source_files()
        for arrangement in files.keys() & after.keys():
            is_same = files[arrangement][1] == after[arrangement][1]
            assert is_same or action.spec.kind == "CHANGELOG", arrangement
        if self.driver.epoch != epoch:  # the padding of an outer join has all columns of a source
            self.add(self.driver._last_changes())
        self.model.alter(action.spec, action.row)
        self.oracle.register(name, self.model.arrow(name))

    def source_files(self) -> dict[str, tuple[Arrangement, set[str]]]:
        """The arrangements of sources, and their files."""
        version = self.driver._engine.version
        kept = [a for a in version.dataflow.arrangements if str(a.relation) in self.model.specs]
        return {a.id: (a, {ref.name for part in version.state.arrangements[a.id] for ref in part.refs}) for a in kept}

    def add(self, changes: Mapping[str, Iterable[tuple[Row, int]]]) -> None:
        """Add the changes of an epoch to the contents."""
        for view, listed in changes.items():
            changed = list(listed)
            keys = [frozen(row) for row, _ in changed]
            assert len(keys) == len(set(keys)), f"the changes of {view} are not netted: {changed}"
            assert all(diff != 0 for _, diff in changed), f"{view} reports a change of nothing: {changed}"
            for row, diff in changed:
                self.views[view][frozen(self.doubles.row(row))] += diff

    def expected(self, query: str) -> Counter[str]:
        """What DuckDB answers."""
        result = self.oracle.execute(query)
        names = [column[0] for column in result.description or ()]
        return self.bag(dict(zip(names, row, strict=True)) for row in result.fetchall())

    def bag(self, rows: Iterable[Row]) -> Counter[str]:
        """Rows as a multiset, in which doubles within the tolerance are equal."""
        return bag(map(self.doubles.row, rows))

    def compare(self, view: str, action: object) -> None:
        """View = query on the inputs = sum of all changes."""
        found, wanted = self.bag(self.driver.table(view)), self.expected(f"SELECT * FROM {view}")
        missing, surplus = wanted - found, found - wanted
        assert not missing and not surplus, f"{view} after {action}: missing {missing}, surplus {surplus}"
        summed = Counter({key: count for key, count in self.views[view].items() if count})
        assert summed == wanted, f"changes of {view} after {action} come to {summed} instead of {wanted}"
        self.past[view][self.driver.epoch] = wanted

    def compare_past(self) -> None:
        """Every epoch that is kept can still be read as it was."""
        for view, epochs in self.past.items():
            for epoch, wanted in epochs.items():
                if epoch >= max(0, self.driver.epoch - self.scenario.history):
                    assert self.bag(self.driver.table(view, as_of=epoch)) == wanted, f"{view} as of epoch {epoch}"

    def compare_state(self) -> None:
        """Every arrangement of a source holds exactly its rows, and every view can be explained.

        A lean one holds the columns that views read, of the rows whose key can match. If it has had all rows before,
        rows whose key matches nothing may remain.
        """
        engine = self.driver._engine
        assert set(engine.version.state.arrangements) == {a.id for a in engine.dataflow.arrangements}
        for arrangement in engine.dataflow.arrangements:
            relation = str(arrangement.relation)
            if relation in self.model.specs:
                key, names = arrangement.key, arrangement.schema.names
                parts = [part for number, part in enumerate(key.parts) if number not in key.null_safe]
                compared = [p.columns[0] for p in parts if p.is_column and arrangement.is_lean]
                held: Counter[str] = Counter()
                for ref in (ref for part in engine.version.state.arrangements[arrangement.id] for ref in part.refs):
                    run = with_payload(read_run(self.driver._store, ref), arrangement.schema.names)
                    for row, diff in zip(
                        plain_rows(without(run, [HASH, DIFF]), is_ordered=True), diffs(run), strict=True
                    ):
                        if all(row[name] is not None for name in compared):
                            held[frozen(row)] += int(diff)
                net = Counter({row: count for row, count in held.items() if count})
                listed = self.model.rows(relation)
                if not arrangement.is_lean:
                    assert net == bag(listed), arrangement.id
                    continue
                matching = [row for row in listed if all(row[name] is not None for name in compared)]
                rows = bag({name: row[name] for name in names} for row in matching)
                assert len(compared) < len(parts) or net == rows, arrangement.id
        for view in self.views:
            assert self.driver.sql(f"EXPLAIN {view}").startswith(f"view {view} (")


def play(scenario: Scenario) -> Player:
    """Play a scenario from start to end."""
    player = Player(scenario)
    player.play()
    return player


def for_duckdb(query: str) -> str:
    """A query with DuckDB's names of types; times have no zone there."""
    for ours, theirs in DUCKDB_TYPES.items():
        query = query.replace(ours, theirs)
    return query


def rows(source: str, *listed: Row) -> Epoch:
    """An epoch that inserts rows into one source: for tests written by hand."""
    return Epoch(tuple(Change(source, row) for row in listed))
