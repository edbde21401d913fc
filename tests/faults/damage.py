"""A rich state on disk, ways to damage a file of it, and what must hold afterwards."""

from __future__ import annotations

import shutil
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq

from rejoinder.engine.version import named_files
from rejoinder.errors import Corrupt, RejoinderError
from rejoinder.store.commits.manifest import Manifest
from rejoinder.testing import Driver

START_MS = 1_800_000_000_000
EPOCHS = 9
SETUP = """
CREATE STREAM IF NOT EXISTS orders (id BIGINT, item STRING, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE);
CREATE TABLE IF NOT EXISTS prices (item STRING, price BIGINT, PRIMARY KEY (item));
CREATE STREAM IF NOT EXISTS clicks (id BIGINT) USING csv OPTIONS (path '{folder}/in', maxFilesPerTrigger '3');
CREATE VIEW IF NOT EXISTS priced AS SELECT o.id, o.item, p.price FROM orders o JOIN prices p ON o.item = p.item;
CREATE VIEW IF NOT EXISTS hourly AS
  SELECT TUMBLE(ts, INTERVAL 1 HOUR) AS w, COUNT(*) AS n FROM orders GROUP BY TUMBLE(ts, INTERVAL 1 HOUR) EMIT FINAL;
CREATE VIEW IF NOT EXISTS slow AS SELECT item, COUNT(*) AS n FROM orders GROUP BY item EMIT EVERY INTERVAL 1 HOUR;
CREATE VIEW IF NOT EXISTS clicked AS SELECT COUNT(*) AS n, SUM(id) AS total FROM clicks
"""
NAMED = ("runs", "epochs", "positions", "sinks")
VIEWS = ("priced", "hourly", "slow", "clicked")


