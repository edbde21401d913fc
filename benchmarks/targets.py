"""The targets that a run of the workloads can judge, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.nexmark.workloads import WORKLOADS as NEXMARK

SMALL, LARGE = 1_000_000, 5_000_000
NEXMARK_EVENTS = 2_000_000
FLINKS = ("flink", "flink-mini-batch")
QUARTERS = 3
"""On so many queries of Nexmark, a quarter of Flink's CPU is the target."""
BEST = "the best peer here"
REFRESH_SCALE, REFRESH_RATE = 1.0, "0.001"
REFRESH_TARGETS = (("spark", 0.1, 18), ("duckdb", 1.0, 12))  # peer, share of its CPU, number of queries


@dataclass(frozen=True)
class Target:
    """Rejoinder's CPU seconds on a workload are at most `share` of those of a peer, from one size on or at it."""

    workload: str
    share: float
    peer: str
    sizes: range
    peer_workload: str = ""


_AT_SMALL, _FROM_LARGE, _FROM_NEXMARK = (
    range(SMALL, SMALL + 1),
    range(LARGE, 1 << 62),
    range(NEXMARK_EVENTS, 1 << 62),
)
TARGETS = (
    *(
        target
        for workload in ("W1", "W1L")
        for target in (
            Target(workload, 1 / 4, "spark", _AT_SMALL),
            Target(workload, 1 / 10, "spark-rocksdb", _AT_SMALL),
            Target(workload, 1 / 2, "flink", _AT_SMALL),
            Target(workload, 1 / 2, "kafka-streams", _AT_SMALL),
            Target(workload, 1 / 4, BEST, _FROM_LARGE),
        )
    ),
    Target("W1", 1, "pathway", _AT_SMALL),
    Target("W1L", 1, "pathway-all", _AT_SMALL),
    Target("W2", 1 / 5, "spark", _AT_SMALL),
    Target("W2", 1 / 2, BEST, _FROM_LARGE),
    Target("W3", 1 / 5, "spark", _AT_SMALL),
    Target("W3", 2 / 3, BEST, _FROM_LARGE),
    Target("W4", 1 / 3, "flink-cold", _AT_SMALL),
    Target("W4", 1 / 3, "flink", _AT_SMALL),
    Target("W4", 1, "pathway", _AT_SMALL),
    Target("W2L", 3 / 2, "rejoinder", range(SMALL, 1 << 62), "W2"),
    Target("W2F", 3 / 2, "rejoinder", range(SMALL, 1 << 62), "W2"),
    *(Target(workload, 1 / 2, peer, _FROM_NEXMARK) for workload in NEXMARK for peer in FLINKS),
)


