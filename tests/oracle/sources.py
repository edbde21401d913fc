"""Two streams and a table that oracles of completeness read: in memory, from files, or from a topic."""

from __future__ import annotations

from pathlib import Path

from rejoinder.testing import Driver

TOPIC = "USING kafka OPTIONS (topic '{name}', format 'json', `kafka.bootstrap.servers` 'h:1')"


def declare(driver: Driver, columns: str, stored: str, folder: Path) -> None:
    """Create streams `s` and `t` with these columns, stored as `memory`, `topic` or files below a folder; table `p`."""
    for name in "st":
        where = {"memory": "", "topic": TOPIC.format(name=name)}.get(stored)
        if where is None:
            (folder / name).mkdir()
            where = f"USING json OPTIONS (path '{folder / name}')"
        driver.sql(f"CREATE STREAM {name} {columns} {where}")
    driver.sql("CREATE TABLE p (k INT, name STRING, PRIMARY KEY (k))")
