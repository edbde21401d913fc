"""The examples that need no Spark are run as they stand, and print what they should."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "clicks_and_impressions": """\
ad   reader  seconds
───  ──────  ───────
tea  ada         240
tea  eve          29
ad   clicks
───  ──────
tea       2
ad   reader  clicked
───  ──────  ───────────────────
cup  ada     NULL
tea  ada     NULL
tea  bob     NULL
tea  eve     2026-01-01 10:00:59
""",
    "customers_and_accounts": """\
id  name  country  balance  code  currency
──  ────  ───────  ───────  ────  ────────
 1  Ada   uk            70  UK    GBP
 2  Bea   pt          NULL  PT    EUR
 3  NULL  NULL           5  NULL  NULL
− {'country': 'pt', 'customers': 1, 'total': None}
− {'country': 'uk', 'customers': 1, 'total': 70}
+ {'country': 'pt', 'customers': 2, 'total': 70}
""",
    "functions_of_your_own": """\
id  total
──  ─────
 1   4.92
 2  12.92
 3   8.40
word   orders
─────  ──────
black       1
cup         1
green       1
tea         3
country  spread
───────  ──────
PT         6.50
UK         0.00
country  spread
───────  ──────
PT         0.00
UK         0.00
""",
    "page_views_by_day": """\
title  day         views  week_ago
─────  ──────────  ─────  ────────
Home   2026-01-01      2      NULL
Home   2026-01-08      1         2
Home   2026-01-08      3         2
reader  views
──────  ─────
ada         1
bob         3
eve         3
""",
}


@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_should(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))  # as when it is run from a shell
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert capsys.readouterr().out == PRINTED[name]


def test_every_example_is_run_somewhere() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*PRINTED, "orders_with_rates", "shop_functions"}
