"""Views of written queries over random changes of small relations.

In `make test` several views share a flow, which costs far less than a flow each; in `make test-deep` each has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import pytest
from hypothesis import assume
from hypothesis import strategies as st

from tests.deep import IS_DEEP
from tests.oracle.generation import PARALLELISM, epochs
from tests.oracle.model import Model, SourceSpec
from tests.oracle.queries import Draw
from tests.oracle.scenario import Action, CreateView, Restart, Scenario, play

Written: TypeAlias = "str | Sequence[str]"
"""A query, or ours and DuckDB's."""

VIEWS = CreateView("", "")
"""Stands for the views of a test."""

LEAST_CHANGES = 8


def together(queries: Mapping[str, Written], size: int = 6) -> pytest.MarkDecorator:
    """Parametrize a test by `written`: the queries of one flow."""
    names = list(queries)
    starts = range(0, len(names), 1 if IS_DEEP else size)
    batches = [names[start : start + (1 if IS_DEEP else size)] for start in starts]
    ids = [batch[0] if len(batch) == 1 else f"{batch[0]} to {batch[-1]}" for batch in batches]
    return pytest.mark.parametrize("written", [[queries[name] for name in batch] for batch in batches], ids=ids)


@st.composite
def flows(draw: Draw, specs: Iterable[SourceSpec]) -> tuple[Action, ...]:
    """Epochs before and after the views are created, with a restart in between."""
    model = Model({spec.name: spec for spec in specs})
    before = [draw(epochs(model, 10)) for _ in range(draw(st.integers(0, 2)))]
    after = [draw(epochs(model, 10)) for _ in range(draw(st.integers(1, 4)))]
    # The smallest example has no rows: it would be the only one of a small budget.
    assume(sum(len(epoch.changes) for epoch in (*before, *after)) >= LEAST_CHANGES)
    return (*before, VIEWS, *after[:2], Restart(draw(PARALLELISM)), *after[2:])


def play_views(
    specs: tuple[SourceSpec, ...],
    written: Iterable[Written],
    actions: Iterable[Action],
    parallelism: int,
    tolerance: float = 0.0,
) -> None:
    """Play a flow with a view of each query."""
    pairs = [(query,) if isinstance(query, str) else tuple(query) for query in written]
    views = [CreateView(f"v{at}", *pair) for at, pair in enumerate(pairs)]
    listed = [each for action in actions for each in (views if action is VIEWS else [action])]
    play(Scenario(specs, tuple(listed), parallelism, tolerance=tolerance))
