"""What the tests of the page share: a flow with every kind of node, and a server on a free port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from rejoinder.web.access import Access, access_of
from rejoinder.web.server import serving

START = datetime(2026, 1, 1)
HOSTILE = "<script>alert(1)</script>"
HOSTILE_NAME = "<script>alert(1)<svg onload=alert(2)>"
RTL = "\u202eevil\u05d0"


def shop(folder: Path, epochs: int = 6) -> Driver:
    """A flow with a join, an aggregate, a filter, a view that emits when final, late rows, and a sink."""
    driver = Driver(store=folder / "state")
    driver.sql(
        f"""
        CREATE STREAM orders (id BIGINT, customer BIGINT, amount BIGINT, note STRING, ts TIMESTAMP,
          WATERMARK ts DELAY OF INTERVAL 10 SECONDS);
        CREATE TABLE customers (id BIGINT, country STRING, PRIMARY KEY (id));
        CREATE VIEW sales AS
          SELECT o.id, o.amount, o.note, c.country FROM orders o JOIN customers c ON o.customer = c.id;
        CREATE VIEW revenue AS
          SELECT c.country, SUM(o.amount) AS total
          FROM orders o JOIN customers c ON o.customer = c.id GROUP BY c.country;
        CREATE VIEW per_minute AS SELECT window, COUNT(*) AS n FROM orders GROUP BY WINDOW(ts, '1 minute') EMIT FINAL;
        CREATE VIEW `{HOSTILE_NAME}` AS SELECT id, note FROM orders WHERE amount > 2;
        CREATE SINK files FROM revenue USING parquet OPTIONS (path '{folder / "out"}');
        """
    )
    driver.insert("customers", {"id": 1, "country": "UK"})
    driver.insert("customers", {"id": 2, "country": RTL})
    for epoch in range(epochs):
        step(driver, epoch)
    return driver


def step(driver: Driver, epoch: int) -> None:
    """Commit one epoch of two orders; from the fourth on, one of them is late."""
    time = START + timedelta(seconds=40 * epoch)
    late = time - timedelta(minutes=2) if epoch > 3 else time
    driver.insert("orders", {"id": 2 * epoch, "customer": 1, "amount": epoch, "note": HOSTILE, "ts": time})
    driver.insert("orders", {"id": 2 * epoch + 1, "customer": 2, "amount": 1, "note": "x" * 10_000, "ts": late})
    driver.step(time)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(folder: Path) -> Iterator[Access]:
    """The page of the flow in a folder, on this machine."""
    access = access_of(None, free_port(), None)
    with serving(open_store(str(folder / "state")), access):
        yield access
