"""The page of constructs is what its examples give."""

from __future__ import annotations

from pathlib import Path

from rejoinder.sql.statements.construct_list import markdown


def test_the_page_of_constructs_is_up_to_date() -> None:
    page = Path(__file__).parents[4] / "docs" / "constructs.md"
    assert page.read_text(encoding="utf-8") == markdown(), (
        "python -m rejoinder.sql.statements.construct_list rewrites it"
    )
