"""The targets that a run of the workloads can judge, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any

SPARK_SHARE = 1 / 5
PEER_SHARES = {"W2": 1 / 2, "W3": 2 / 3}
SMALL, LARGE = 1_000_000, 5_000_000


def cpu_seconds(results: Iterable[dict[str, Any]]) -> dict[tuple[str, str], float]:
    """The median CPU seconds of each engine and workload, right answers only."""
    runs: dict[tuple[str, str], list[float]] = {}
    for line in results:
        if line["ok"]:
            runs.setdefault((line["engine"], line["workload"]), []).append(line["cpu_s"])
    return {key: median(values) for key, values in runs.items()}


def judge(results: list[dict[str, Any]], n: int) -> list[str]:
    """One line per target that the engines and the size of this run allow to judge.

    >>> seconds = {"rejoinder": 10, "spark": 100}
    >>> judge([{"engine": e, "workload": "W3", "ok": True, "cpu_s": s} for e, s in seconds.items()], 1_000_000)
    ['target W3 CPU s at most 0.20 x spark, measured 0.10 x (10.0 / 100.0), met']
    """
    seconds = cpu_seconds(results)
    verdicts = []
    for workload, share in PEER_SHARES.items():
        ours = seconds.get(("rejoinder", workload))
        if ours is None:
            continue
        peers = {engine: s for (engine, w), s in seconds.items() if w == workload and engine != "rejoinder"}
        if n == SMALL and "spark" in peers:
            verdicts.append(_verdict(workload, SPARK_SHARE, "spark", ours, peers["spark"]))
        if n >= LARGE and peers:
            best = min(peers, key=lambda engine: peers[engine])
            verdicts.append(_verdict(workload, share, f"the best peer here ({best})", ours, peers[best]))
    return verdicts


def _verdict(workload: str, share: float, peer: str, ours: float, theirs: float) -> str:
    ratio = ours / theirs
    return (
        f"target {workload} CPU s at most {share:.2f} x {peer}, measured {ratio:.2f} x ({ours:.1f} / {theirs:.1f}), "
        + ("met" if ratio <= share else "NOT met")
    )
