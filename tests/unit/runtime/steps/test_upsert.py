"""Upsert: new content − old content of the touched keys; the last row of a key wins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import NullKey
from rejoinder.testing import Driver
from tests.oracle.model import Change, Model, SourceSpec, bag, frozen
from tests.oracle.values import KINDS

KIND = {kind.sql: kind for kind in KINDS}


def table(order: str | None, *key: str) -> SourceSpec:
    return SourceSpec("t", "TABLE", {"k": KIND["INT"], "s": KIND["STRING"], "o": KIND["DOUBLE"]}, key, order)


CHANGES = st.lists(
    st.builds(
        lambda k, s, o, sign: Change("t", {"k": k, "s": s, "o": o}, sign),
        st.sampled_from([0, 1]),
        st.sampled_from(["", "a", "longer than eight"]),
        st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("-inf")]),
        st.sampled_from([1, 1, -1]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("key", [("k",), ("k", "s"), ("s",)])
@pytest.mark.parametrize("order", [None, "o"])
@given(epochs=st.lists(CHANGES, max_size=4))
def test_the_last_row_of_a_key_wins(key: tuple[str, ...], order: str | None, epochs: list[list[Change]]) -> None:
    spec = table(order, *key)
    driver, model = Driver(parallelism=2), Model({"t": spec})
    driver.sql(f"{spec.ddl}; CREATE VIEW v AS SELECT * FROM t")
    for changes in epochs:
        before = bag(model.rows("t"))
        for change in changes:
            (driver.insert if change.sign > 0 else driver.delete)("t", change.row)
        model.apply(changes)
        after = bag(model.rows("t"))
        changed = {frozen(row): diff for row, diff in driver.step()["v"]}
        assert changed == {row: after[row] - before[row] for row in after | before if after[row] != before[row]}


def test_a_null_in_the_key_is_refused_by_name() -> None:
    driver = Driver()
    driver.sql(f"{table(None, 'k', 's').ddl}; CREATE VIEW v AS SELECT * FROM t")
    driver.insert("t", {"k": 1, "s": "fine", "o": 1.0}, {"k": 1, "s": None, "o": 2.0})
    with pytest.raises(NullKey) as raised:
        driver.step()
    assert raised.value.fact == "NULL in the primary key of `t`"
    assert raised.value.detail == "column `s`"
    assert raised.value.values == "row {'k': 1, 's': None, 'o': 2.0}"
    assert raised.value.hint
