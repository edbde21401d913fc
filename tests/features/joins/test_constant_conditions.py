"""ON conditions that read no column once the query is flattened, and that could fail."""

from __future__ import annotations

import pytest

from rejoinder.testing import Driver


@pytest.mark.parametrize("kind", ["LEFT", "SEMI", "ANTI"])
@pytest.mark.parametrize("constant", ["3", "4"])
def test_a_condition_on_a_constant_column(kind: str, constant: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (k INT); CREATE VIEW v AS SELECT k, CAST('3' AS TINYINT) AS c FROM a")
    driver.sql(f"CREATE VIEW w AS SELECT l.k FROM v l {kind} JOIN a r ON l.c = CAST('{constant}' AS TINYINT)")
    driver.insert("a", {"k": 1}, {"k": 2}, {"k": 3})
    rows = sum(diff for _, diff in driver.step()["w"])
    pairs = {"LEFT": 9, "SEMI": 3, "ANTI": 0} if constant == "3" else {"LEFT": 3, "SEMI": 0, "ANTI": 3}
    assert rows == pairs[kind]
