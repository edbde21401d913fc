"""Identities: one text for each relation and column, and different texts for different ones."""

from __future__ import annotations

import pytest

from rejoinder.ir.identities import (
    UNIT,
    ColumnId,
    DerivedRows,
    OperationInput,
    PendingRows,
    RelationId,
    SideOutput,
    SourceRows,
    StoredRows,
    ViewRows,
    all_rows,
    column_id,
    is_on_time,
    owner_of,
    side_output,
    source_of,
)

GROUPS = DerivedRows("aggregate", "0a1b")
TEXTS: list[tuple[RelationId, str]] = [
    (SourceRows("orders"), "orders"),
    (SourceRows("orders", start=7), "orders#from@7"),
    (SourceRows("orders", time=-9), "orders#since@-9"),
    (SourceRows("orders", on_time=True), "orders#on-time"),
    (SourceRows("orders", 7, 9, on_time=True, late=3), "orders#from@7#since@9#on-time@3"),
    (ViewRows("v"), "v"),
    (SideOutput("v", "late"), "v.late"),
    (SideOutput("orders", "rejected"), "orders.rejected"),
    (SideOutput("orders", "changes"), "orders.changes"),
    (GROUPS, "aggregate#0a1b"),
    (OperationInput(GROUPS), "aggregate#0a1b/input"),
    (StoredRows(OperationInput(GROUPS)), "aggregate#0a1b/input/stored"),
    (PendingRows("v"), "v/pending"),
    (PendingRows("v", 1), "v/pending1"),
    (UNIT, "unit#"),
]


@pytest.mark.parametrize(("relation", "text"), TEXTS, ids=[text for _, text in TEXTS])
def test_a_relation_has_one_text(relation: RelationId, text: str) -> None:
    assert str(relation) == text


def test_only_rows_of_a_source_name_it() -> None:
    late = SourceRows("orders", on_time=True, late=3)
    assert source_of(late) == "orders" and all_rows(late) == SourceRows("orders") and is_on_time(late)
    odd = ViewRows("orders#on-time")  # a name that looks like a variant is the name of a view
    assert source_of(odd) == "orders#on-time" and all_rows(odd) == odd and not is_on_time(odd)


def test_users_name_side_outputs_in_any_case() -> None:
    assert side_output("V.LATE") == SideOutput("V", "late") and owner_of("V.LATE") == "V"
    assert side_output("orders.rejected") == SideOutput("orders", "rejected")
    assert [side_output(name) for name in ("late", ".late", "orders", "orders.changes", "a.b")] == [None] * 5


def test_a_column_is_read_back_from_an_expression() -> None:
    assert column_id("12.a.b/start") == ColumnId(12, "a.b/start") and str(column_id("0.x")) == "0.x"