class Flow:
    """The flow in a folder: its state, its input, the folder of a sink, and what a function was given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.called: list[tuple[int, Counter[tuple[Any, ...]]]] = []
        self.driver = Driver(store=folder / "state", parallelism=2)
        self.driver.sql(SETUP.format(folder=folder))
        self.driver.sink("priced", "parquet", path=folder / "out")
        self.driver.foreach_epoch("priced", self._call, name="called")

    def _call(self, epoch: int, changes: Any) -> None:
        rows = Counter((row["id"], row["item"], row["price"], row["_diff"]) for row in changes.to_pylist())
        self.called.append((epoch, rows))

    def step(self, number: int) -> None:
        """An epoch whose content depends on its number only."""
        draw = Random(number)
        for row in range(4):
            ts = f"2026-01-01 {number // 2:02d}:{draw.randrange(60):02d}:00"
            self.driver.insert("orders", {"id": 10 * number + row, "item": draw.choice("abc"), "ts": ts})
        self.driver.insert("prices", {"item": draw.choice("abc"), "price": draw.randrange(9)})
        self.driver.step(at=START_MS + number * 900_000)

    def everything(self) -> list[Any]:
        """All that a reader can see: rows now and of the past, changes with their times, sinks."""
        driver = self.driver
        result: list[Any] = [driver.epoch]
        for view in VIEWS:
            result += [_bag(driver.table(view)), _bag(driver.stream(view)), _bag(driver.table(view, as_of=2))]
        result.append(_bag(driver.sql("SELECT item, COUNT(*) AS n FROM orders GROUP BY item")))
        result.append(_bag(driver.sql("SELECT COUNT(*) AS n FROM clicks")))
        return result

    def delivered(self) -> Counter[tuple[Any, ...]]:
        """What the files of the sink add up to."""
        net: Counter[tuple[Any, ...]] = Counter()
        for file in (self.folder / "out").glob("*.parquet"):
            for row in pq.read_table(file).to_pylist():
                net[row["id"], row["item"], row["price"]] += row["_diff"]
        return Counter({row: copies for row, copies in net.items() if copies})

    def in_view(self) -> Counter[tuple[Any, ...]]:
        """The rows of the view that the sinks follow."""
        return Counter((row["id"], row["item"], row["price"]) for row in self.driver.table("priced"))


def _bag(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(map(str, rows))


def build(folder: Path, copies: Path | None = None) -> None:
    """Make the state, with some restarts. `copies` gets a copy of it after each epoch."""
    (folder / "in").mkdir(parents=True)
    for number in range(3 * EPOCHS):
        (folder / f"in/{number:03}.csv").write_text(f"{number}\n")
    for number in range(EPOCHS):
        Flow(folder).step(number)
        if copies is not None:
            shutil.copytree(folder, copies / str(number))


def flip(path: Path, draw: Random) -> None:
    """Change one bit."""
    data = bytearray(path.read_bytes())
    if data:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def cut(path: Path, draw: Random) -> None:
    """Lose the end."""
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data))] if data else b"")


def empty(path: Path, draw: Random) -> None:
    """Lose all."""
    path.write_bytes(b"")


def delete(path: Path, draw: Random) -> None:
    """Lose the file."""
    path.unlink()


def make_folder(path: Path, draw: Random) -> None:
    """Put a folder in its place."""
    path.unlink()
    path.mkdir()


def replace(path: Path, draw: Random) -> None:
    """Put another file of its kind in its place: another version of it, or its neighbour."""
    others = sorted(other for other in path.parent.iterdir() if other.is_file() and other != path)
    if others:
        shutil.copy(draw.choice(others), path)


def add(path: Path, draw: Random) -> None:
    """Put something behind it."""
    path.write_bytes(path.read_bytes() + b"\x00")


DAMAGES: tuple[Callable[[Path, Random], None], ...] = (flip, flip, cut, empty, delete, make_folder, replace, add)


def files(folder: Path) -> list[Path]:
    """Every file that a flow reads and writes: its state, and the folder of its own in that of a sink."""
    found = [*(folder / "state").rglob("*"), *(folder / "out/_rejoinder").rglob("*")]
    return sorted(path for path in found if path.is_file())


def kinds(folder: Path) -> dict[str, list[Path]]:
    """The files of the state and of the sink's own folder, by kind: of those that manifests name, the newest's."""
    found: dict[str, list[Path]] = {}
    manifests = sorted((folder / "state/manifests").glob("*.json"))
    newest = Manifest.from_bytes(manifests[-1].read_bytes())
    named = {folder / "state" / name for name in named_files(newest)}
    for path in files(folder):
        if path in named or path.parts[len(folder.parts) + 1] not in NAMED:
            name = "/".join(part for part in path.relative_to(folder).parts if not any(map(str.isdigit, part)))
            if path in manifests:
                name += "/newest" if path == manifests[-1] else "/older"
            found.setdefault(name, []).append(path)
    return found


def outcome(folder: Path, expected: list[Any], after: list[Any]) -> str:
    """Open a damaged state, read everything, run on. Gives "right" or the name of the error; raises on anything else.

    `expected` is what the state held, `after` what it holds two epochs later.
    """
    error = refusal(folder, expected, after)
    return "right" if error is None else type(error).__name__


def refusal(folder: Path, expected: list[Any], after: list[Any]) -> RejoinderError | None:
    """Do what `outcome` does; give the first error, None if all is right."""
    try:
        flow = Flow(folder)
    except RejoinderError as error:
        return error
    refused: RejoinderError | None = None
    try:
        assert flow.everything() == expected, "a reader sees something else"
    except RejoinderError as error:
        refused = error
    try:
        with warnings.catch_warnings(record=True) as notices:
            warnings.simplefilter("always")
            for number in (EPOCHS, EPOCHS + 1):
                flow.step(number)
            assert flow.everything() == after, "it goes on with something else"
        if notices:  # an old version that cannot be collected does not fail the epoch
            refused = refused or Corrupt(str(notices[0].message))
    except RejoinderError as error:
        refused = refused or error
    if refused is None:
        assert flow.delivered() == flow.in_view(), "the sink is not the view"
        epochs = [epoch for epoch, _ in flow.called]
        assert epochs[-2:] == [EPOCHS, EPOCHS + 1] and len(epochs) <= 3, "an epoch is left out, or comes again"
    return refused
