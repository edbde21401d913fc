"""JSON_TUPLE: several fields of a JSON text as columns, in LATERAL VIEW and in SELECT."""

from __future__ import annotations

import pytest

from rejoinder.errors import InvalidSql
from rejoinder.testing import Driver

# What Spark's parser reads: the last value of a name that is not NULL, single quotes, what stands before a rest.
_TEXTS = {
    '{"a": 1, "b": {"c": "x"}}': ("1", '{"c":"x"}'),
    '{"a": null, "a": 2, "b": {"x": 1}, "b": {"c": 5}}': ("2", '{"c":5}'),
    "{'a': 'single', 'b': [1.50, 2e-7]}": ("single", "[1.5,2.0E-7]"),
    '{"a": 1} trailing': ("1", None),
    '{"a": 1': (None, None),
    '[{"a": 1}]': (None, None),
    '{"a": "tab\there", "b": []}': ("tab\there", "[]"),
}


def test_fields_are_columns() -> None:
    driver = Driver(parallelism=1)
    driver.sql("CREATE CHANGELOG t (js STRING)")
    driver.sql("CREATE VIEW v AS SELECT js, x, y FROM t LATERAL VIEW json_tuple(js, 'a', 'b') f AS x, y")
    driver.sql("CREATE VIEW w AS SELECT js, json_tuple(js, 'a', 'b') FROM t")
    driver.insert("t", *({"js": text} for text in _TEXTS))
    driver.step()
    assert {row["js"]: (row["x"], row["y"]) for row in driver.table("v")} == _TEXTS
    assert {row["js"]: (row["c0"], row["c1"]) for row in driver.table("w")} == _TEXTS


@pytest.mark.parametrize("call", ["json_tuple(js)", "json_tuple(js, js)"])
def test_names_are_literals(call: str) -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (js STRING)")
    with pytest.raises(InvalidSql, match="literal names of fields"):
        driver.sql(f"CREATE VIEW v AS SELECT {call} FROM t")
