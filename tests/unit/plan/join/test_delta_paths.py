"""Delta paths: one per input, n(n−1) lookups, only along equalities, smallest fan-out first, ties by input order."""

from __future__ import annotations

from typing import Any

import pytest

from rejoinder.ir.identities import SourceRows
from rejoinder.plan.join.delta_paths import PathFinder
from rejoinder.plan.join.fan_out import Statistics
from rejoinder.plan.join.join_graph import join_graph
from rejoinder.plan.physical.join_steps import Lookup
from rejoinder.testing import Driver
from tests.unit.plan.queries import normal, planned

CHAIN = "SELECT a.k FROM a, b, c, d WHERE a.k = b.k AND b.y = c.k AND c.z = d.k"
STAR = "SELECT a.k FROM a, b, c, d WHERE a.k = b.k AND a.x = c.k AND a.s = d.k"
CLASS = "SELECT a.k FROM a, b, c, d WHERE a.k = b.k AND b.k = c.k AND c.k = d.k"
CYCLE = "SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.y = c.k AND c.z = a.x"


def hops(query: str, start: int, statistics: dict[str, Statistics] | None = None) -> list[str]:
    block = normal(query).block
    finder = PathFinder(block, join_graph(block), statistics or {}, {SourceRows("t"): {"id"}})
    return [hop.arrangement.id + ("" if hop.mode == "inner" else f" {hop.mode}") for hop in finder.path(start)]


@pytest.mark.parametrize("query", [CHAIN, STAR, CLASS, CYCLE])
def test_every_path_meets_every_other_input_once(query: str) -> None:
    block = normal(query).block
    graph = join_graph(block)
    for start in range(len(block.inputs)):
        path = PathFinder(block, graph, {}, {}).path(start)
        assert sorted([start, *(hop.input for hop in path)]) == list(range(len(block.inputs)))
        assert all(hop.after == (hop.input < start) for hop in path)
    lookups = [step for step in planned(query).dataflow.steps() if isinstance(step, Lookup)]
    assert len(lookups) == len(block.inputs) * (len(block.inputs) - 1)


def test_a_path_goes_on_only_along_an_equality() -> None:
    assert hops(CHAIN, 0) == ["b[k]", "c[k]", "d[k]"]
    assert hops(CHAIN, 3) == ["c[z]", "b[y]", "a[k]"]
    assert hops(STAR, 2) == ["a[x]", "b[k]", "d[k]"]


def test_equal_columns_are_one_class() -> None:
    assert hops(CLASS, 3) == ["a[k]", "b[k]", "c[k]"]
    arrangements = {a.id for a in planned(CLASS).dataflow.arrangements}
    assert arrangements == {"a[k]", "b[k]", "c[k]", "d[k]"}
    assert len(planned(CLASS).dataflow.rounds) == 2, "one key, one exchange"


def test_a_lookup_uses_every_equality_that_links() -> None:
    assert hops(CYCLE, 0) == ["b[k]", "c[k, z]"]
    two = "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.x = b.y AND a.s > b.s"
    assert hops(two, 0) == ["b[k, y]"]


def test_the_smallest_fan_out_comes_first() -> None:
    many, one = Statistics(1000, 10), Statistics(1000, 1000)
    assert hops(STAR, 0, {"b[k]": many, "c[k]": one, "d[k]": many})[0] == "c[k]"
    assert hops(STAR, 0, {"b[k]": many, "c[k]": many, "d[k]": one})[0] == "d[k]"
    keyed = "SELECT a.k FROM a, b, t WHERE a.k = b.k AND a.x = t.id"
    assert hops(keyed, 0) == ["t[id]", "b[k]"], "a primary key has one row"
    filtered = "SELECT a.k FROM a, b, c WHERE a.k = b.k AND a.x = c.k AND c.z = 1"
    assert hops(filtered, 0)[0] == "c[k]", "a filter leaves fewer"


def test_one_column_against_two_becomes_a_filter() -> None:
    block = normal("SELECT a.k FROM a JOIN b ON a.k = b.k AND a.k = b.y").block
    graph = join_graph(block)
    assert len(graph.classes) == 1
    assert [len(filters) for filters in graph.filters] == [0, 1]
    assert set(graph.filters[1][0].columns) == {"1.k", "1.y"}


def test_what_no_key_answers_is_residual() -> None:
    block = normal("SELECT a.k FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND a.x + b.y = c.z AND a.s < c.s").block
    graph = join_graph(block)
    assert len(graph.residual) == 2 and len(graph.classes) == 1


def test_inputs_that_nothing_links_meet_every_row() -> None:
    assert hops("SELECT a.k FROM a, b, c, d WHERE a.k = b.k AND c.k = d.k", 0) == ["b[k]", "c[*]", "d[k]"]


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN"])
@pytest.mark.parametrize("parent", ["s0", "s{before}"])
def test_a_hop_is_worked_out_again_only_if_an_input_that_is_linked_was_met(
    join: str, parent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan has n(n − 1) hops; the number of hops that are looked at grows with n² as well, in stars and chains."""
    calls = 0
    look = PathFinder._hop

    def counted(self: PathFinder, *arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return look(self, *arguments, **options)

    monkeypatch.setattr(PathFinder, "_hop", counted)
    inputs = 12
    driver = Driver()
    driver.sql("; ".join(f"CREATE STREAM s{i} (k{i} INT, a{i} INT)" for i in range(inputs)))
    joins = [
        f"{join} s{i} ON {parent.format(before=i - 1)}.k{0 if parent == 's0' else i - 1} = s{i}.a{i}"
        for i in range(1, inputs)
    ]
    driver.sql(f"CREATE VIEW v AS SELECT * FROM s0 {' '.join(joins)}")
    plans = 2  # that of the epochs, and that of the epoch that fills the view
    assert plans * inputs * (inputs - 1) <= calls <= 3 * plans * inputs**2
