"""A query that is asked afterwards says, change by change, what a view says that was there all the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.budget import budget
from tests.oracle.generation import PARALLELISM, epochs
from tests.oracle.model import Model
from tests.oracle.queries import Draw
from tests.oracle.scenario import Action, CreateView, Restart, Scenario, play
from tests.oracle.test_written_queries import SPECS

QUERIES = {
    "filter": "SELECT k, s FROM a WHERE x > 0",
    "inner": "SELECT a.k, b.y, c.z FROM a JOIN b ON a.k = b.k JOIN c ON b.y = c.k",
    "left": "SELECT c.k, c.p, a.s FROM c LEFT JOIN a ON c.z = a.k",
    "full with a residual": "SELECT a.k, a.x, b.y, b.f FROM a FULL JOIN b ON a.k = b.k AND a.x < b.y",
    "anti": "SELECT a.* FROM a ANTI JOIN c ON a.k = c.k",
    "grouped": "SELECT c.z, COUNT(*) AS n, MAX(a.x) AS x FROM a JOIN c ON a.k = c.k GROUP BY c.z",
    "distinct": "SELECT DISTINCT s, d FROM a",
    "union": "SELECT k FROM a UNION ALL SELECT y FROM b",
    "whole table": "SELECT * FROM c",
}


@st.composite
def flows(draw: Draw) -> tuple[Action, ...]:
    """Epochs, with a restart among them."""
    model = Model({spec.name: spec for spec in SPECS})
    played = [draw(epochs(model, 8)) for _ in range(draw(st.integers(1, 5)))]
    return (*played[:2], Restart(draw(PARALLELISM)), *played[2:])


@pytest.mark.parametrize("form", QUERIES)
@budget(2)
@given(actions=flows(), parallelism=PARALLELISM)
def test_the_past_of_a_query_is_that_of_a_view(form: str, actions: tuple[Action, ...], parallelism: int) -> None:
    view = CreateView("v", QUERIES[form])
    driver = play(Scenario(SPECS, (view, *actions), parallelism)).driver
    asked = driver.sql(f"SELECT STREAM * FROM ({QUERIES[form]}) q")
    assert list(map(repr, asked)) == list(map(repr, driver.stream("v")))
    assert repr(driver.sql(f"SELECT TVR * FROM ({QUERIES[form]}) q")) == repr(driver.tvr("v"))
    assert repr(driver.sql("SELECT STREAM v.* FROM v")) == repr(driver.stream("v")), "the same from its changelog"
