"""Fault points: all places at which a test can kill a process. Each has a test that does.

`REJOINDER_FAULT=point` or `point:epoch` in the environment kills the process that reaches the point with SIGKILL. With
`REJOINDER_FAULT_ONCE=file` only the first process that creates the file is killed, so that a retried task survives.
"""

from __future__ import annotations

import os
import signal

POINTS = {
    "scan": "in a task of round 0, after a split was read",
    "round": "in a bucket's task, after its runs were written and before it reported",
    "in_generation": "on the driver, when Spark's new checkpoint is written and no manifest names it",
    "after_generation": "on the driver, when a manifest names Spark's new checkpoint and no query uses it",
    "before_tasks": "on the driver, before the tasks of the epoch are started",
    "after_tasks": "on the driver, when all runs are written and no manifest names them",
    "after_emission": "on the driver, when the changes that became due are written as well and no manifest names them",
    "after_commit": "on the driver, when the manifest is published and Spark has not committed the batch",
    "after_collection": "on the driver, when old files have been deleted",
    "before_delivery": "on the driver, when an epoch is committed and not delivered to a sink",
    "in_delivery": "on the driver, when a sink has the rows of an epoch and shows none, or not all of them",
    "after_delivery": "on the driver, when a sink has an epoch and the state does not record it yet",
    "in_hydration": "on the driver, when the runs of a new view are written and no manifest names them",
    "in_difference": "on the driver, when the difference of a replaced view is written and no manifest names it",
    "after_definition": "on the driver, when a definition is committed and unused files are not deleted yet",
}


def reach(point: str, epoch: int) -> None:
    """Kill this process if the environment names this point."""
    fault = os.environ.get("REJOINDER_FAULT")
    if fault is None or fault not in (point, f"{point}:{epoch}"):
        return
    once = os.environ.get("REJOINDER_FAULT_ONCE")
    if once is not None:
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
    os.kill(os.getpid(), signal.SIGKILL)