def cpu_seconds(results: Iterable[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """The median CPU seconds of each engine and workload, right answers only.

    A peer that was stopped counts with what it had used until then, which is less than it needs.
    """
    runs: dict[tuple[str, str], list[float]] = {}
    for line in results:
        if line["ok"] or ("stopped" in line and line["engine"] != "rejoinder"):
            runs.setdefault((line["engine"], line["workload"]), []).append(line["cpu_s"])
    return {key: median(values) for key, values in runs.items()}


def judge(results: list[dict[str, Any]], n: int) -> list[str]:
    """One line per target that the engines and the size of this run allow to judge.

    >>> seconds = {"rejoinder": 10, "spark": 100}
    >>> judge([{"engine": e, "workload": "W3", "ok": True, "cpu_s": s} for e, s in seconds.items()], 1_000_000)
    ['target W3 CPU s at most 0.20 x spark, measured 0.10 x (10.0 / 100.0), met']
    >>> seconds = {"W2": 10, "W2L": 16}
    >>> judge([{"engine": "rejoinder", "workload": w, "ok": True, "cpu_s": s} for w, s in seconds.items()], 1_000_000)
    ['target W2L CPU s at most 1.50 x rejoinder on W2, measured 1.60 x (16.0 / 10.0), NOT met']
    """
    seconds = cpu_seconds(results)
    verdicts = []
    for target in TARGETS:
        ours = seconds.get(("rejoinder", target.workload))
        if ours is None or n not in target.sizes:
            continue
        workload = target.peer_workload or target.workload
        others = {e: s for (e, w), s in seconds.items() if w == workload and (e, w) != ("rejoinder", target.workload)}
        name = target.peer
        if name == BEST and others:
            best = min(others, key=lambda engine: others[engine])
            verdicts.append(_verdict(target, f"{BEST} ({best})", ours, others[best]))
        elif name in others:
            shown = f"{name} on {workload}" if target.peer_workload else name
            verdicts.append(_verdict(target, shown, ours, others[name]))
    return verdicts + ([] if n not in _FROM_NEXMARK else _quarters(seconds))


def _quarters(seconds: dict[tuple[str, str], float]) -> list[str]:
    """How many queries of Nexmark cost at most a quarter of Flink, in each of its two settings."""
    verdicts = []
    for peer in FLINKS:
        both = [w for w in NEXMARK if ("rejoinder", w) in seconds and (peer, w) in seconds]
        met = [workload for workload in both if seconds["rejoinder", workload] <= seconds[peer, workload] / 4]
        if len(both) >= QUARTERS:
            found = f"{len(met)} of {len(both)}" + (f" ({' '.join(met)})" if met else "")
            verdicts.append(
                f"target Nexmark CPU s at most 0.25 x {peer} on {QUARTERS} queries, measured on {found}, "
                + ("met" if len(met) >= QUARTERS else "NOT met")
            )
    return verdicts


def judge_refresh(queries: Mapping[str, Mapping[str, Any]], scale: float) -> list[str]:
    """Count the queries of TPC-H whose refresh costs at most a share of computing them again, for every rate.

    The targets are for one rate and one scale; the other counts are printed beside them.

    >>> seconds = {"alone_cpu_s": {"0.001": 0.4, "0.01": 4}, "shared_cpu_s": {"0.001": 0.2, "0.01": 2}}
    >>> line = seconds | {"spark_cpu_s": 3.0, "duckdb_cpu_s": 0.1, "ok": True}
    >>> for verdict in judge_refresh({"q1": line, "q2": line}, 1.0):
    ...     print(verdict)
    target refresh at 0.001 in one flow at most 0.1 x spark on 18 queries, measured 2 (alone 0), NOT met; missed: none
    refresh at 0.01 in one flow at most 0.1 x spark: 0 of 2 (alone 0); missed: q1 q2
    target refresh at 0.001 in one flow at most 1 x duckdb on 12 queries, measured 0 (alone 0), NOT met; missed: q1 q2
    refresh at 0.01 in one flow at most 1 x duckdb: 0 of 2 (alone 0); missed: q1 q2
    """
    verdicts = []
    for peer, share, least in REFRESH_TARGETS:
        if any(line[f"{peer}_cpu_s"] is None for line in queries.values()):
            continue
        for rate in next(iter(queries.values()))["shared_cpu_s"]:
            shared, alone = (_reached(queries, which, rate, peer, share) for which in ("shared", "alone"))
            missed = f"missed: {' '.join(name for name in queries if name not in shared) or 'none'}"
            what = f"refresh at {rate} in one flow at most {share:g} x {peer}"
            if (scale, rate) == (REFRESH_SCALE, REFRESH_RATE):
                verdict = "met" if len(shared) >= least else "NOT met"
                counts = f"measured {len(shared)} (alone {len(alone)}), {verdict}"
                verdicts.append(f"target {what} on {least} queries, {counts}; {missed}")
            else:
                verdicts.append(f"{what}: {len(shared)} of {len(queries)} (alone {len(alone)}); {missed}")
    return verdicts


def _reached(queries: Mapping[str, Mapping[str, Any]], which: str, rate: str, peer: str, share: float) -> list[str]:
    """The queries with right answers whose refresh costs at most a share of a peer's CPU."""
    return [
        name
        for name, line in queries.items()
        if line["ok"] and line[f"{which}_cpu_s"][rate] <= share * line[f"{peer}_cpu_s"]
    ]


def _verdict(target: Target, peer: str, ours: float, theirs: float) -> str:
    ratio = ours / theirs
    return (
        f"target {target.workload} CPU s at most {target.share:.2f} x {peer}, "
        f"measured {ratio:.2f} x ({ours:.1f} / {theirs:.1f}), " + ("met" if ratio <= target.share else "NOT met")
    )
