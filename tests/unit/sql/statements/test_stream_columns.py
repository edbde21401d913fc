"""System items of a SELECT STREAM: found in the outermost SELECT list, and nowhere else."""

from __future__ import annotations

import pytest

from rejoinder.errors import InvalidSql
from rejoinder.sql.statements.stream_columns import refuse_system_items, split_system_items


@pytest.mark.parametrize(
    ("given", "planned", "system"),
    [
        ("SELECT id FROM v", "SELECT id FROM v", {}),
        (
            "SELECT a, Sys.EmitTime AS Time, b, sys.UNDO gone FROM v",
            "SELECT a, CAST(NULL AS TIMESTAMP) AS Time, b, CAST(NULL AS BOOLEAN) gone FROM v",
            {"Time": "emit_time", "gone": "undo"},
        ),
        ("SELECT *, Sys.Undo FROM v", "SELECT *, CAST(NULL AS BOOLEAN) AS `Undo` FROM v", {"Undo": "undo"}),
        ("SELECT `Sys`.`Epoch` FROM v", "SELECT CAST(NULL AS BIGINT) AS `Epoch` FROM v", {"Epoch": "epoch"}),
        (
            "SELECT CURRENT_TIMESTAMP AS t, CURRENT_TIMESTAMP() AS u FROM v",
            "SELECT CAST(NULL AS TIMESTAMP) AS t, CAST(NULL AS TIMESTAMP) AS u FROM v",
            {"t": "emit_time", "u": "emit_time"},
        ),
        (
            "WITH w AS (SELECT sys.undo FROM x) SELECT f(a, b), Sys.Undo FROM w",
            "WITH w AS (SELECT sys.undo FROM x) SELECT f(a, b), CAST(NULL AS BOOLEAN) AS `Undo` FROM w",
            {"Undo": "undo"},
        ),
        ("SELECT Sys.Undo OR a AS x FROM v", "SELECT Sys.Undo OR a AS x FROM v", {}),
        ("SELECT sys.undo FROM orders AS sys", "SELECT sys.undo FROM orders AS sys", {}),
        ("SELECT CURRENT_TIMESTAMP FROM v", "SELECT CURRENT_TIMESTAMP FROM v", {}),
    ],
)
def test_system_items_keep_their_place_and_their_name(given: str, planned: str, system: dict[str, str]) -> None:
    assert split_system_items(given) == (planned, system)


def test_two_items_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidSql, match="column `undo` appears twice"):
        split_system_items("SELECT Sys.Undo, Sys.EmitTime AS undo FROM v")


def test_rows_have_no_system_items() -> None:
    with pytest.raises(InvalidSql, match=r"`Sys.Undo` is a column of changes, and TVR shows rows"):
        refuse_system_items("SELECT a, Sys.Undo FROM v", "TVR")
    refuse_system_items("SELECT a, sys.other FROM v", "TABLE")
