"""Which function runs which step of a plan: one file of this package for each step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rejoinder.plan.physical.join_steps import Coverage, Lookup, MatchStatus, Presence
from rejoinder.plan.physical.steps import (
    Aggregate,
    Arrange,
    AtMostOne,
    Check,
    Clip,
    Current,
    Derive,
    Distinct,
    Emit,
    Enrich,
    Hold,
    IntersectExcept,
    OnTime,
    Record,
    Send,
    Session,
    Step,
    Sweep,
    Upsert,
    Validity,
)
from rejoinder.plan.physical.window_steps import FirstRows, PartialFirstRows, Window
from rejoinder.runtime.steps.arrange import arrange
from rejoinder.runtime.steps.at_most_one import at_most_one
from rejoinder.runtime.steps.check import check
from rejoinder.runtime.steps.clip import clip
from rejoinder.runtime.steps.derive import derive
from rejoinder.runtime.steps.distinct import distinct
from rejoinder.runtime.steps.emit import emit
from rejoinder.runtime.steps.enrich import enrich
from rejoinder.runtime.steps.groups.aggregate import aggregate
from rejoinder.runtime.steps.intersect_except import intersect_except
from rejoinder.runtime.steps.lookup import lookup
from rejoinder.runtime.steps.outer.coverage import coverage
from rejoinder.runtime.steps.outer.match_status import match_status
from rejoinder.runtime.steps.outer.presence import presence
from rejoinder.runtime.steps.record import record
from rejoinder.runtime.steps.send import send
from rejoinder.runtime.steps.time.current import current
from rejoinder.runtime.steps.time.hold import hold
from rejoinder.runtime.steps.time.on_time import on_time
from rejoinder.runtime.steps.time.session import session
from rejoinder.runtime.steps.time.sweep import sweep
from rejoinder.runtime.steps.time.validity import validity
from rejoinder.runtime.steps.upsert import upsert
from rejoinder.runtime.steps.windows.first_rows import first_rows
from rejoinder.runtime.steps.windows.partial_first_rows import partial_first_rows
from rejoinder.runtime.steps.windows.window import window
from rejoinder.runtime.task import Task

STEP_FUNCTIONS: dict[type[Step], Callable[[Task, Any], None]] = {
    Aggregate: aggregate,
    Arrange: arrange,
    AtMostOne: at_most_one,
    Check: check,
    Clip: clip,
    Derive: derive,
    Distinct: distinct,
    Emit: emit,
    Enrich: enrich,
    FirstRows: first_rows,
    Hold: hold,
    IntersectExcept: intersect_except,
    MatchStatus: match_status,
    Lookup: lookup,
    OnTime: on_time,
    PartialFirstRows: partial_first_rows,
    Presence: presence,
    Record: record,
    Coverage: coverage,
    Current: current,
    Send: send,
    Session: session,
    Sweep: sweep,
    Upsert: upsert,
    Validity: validity,
    Window: window,
}
