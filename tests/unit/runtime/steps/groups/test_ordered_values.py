"""Aggregates of values in order are right after every change, and read only values near their result."""

from __future__ import annotations

import random
import statistics
from collections import Counter
from typing import Any

import pytest

from rejoinder.errors import PlanningError
from rejoinder.kernels.windows import slices as slices_module
from rejoinder.runtime.steps.groups import ordered_values
from rejoinder.testing import Driver

VALUES: tuple[Any, ...] = (None, 1, 2, 3, 5, 8, 13)


def _expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    xs = sorted(row["x"] for row in rows if row["x"] is not None)
    names = [row["s"] for row in sorted(rows, key=lambda row: row["s"]) if row["x"] == (xs[-1] if xs else 0)]
    counts = Counter(xs)
    return {
        "m": statistics.median(xs) if xs else None,
        "o": min(counts, key=lambda x: (-counts[x], x)) if xs else None,
        "b": names[0] if xs else None,
        "l": xs,
        "n": len(rows),
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_results_follow_inserts_and_deletes(seed: int) -> None:
    draw = random.Random(seed)
    flow = Driver()
    flow.sql("CREATE CHANGELOG t (g INT, x INT, s STRING)")
    flow.sql(
        "CREATE VIEW v AS SELECT g, median(x) AS m, mode(x) AS o, max_by(s, x) AS b, collect_list(x) AS l, "
        "count(*) AS n FROM t GROUP BY g"
    )
    rows: list[dict[str, Any]] = []
    for _ in range(6):
        for _ in range(draw.randint(1, 6)):
            if rows and draw.random() < 0.45:
                flow.delete("t", rows.pop(draw.randrange(len(rows))))
            else:
                rows.append({"g": draw.choice((1, None)), "x": draw.choice(VALUES), "s": draw.choice("ab")})
                flow.insert("t", rows[-1])
        flow.step()
        groups = {row["g"] for row in rows}
        expected = {g: {"g": g, **_expected([row for row in rows if row["g"] == g])} for g in groups}
        assert {row["g"]: row for row in flow.table("v")} == expected


def test_a_change_reads_only_values_near_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Driver(parallelism=1)
    flow.sql("CREATE CHANGELOG t (x INT); CREATE VIEW v AS SELECT percentile(x, 0.5) AS m FROM t")
    flow.insert("t", *({"x": x} for x in range(2001)))
    flow.step()
    read: list[int] = []
    slices = slices_module.read_slices

    def counted(*arguments: Any) -> Any:
        found = slices(*arguments)
        read.append(found.rows.num_rows)
        return found

    monkeypatch.setattr(ordered_values, "read_slices", counted)
    flow.insert("t", {"x": 5000}, {"x": 5000})
    flow.delete("t", {"x": 3})
    flow.step()
    assert flow.table("v") == [{"m": 1001.5}]
    assert read and max(read) < 20


@pytest.mark.parametrize(
    ("call", "fact"),
    [
        ("percentile(x, 2)", "is not a percentage"),
        ("percentile_cont(0.5)", "needs WITHIN GROUP"),
        ("sum(x ORDER BY x)", "takes no ORDER BY"),
        ("median(x) OVER (ORDER BY x)", "only over a whole partition"),
        ("listagg(DISTINCT x) WITHIN GROUP (ORDER BY s)", "only by themselves"),
    ],
)
def test_what_is_refused_is_named(call: str, fact: str) -> None:
    flow = Driver()
    flow.sql("CREATE STREAM t (x INT, s STRING)")
    with pytest.raises(PlanningError, match=fact):
        flow.sql(f"CREATE VIEW v AS SELECT {call} AS r FROM t")
