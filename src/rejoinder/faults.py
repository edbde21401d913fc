"""The places where a process may die: named here, and nowhere else. Each has a test that kills a process there.

`REJOINDER_FAULT=point` or `point:epoch` in the environment kills the process that gets there with SIGKILL; with
`REJOINDER_FAULT_ONCE=file` only the first one that can make the file does (so that a retried task survives).
"""

from __future__ import annotations

import os
import signal

POINTS = {
    "scan": "in a task of round 0, after a split was read",
    "round": "in a bucket's task, after its runs were written and before it reported",
    "in_generation": "on the driver, when Spark's new checkpoint is written and no manifest names it",
    "after_generation": "on the driver, when a manifest names Spark's new checkpoint and no query uses it",
    "before_tasks": "on the driver, before the epoch's tasks are started",
    "after_tasks": "on the driver, when all runs are written and no manifest names them",
    "after_release": "on the driver, when what became due is written as well and no manifest names it",
    "after_commit": "on the driver, when the manifest is published and Spark does not know yet",
    "after_collection": "on the driver, when old files have been deleted",
    "before_delivery": "on the driver, when an epoch is committed and a sink does not have it",
    "in_delivery": "on the driver, when a sink holds an epoch's rows and does not show them, or not all of them",
    "after_delivery": "on the driver, when a sink has an epoch and nobody else knows",
    "in_hydration": "on the driver, when a new view's runs are written and no manifest names them",
    "after_definition": "on the driver, when a definition is committed and what nobody uses any more is still there",
}


def reach(point: str, epoch: int) -> None:
    """Die here if the environment says so."""
    wanted = os.environ.get("REJOINDER_FAULT")
    if wanted is None or wanted not in (point, f"{point}:{epoch}"):
        return
    once = os.environ.get("REJOINDER_FAULT_ONCE")
    if once is not None:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
