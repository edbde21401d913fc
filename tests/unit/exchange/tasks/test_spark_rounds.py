"""Rounds as Spark runs them: what a worker does besides."""

from __future__ import annotations

import gc

import pytest

from rejoinder.exchange.tasks import spark_rounds


def test_what_a_later_task_brings_is_out_of_the_collectors_sight_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rounds, "_tasks", 0)
    brought: list[list[list[None]]] = []
    frozen = []
    try:
        for _ in range(9):
            spark_rounds._freeze_garbage()
            frozen.append(gc.get_freeze_count())
            brought.append([[] for _ in range(1000)])
    finally:
        gc.unfreeze()
    assert all(frozen[task] >= frozen[before] + 1000 for before, task in ((0, 1), (1, 3), (3, 7))), frozen
    assert frozen[2] == frozen[1] and frozen[4] == frozen[5] == frozen[6] == frozen[3], frozen
