"""Padding: which expressions are NULL in rows without a match."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.ir.identities import SourceRows
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.plan.blocks.normal_form import Input
from rejoinder.plan.blocks.padding import is_null_on_padding

INPUT = Input(SourceRows("b"), (("0.y", "y"), ("0.s", "s")), pa.schema([("y", pa.int32()), ("s", pa.string())]), "left")


@pytest.mark.parametrize(
    ("sql", "columns", "expected"),
    [
        ('"0.y"', ("0.y",), True),
        ('("0.y" + 1)', ("0.y",), True),
        ('CASE WHEN "0.s" = \'a\' THEN "0.y" END', ("0.s", "0.y"), True),
        ('COALESCE("0.y", 1)', ("0.y",), False),
        ('CASE WHEN "0.s" IS NULL THEN 0 ELSE "0.y" END', ("0.s", "0.y"), False),
        ("CASE WHEN \"0.s\" IS NULL THEN error('no') ELSE 0 END", ("0.s",), False),
    ],
)
def test_a_row_of_nulls_is_reported(sql: str, columns: tuple[str, ...], expected: bool) -> None:
    assert is_null_on_padding(text_expression(sql, pa.int32(), columns), INPUT) is expected
