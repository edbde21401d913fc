"""Plays a flow of trees, and says what became of it: what was refused, what DuckDB cannot do, what was wrong."""

from __future__ import annotations

import itertools
import re
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field

import duckdb

from rejoinder.errors import PlanningError
from rejoinder.testing import Driver
from tests.oracle.model import Model
from tests.oracle.scenario import CreateView, Doubles, Player, Select, for_duckdb
from tests.oracle.trees.tree_flows import TreeFlow


@dataclass
class Outcome:
    """What happened. `failure` names a wrong answer or an exception, such that equal defects have equal names."""

    views: int = 0
    rows: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    not_in_duckdb: Counter[str] = field(default_factory=Counter)
    failure: str = ""
    report: str = ""
    view: str = ""
    cpu: float = 0.0


class TreePlayer(Player):
    """Leaves out views that are refused, and those that read them; makes views that follow each other in one batch.

    Planning takes most of the time: all views are planned anew whenever one is made.
    """

    outcome: Outcome
    left_out: set[str]

    def __post_init__(self) -> None:
        self.outcome, self.left_out = Outcome(), set()
        self.doubles = Doubles(self.scenario.tolerance)
        self.driver = Driver(parallelism=self.scenario.parallelism)
        self.model = Model({source.name: source for source in self.scenario.sources})
        self.oracle = duckdb.connect(":memory:", config={"threads": "1"})
        self.driver.sql("; ".join(source.ddl for source in self.scenario.sources))
        for source in self.scenario.sources:
            self.oracle.register(source.name, self.model.arrow(source.name))

    def play(self) -> None:
        """Play all actions; compare all views after each batch, epoch and restart."""
        for is_view, group in itertools.groupby(self.scenario.actions, lambda action: isinstance(action, CreateView)):
            if is_view:
                self.create([action for action in group if isinstance(action, CreateView)])
                self.compare_all("the batch")
                continue
            for action in group:
                if isinstance(action, Select):
                    self.ask(action)
                else:
                    self.act(action)
                    self.compare_all(f"{type(action).__name__} {self.driver.epoch}")
        self.outcome.rows = sum(sum(rows.values()) for epochs in self.past.values() for rows in epochs.values())

    def compare_all(self, action: object) -> None:
        """Every view = query = sum of changes."""
        for view in self.views:
            self.outcome.view = view
            self.compare(view, action)
        self.outcome.view = ""

    def create(self, views: list[CreateView]) -> None:
        """Make views in one batch; one by one if one is refused."""
        wanted = [view for view in views if self.can_ask(view.query, view.duckdb or "", view.name)]
        try:
            self.driver.sql("; ".join(f"CREATE VIEW {view.name} AS {view.query}" for view in wanted))
        except PlanningError:
            wanted = [view for view in wanted if self.is_created(view)]
        for view in wanted:
            self.outcome.views += 1
            self.views[view.name] = self.expected(f"SELECT * FROM {view.name}")
            self.past[view.name] = {}

    def is_created(self, view: CreateView) -> bool:
        """Whether a view can be made on its own."""
        if self.reads_left_out(view.query):
            self.left_out.add(view.name)
            return False
        try:
            self.driver.sql(f"CREATE VIEW {view.name} AS {view.query}")
        except PlanningError as error:
            self.outcome.refused[error.fact] += 1
            self.left_out.add(view.name)
            return False
        return True

    def can_ask(self, query: str, duckdb_query: str, name: str) -> bool:
        """Whether DuckDB has an answer; as a view if there is a name."""
        if self.reads_left_out(query):
            self.left_out.add(name)
            return False
        try:
            self.oracle.execute(f"CREATE TEMP VIEW {name} AS {for_duckdb(duckdb_query)}")
            self.oracle.execute(f"SELECT * FROM {name}")
        except duckdb.Error as error:
            self.outcome.not_in_duckdb[str(error).splitlines()[0][:150]] += 1
            self.left_out.add(name)
            return False
        return True

    def ask(self, select: Select) -> None:
        """Ask once, unless one of the two refuses."""
        try:
            if self.can_ask(select.query, select.duckdb or "", f"once{len(self.left_out)}_{self.outcome.views}"):
                self.act(select)
                self.outcome.views += 1
        except PlanningError as error:
            self.outcome.refused[error.fact] += 1

    def reads_left_out(self, query: str) -> bool:
        """Whether a query reads a view that does not exist."""
        return any(re.search(rf"\b{name}\b", query) for name in self.left_out)


def played(flow: TreeFlow) -> Outcome:
    """Play a flow to its end, or to its first failure."""
    start = time.process_time()
    player = TreePlayer(flow.scenario)
    try:
        player.play()
    except AssertionError as error:
        player.outcome.failure, player.outcome.report = _kind_of(str(error)), str(error)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        frame = traceback.extract_tb(error.__traceback__)[-1]
        player.outcome.failure = f"{type(error).__name__} in {frame.filename.rpartition('/')[2]} {frame.name}"
        player.outcome.report = "".join(traceback.format_exception(error))
    player.outcome.cpu = time.process_time() - start
    return player.outcome


def _kind_of(text: str) -> str:
    if "not netted" in text or "change of nothing" in text:
        return "changes are not netted"
    if text.startswith("changes of"):
        return "changes do not come to the view"
    return "wrong rows" if "missing" in text else "wrong past"
