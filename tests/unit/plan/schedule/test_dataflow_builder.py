"""The dataflow: what is sent where and when, what is shared, and what a hydration computes."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.ir.catalog import Index
from rejoinder.ir.identities import SourceRows, ViewRows
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import ArrangementScan, Dataflow
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.plan.physical.steps import Arrange, Distinct, Emit, Send, Upsert
from rejoinder.plan.planning import Plan
from rejoinder.plan.schedule.hydration import Hydration
from rejoinder.plan.schedule.retained_relations import Holdings
from tests.unit.plan.queries import planned

JOIN = "SELECT a.x, b.y FROM a JOIN b ON a.k = b.k"
THREE = "SELECT a.x FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.k"


def ids(dataflow: Dataflow) -> set[str]:
    return {arrangement.id for arrangement in dataflow.arrangements}


def test_a_two_way_join_takes_one_exchange() -> None:
    dataflow = planned(JOIN).dataflow
    assert len(dataflow.rounds) == 2
    assert len(dataflow.channels) == 2, "arrangements and paths share the channel of their key"
    assert ids(dataflow) == {"a[k]", "b[k]"}


def test_a_three_way_join_takes_two_exchanges() -> None:
    assert len(planned(THREE).dataflow.rounds) == 3


def test_what_is_sent_arrives_in_a_later_round() -> None:
    for dataflow in (planned(JOIN).dataflow, planned(THREE, JOIN, "SELECT DISTINCT x FROM a").dataflow):
        for number, steps in enumerate(dataflow.rounds):
            for step in steps:
                if isinstance(step, Send):
                    assert step.channel.round > number
        last = len(dataflow.rounds) - 1
        assert all(channel.round <= last for channel in dataflow.channels.values())


def test_a_lookup_that_sees_this_epoch_runs_after_the_arrangement() -> None:
    for queries in ((THREE,), (THREE, "SELECT t.v FROM t JOIN a ON t.id = a.x JOIN b ON a.k = b.k")):
        dataflow = planned(*queries).dataflow
        kept = {
            step.arrangement.id: (number, at)
            for number, steps in enumerate(dataflow.rounds)
            for at, step in enumerate(steps)
            if isinstance(step, Arrange)
        }
        for number, steps in enumerate(dataflow.rounds):
            for at, step in enumerate(steps):
                if isinstance(step, Lookup) and step.after:
                    assert kept[step.arrangement.id] < (number, at)


def test_two_views_share_arrangements_and_channels() -> None:
    one, two = planned(JOIN).dataflow, planned(JOIN, "SELECT b.s FROM b, a WHERE b.k = a.k AND a.x = 1").dataflow
    assert ids(one) == ids(two) and len(one.channels) == len(two.channels)
    assert two.users["a[k]"] == (ViewRows("v0"), ViewRows("v1"))


def test_equal_distincts_are_computed_once() -> None:
    inner = "SELECT DISTINCT x FROM a"
    dataflow = planned(inner, f"SELECT q.x FROM ({inner}) q JOIN b ON q.x = b.k").dataflow
    assert sum(isinstance(step, Distinct) for step in dataflow.steps()) == 1


def test_a_table_is_arranged_by_its_key_once() -> None:
    dataflow = planned("SELECT a.x, t.v FROM a JOIN t ON a.k = t.id").dataflow
    assert ids(dataflow) == {"a[k]", "t[id]"}
    assert sum(isinstance(step, Upsert) for step in dataflow.steps()) == 1
    assert len(dataflow.rounds) == 2, "a table that is looked up by its key needs no second exchange"


def test_only_changelogs_are_checked_and_each_once() -> None:
    dataflow = planned(THREE, "SELECT a.k FROM a JOIN t ON a.x = t.id").dataflow
    checked = [str(step.arrangement.relation) for step in dataflow.steps() if isinstance(step, Arrange) and step.check]
    assert sorted(checked) == ["a", "b", "c"]


def test_unread_sources_are_not_scanned() -> None:
    assert set(planned(JOIN).dataflow.scans) == {"a", "b"}
    indexed = planned(indexes=(Index("i", "c", ("z",)),)).dataflow
    assert set(indexed.scans) == {"c"} and ids(indexed) == {"c[z]"}


def hydration(plan: Plan, complete: Iterable[Arrangement], views: set[str]) -> Dataflow:
    there = tuple(complete)
    return Hydration(plan.program, Holdings(there, {a.id for a in there}, {a.id for a in there}, views=views)).build()


def test_a_hydration_reads_only_what_something_new_needs() -> None:
    plan = planned(JOIN, THREE)
    old = [a for a in plan.dataflow.arrangements if a.id in ("a[k]", "b[k]")]
    dataflow = hydration(plan, old, {"v0"})
    assert all(isinstance(scan, ArrangementScan) for scan in dataflow.scans.values())
    assert {step.arrangement.id for step in dataflow.steps() if isinstance(step, Arrange)} == {"b[y]"}
    assert {step.view for step in dataflow.steps() if isinstance(step, Emit)} == {"v1"}
    everything = hydration(plan, plan.dataflow.arrangements, {"v0", "v1"})
    assert everything.scans == {} and not any(everything.rounds)


def test_a_hydration_takes_rows_from_an_arrangement_that_goes_away() -> None:
    before, after = planned(JOIN), planned("SELECT a.x FROM a JOIN c ON a.x = c.z")
    dataflow = hydration(after, before.dataflow.arrangements, set())
    scans = {name: scan.arrangement.id for name, scan in dataflow.scans.items() if isinstance(scan, ArrangementScan)}
    assert scans == {"a": "a[k]"}


def test_arrangements_differ_exactly_if_their_keys_do() -> None:
    texts = set()
    for key in ("a.x", "a.x + 1", "a.x + 2", "CASE WHEN a.x = 1 THEN 2 ELSE a.s END", "COALESCE(a.x, a.s)"):
        dataflow = planned(f"SELECT a.k FROM a JOIN b ON {key} = b.k").dataflow
        texts.add(next(a.id for a in dataflow.arrangements if a.relation == SourceRows("a")))
    assert len(texts) == 5 and "a[x]" in texts
    assert all(len(text) < 80 for text in texts)
