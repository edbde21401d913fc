"""WHY and WHY NOT on the command line: a tree, or rows in CSV and JSON; without Spark."""

from __future__ import annotations

import json

from tests.unit.cli.conftest import Rejoinder


def test_why_prints_a_tree(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "WHY priced WHERE id = 1")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("priced: id=1, item=tea, price=4.25") and "epoch 1" in lines[0]
    assert lines[1].startswith("    orders: id=1") and lines[2].startswith("    prices: item=tea, price=4.25")


def test_why_not_has_a_row_per_reason(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "WHY NOT priced WHERE item = 'Tea'", "--format", "json")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["reason"] for row in rows] == ["never arrived", "near"]
    assert "'tea' (differs in case)" in rows[1]["detail"]


def test_errors_are_plain(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("sql", shop, "WHY orders")
    assert result.exit_code == 1 and "`orders` is not a view" in result.stderr
    assert "WHY NOT needs the values" in rejoinder("sql", shop, "WHY NOT priced").stderr
