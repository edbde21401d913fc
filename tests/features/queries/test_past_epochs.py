"""VERSION AS OF and TIMESTAMP AS OF: a query on past epochs has the rows that it had then."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from rejoinder.errors import InvalidSql, NotCommitted, UnknownName, Unsupported
from rejoinder.testing import Driver
from tests.kit import flow

SHOP = """
    CREATE STREAM orders (id INT, item STRING);
    CREATE TABLE prices (item STRING, price INT, PRIMARY KEY (item));
    CREATE VIEW priced AS SELECT id, item, price FROM orders JOIN prices USING (item);
"""


@pytest.fixture
def shop() -> Driver:
    """Epoch 0 has order 1 at 3, epoch 1 raises the price to 4, epoch 2 adds order 2."""
    driver = flow(SHOP)
    driver.insert("orders", {"id": 1, "item": "tea"})
    driver.insert("prices", {"item": "tea", "price": 3})
    driver.step(at=datetime(2026, 1, 1, 12, 0))
    driver.insert("prices", {"item": "tea", "price": 4})
    driver.step(at=datetime(2026, 1, 1, 12, 1))
    driver.insert("orders", {"id": 2, "item": "tea"})
    driver.step(at=datetime(2026, 1, 1, 12, 2))
    return driver


def rows(driver: Driver, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in driver.sql(query)]


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_a_view_is_read_as_it_was(shop: Driver, epoch: int) -> None:
    read = shop.sql(f"SELECT * FROM priced VERSION AS OF {epoch}")
    assert read == shop.table("priced", as_of=epoch) != []


@pytest.mark.parametrize(
    "clause",
    [
        "VERSION AS OF 0",
        "FOR VERSION AS OF 0",
        "FOR SYSTEM_VERSION AS OF 0",
        "TIMESTAMP AS OF '2026-01-01 12:00:30'",
        "TIMESTAMP AS OF TIMESTAMP '2026-01-01 12:00:30'",
        "TIMESTAMP AS OF '2026-01-01 14:00:30+02:00'",
    ],
)
def test_every_spelling_reads_the_same_rows(shop: Driver, clause: str) -> None:
    assert rows(shop, f"SELECT id, price FROM priced {clause} WHERE priced.id = 1") == [(1, 3)]
    assert rows(shop, f"SELECT p.id, p.price FROM priced {clause} AS p") == [(1, 3)]
    assert rows(shop, f"SELECT p.id, p.price FROM priced {clause} p") == [(1, 3)]


def test_relations_of_a_join_have_their_own_epochs(shop: Driver) -> None:
    compared = "SELECT id, b.price, a.price AS now FROM priced VERSION AS OF {} b RIGHT JOIN priced a USING (id)"
    assert rows(shop, compared.format(0) + " ORDER BY id") == [(1, 3, 4), (2, None, 4)]
    assert rows(shop, compared.format(2) + " ORDER BY id") == [(1, 4, 4), (2, 4, 4)]
    both = "SELECT a.price, b.price AS other FROM prices VERSION AS OF 0 a CROSS JOIN prices VERSION AS OF 1 b"
    assert rows(shop, both) == [(3, 4)]
    inner = "SELECT SUM(price) AS s FROM (SELECT price FROM priced VERSION AS OF 2) WHERE price IN (SELECT price FROM "
    assert rows(shop, f"{inner} prices VERSION AS OF 1)") == [(8,)]


def test_a_source_with_files_has_only_its_present(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    driver = flow(
        f"CREATE STREAM a (k INT) USING json OPTIONS (path '{tmp_path / 'a'}'); CREATE VIEW v AS SELECT k FROM a"
    )
    for k in range(2):
        (tmp_path / "a" / f"{k}.json").write_text(f'{{"k": {k}}}')
        driver.step()
    assert rows(driver, "SELECT k FROM a VERSION AS OF 1 ORDER BY k") == [(0,), (1,)]
    with pytest.raises(Unsupported, match="`a` cannot be read as of epoch 0") as refused:
        driver.sql("SELECT k FROM a VERSION AS OF 0")
    assert "USING json" in str(refused.value) and "CREATE VIEW" in str(refused.value)


def test_what_cannot_be_read_is_refused(shop: Driver) -> None:
    with pytest.raises(NotCommitted, match="epoch 3 is not committed yet"):
        shop.sql("SELECT * FROM priced VERSION AS OF 3")
    with pytest.raises(NotCommitted, match="no epoch was committed by that time"):
        shop.sql("SELECT * FROM priced TIMESTAMP AS OF '2025-01-01'")
    with pytest.raises(InvalidSql, match="`yesterday` is not an epoch or time"):
        shop.sql("SELECT * FROM priced TIMESTAMP AS OF 'yesterday'")
    with pytest.raises(UnknownName, match="there is no relation `prized`"):
        shop.sql("SELECT * FROM prized VERSION AS OF 1")
    with pytest.raises(Unsupported, match="not supported in SELECT STREAM"):
        shop.sql("SELECT STREAM * FROM priced VERSION AS OF 1")
    with pytest.raises(Unsupported, match="not supported in a view"):
        shop.sql("CREATE VIEW past AS SELECT * FROM priced VERSION AS OF 1")


def test_an_epoch_before_the_history_is_refused() -> None:
    driver = flow("CREATE STREAM a (k INT); CREATE VIEW v AS SELECT k FROM a", history=1)
    for k in range(4):
        driver.insert("a", {"k": k})
        driver.step()
    with pytest.raises(NotCommitted, match="its history starts at epoch 2"):
        driver.sql("SELECT * FROM v VERSION AS OF 1")
    assert len(driver.sql("SELECT k FROM v VERSION AS OF 2 WHERE k > 0")) == 2
