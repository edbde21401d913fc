"""Orders that views impose, joins without an equality, limits of state, of epochs and of memory, on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rejoinder.errors import LimitReached
from rejoinder.host.caps import Caps, use_caps
from tests.spark.conftest import OpenFlow
from tests.spark.rows import bag, view


def test_a_limit_stops_the_flow_before_its_commit_and_is_raised(open_flow: OpenFlow, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    flow = open_flow(max_state_rows=60)
    flow.sql(
        f"CREATE MAPPING l (i BIGINT, t BIGINT) TYPE File OPTIONS ('path' = '{tmp_path}/in', 'format' = 'json');"
        "CREATE STREAM r (i BIGINT, t BIGINT);"
        "CREATE VIEW ordered AS SELECT * FROM TABLE(IMPOSE_ORDER(TABLE l, DESCRIPTOR(t), 5))"
    )
    within = "a.t BETWEEN b.t - 2 AND b.t"
    right = "IMPOSE_ORDER(TABLE r, DESCRIPTOR(t), 5)"
    joined = flow.view("v", f"SELECT a.i, b.i AS o FROM ordered a JOIN {right} b ON {within}", max_state_rows=70)
    flow.view("p", "SELECT l.i, r.i AS o FROM l JOIN r ON l.i + 37 < r.i", max_state_bytes=10_000_000)
    assert joined.name == "v"

    def write(name: int, times: range) -> None:
        lines = "".join(f'{{"i": {t}, "t": {t}}}\n' for t in times)
        (tmp_path / "in" / f"{name}.json").write_text(lines, encoding="utf-8")

    write(0, range(40))
    flow.sql("ALTER VIEW p SET OPTIONS (max_state_rows 'none')")
    flow.insert("r", [{"i": t, "t": t} for t in range(20)])
    flow.run()
    write(1, range(40, 80))
    flow.insert("r", [{"i": t, "t": t} for t in range(20, 40)])
    with pytest.raises(
        LimitReached, match=r"`v` would keep \d+ rows of state, most of them of `l`, and the limit is 70"
    ):
        flow.run()
    assert flow.epoch == 0
    flow = open_flow(max_state_rows=60)
    flow.sql("ALTER VIEW v SET OPTIONS (max_state_rows '200')")
    flow.run()
    assert flow.epoch == 1
    pairs = [(a, b) for a in range(80) for b in range(40) if b - 2 <= a <= b]
    assert view(flow, "v") == bag(pairs)
    assert view(flow, "p") == bag([(a, b) for a in range(80) for b in range(40) if a + 37 < b])


@pytest.fixture
def usual_caps() -> Iterator[None]:
    yield
    use_caps(Caps())


@pytest.mark.usefixtures("usual_caps")
def test_rows_of_an_epoch_are_counted_over_all_tasks(open_flow: OpenFlow, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.json").write_text("".join(f'{{"i": {i}}}\n' for i in range(30)))
    flow = open_flow(caps={"max_epoch_rows": 100})
    flow.sql(f"CREATE STREAM t (i INT) USING json OPTIONS (path '{tmp_path}/in'); CREATE VIEW v AS SELECT i FROM t")
    with pytest.raises(LimitReached, match=r"epoch 0 reads too many rows") as stopped:
        flow.run()
    assert "`max_epoch_rows` is 100" in str(stopped.value.detail) and flow.epoch == -1
    flow = open_flow(caps={"max_epoch_rows": 120})
    flow.run()
    assert len(view(flow, "v")) == 30 and flow.epoch == 0


@pytest.mark.usefixtures("usual_caps")
def test_a_task_that_needs_too_much_memory_is_named_and_not_killed(open_flow: OpenFlow) -> None:
    flow = open_flow(caps={"max_memory": 400 << 20})
    flow.sql("CREATE STREAM t (s STRING, n INT); CREATE VIEW v AS SELECT length(repeat(s, n)) AS n FROM t")
    flow.insert("t", [{"s": "x", "n": 20_000_000 + number} for number in range(60)])
    with pytest.raises(LimitReached, match="needs more memory than a task may take") as stopped:
        flow.run()
    assert "`max_memory` is 419,430,400" in str(stopped.value.detail) and flow.epoch == -1
    flow = open_flow(caps={"max_memory": 6 << 30})
    flow.run()
    assert len(view(flow, "v")) == 60
