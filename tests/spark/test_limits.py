"""Orders that views impose, joins without an equality and limits of state, on Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import LimitReached
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
