"""A state on disk, made by the test driver, and the command line on it."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rejoinder.cli.main import app
from rejoinder.testing import Driver

Rejoinder = Callable[..., Result]


@pytest.fixture
def rejoinder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rejoinder:
    """Call the command line, in an empty folder; standard input is empty unless given."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(app, list(arguments), input=stdin)

    return call


@pytest.fixture
def shop(tmp_path: Path) -> str:
    """A state with orders, prices, and the view `priced` after two epochs: the price of tea went up in the second."""
    place = str(tmp_path / "shop")
    driver = Driver(store=place, parallelism=2)
    driver.sql(
        """
        CREATE STREAM orders (id BIGINT, item STRING, at TIMESTAMP);
        CREATE TABLE prices (item STRING, price DECIMAL(10, 2), PRIMARY KEY (item));
        CREATE VIEW priced AS SELECT id, item, price, at FROM orders JOIN prices USING (item);
        """
    )
    driver.insert("orders", {"id": 1, "item": "tea", "at": "2026-01-01T10:00:00"}, {"id": 2, "item": "tea"})
    driver.insert("prices", {"item": "tea", "price": Decimal("3.50")})
    driver.step(at=1_767_261_600_000)
    driver.insert("prices", {"item": "tea", "price": Decimal("4.25")})
    driver.step(at=1_767_261_601_500)
    return place
