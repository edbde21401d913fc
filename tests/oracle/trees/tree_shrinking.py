"""Makes a failing flow smaller while it fails alike: fewer actions, changes and sources, smaller trees."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

from tests.oracle.scenario import CreateView, Epoch, Restart, Select
from tests.oracle.trees.tree_flows import TreeFlow, without
from tests.oracle.trees.tree_play import played


def shrunk(flow: TreeFlow, seconds: float = 120) -> TreeFlow:
    """The smallest flow that was found in this time."""
    end = time.monotonic() + seconds
    outcome = played(flow)
    wanted = outcome.failure
    alone = _only(flow, outcome.view)
    if outcome.view and played(alone).failure == wanted:
        flow = alone
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for other in _smaller(flow):
            if time.monotonic() > end:
                return flow
            if played(other).failure == wanted:
                flow, is_smaller = other, True
                break
    return flow


def _only(flow: TreeFlow, view: str) -> TreeFlow:
    """A flow with one view, and those that it reads."""
    kept, found = {view}, ""
    for action in reversed(flow.actions):
        if isinstance(action, CreateView) and (action.name in kept or re.search(rf"\b{action.name}\b", found)):
            kept.add(action.name)
            found += flow.trees[action.name].text()
    actions = (
        action
        for action in flow.actions
        if not isinstance(action, CreateView | Select) or (isinstance(action, CreateView) and action.name in kept)
    )
    return replace(flow, actions=tuple(actions))


def _smaller(flow: TreeFlow) -> Iterator[TreeFlow]:
    for place in range(len(flow.actions)):
        yield without(flow, place)
    yield from _fewer_changes(flow)
    if flow.parallelism > 1:
        yield replace(flow, parallelism=1)
    for action in flow.actions:
        if not isinstance(action, CreateView | Select):
            continue
        name = action.name if isinstance(action, CreateView) else action.query
        for tree in flow.trees[name].shrunk():
            yield replace(flow, trees={**flow.trees, name: tree})
    for spec in flow.specs:
        yield replace(flow, specs=tuple(other for other in flow.specs if other != spec))


def _fewer_changes(flow: TreeFlow) -> Iterator[TreeFlow]:
    for place, action in enumerate(flow.actions):
        if isinstance(action, Restart) and action.parallelism != flow.parallelism:
            yield _with(flow, place, Restart(flow.parallelism))
        if isinstance(action, Epoch):
            size = len(action.changes)
            for step in sorted({max(1, size // 2), max(1, size // 4), 1}, reverse=True):
                for first in range(0, size, step):
                    yield _with(flow, place, Epoch(action.changes[:first] + action.changes[first + step :]))


def _with(flow: TreeFlow, place: int, action: Epoch | Restart) -> TreeFlow:
    return replace(flow, actions=(*flow.actions[:place], action, *flow.actions[place + 1 :]))
