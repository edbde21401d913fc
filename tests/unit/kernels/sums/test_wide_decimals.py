"""Wide decimals equal Python's exact fractions, rounded as Spark rounds."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest

from rejoinder.errors import EvaluationError
from rejoinder.kernels.sums.wide_decimals import calculate
from rejoinder.testing import Driver


def _half_up(value: Fraction) -> int:
    size = int(abs(value) + Fraction(1, 2))
    return -size if value < 0 else size


def _expected(sign: str, a: Fraction, b: Fraction, scale: int) -> int | None:
    if sign in "/%" and b == 0:
        return None
    if sign == "%":
        exact = abs(a) % abs(b) * (-1 if a < 0 else 1)
        whole = str(int(abs(a) / abs(b)))
        return None if whole[39:].strip("0") else _half_up(exact * 10**scale)
    exact = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if sign == "/" else a}[sign]
    result = _half_up(exact * 10**scale)
    return result if abs(result) < 10**38 else None


def _decimals(values: list[int], scale: int) -> pa.ChunkedArray:
    words = b"".join(value.to_bytes(16, "little", signed=True) for value in values)
    return pa.chunked_array([pa.Array.from_buffers(pa.decimal128(38, scale), len(values), [None, pa.py_buffer(words)])])


@pytest.mark.parametrize("sign", list("+-*/%"))
def test_results_are_exact_and_rounded_half_up(sign: str) -> None:
    draw = random.Random(sign)
    for scales in [(0, 38, 6), (10, 18, 9), (37, 38, 36), (2, 4, 6), (38, 38, 38), (0, 0, 0)]:
        left, right = (
            [draw.randint(-(10**38) + 1, 10**38 - 1) // 10 ** draw.choice([0, 1, 19, 36]) for _ in range(50)]
            for _ in "ab"
        )
        right[:2] = [0, 1]
        scale = max(scales[:2]) if sign == "%" else scales[2]
        constants = (pa.chunked_array([pa.array([value] * 50)]) for value in (sign, scale))
        first, second = constants
        result = calculate(first, _decimals(left, scales[0]), _decimals(right, scales[1]), second)
        found = [None if value is None else int(value) for value in result.to_pylist()]
        expected = [
            _expected(sign, Fraction(a, 10 ** scales[0]), Fraction(b, 10 ** scales[1]), scale)
            for a, b in zip(left, right, strict=True)
        ]
        assert found == expected, scales


def test_types_are_cut_as_in_spark_and_a_result_that_does_not_fit_fails() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM t (a DECIMAL(38,10), b DECIMAL(38,18), c DECIMAL(15,2))")
    driver.sql("CREATE VIEW v AS SELECT a + b AS s, a * b AS p, a / b AS q, a % b AS r, c * c * c AS c FROM t")
    kinds = {field.name: str(field.type) for field in driver.catalog.get("v").schema}
    assert kinds == {
        "s": "decimal128(38, 9)",
        "p": "decimal128(38, 6)",
        "q": "decimal128(38, 6)",
        "r": "decimal128(38, 18)",
        "c": "decimal128(38, 6)",
    }
    driver.sql(
        "CREATE VIEW share AS SELECT 100.00 * SUM(CASE WHEN c > 3 THEN c * (1 - c) ELSE 0 END) / SUM(c * (1 - c)) AS x "
        "FROM t"
    )
    assert str(driver.catalog.get("share").schema.field("x").type) == "decimal128(38, 6)"
    driver.insert(
        "t",
        {"a": None, "b": Decimal(1), "c": Decimal("2.50")},
        {"a": Decimal("1.5"), "b": Decimal("0.25"), "c": Decimal("5.55")},
    )
    changes = driver.step()
    assert [row["p"] for row, _ in changes["v"] if row["p"] is not None] == [Decimal("0.375000")]
    assert [str(row["x"]) for row, diff in changes["share"] if diff > 0] == ["87.070080"]
    driver.insert("t", {"a": Decimal("1" * 28), "b": Decimal("9" * 20), "c": Decimal(1)})
    with pytest.raises(EvaluationError):
        driver.step()
