"""A flow that can be killed at any time and started again: `python victim.py folder [driver | follow | settle]`.

It runs on Spark, or with `driver` in the test driver, which starts in a second.

Input lies in `folder/in`, and what comes after the second view was defined in `folder/later`; each file is an epoch.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import rejoinder as rj
from rejoinder.testing import Driver

SOURCES = {
    "a": "CHANGELOG a (id BIGINT, x BIGINT, d BIGINT)",
    "b": "TABLE b (id BIGINT, y STRING, op STRING, PRIMARY KEY (id))",
    "c": "STREAM c (y STRING, z BIGINT, WATERMARK z DELAY OF 0)",
    "o": "STREAM o (id BIGINT, t BIGINT, WATERMARK t DELAY OF 5)",
    "d": "STREAM d (id BIGINT, t BIGINT, WATERMARK t DELAY OF 5)",
}
MARKS = {"a": ", diff 'd'", "b": ", op 'op'"}
PAIRS = (
    "SELECT o.id, o.t, d.t AS met FROM o LEFT JOIN d ON o.id = d.id AND d.t BETWEEN o.t AND o.t + 12 AND d.id <> 3 "
    "EMIT FINAL"
)
VIEWS = ("v", "w", "u", "p", "p.late")
FIRST, LAST = 3, 5


def write_input(folder: Path) -> None:
    """Write the files of all epochs, with times in their order; `c` has some for the later ones only."""
    (folder / "in" / "c").mkdir(parents=True)
    for epoch in range(LAST + 1):
        late = epoch >= FIRST
        a = [{"id": i % 7, "x": epoch, "d": 1} for i in range(20)]
        if epoch:
            a += [{"id": i % 7, "x": epoch - 1, "d": -1} for i in range(6)]
        b = [{"id": i, "y": f"y{(i + epoch) % 3}", "op": "u"} for i in range(7) if (i + epoch) % 2]
        b += [{"id": epoch, "y": "", "op": "d"}]
        c = [{"y": f"y{i}", "z": epoch} for i in range(3)]
        o = [{"id": i, "t": 10 * epoch + i} for i in range(8)]
        d = [{"id": i, "t": 10 * epoch + i} for i in range(0, 8, 2)]
        if epoch > 1:  # too late by an epoch: their matches have expired, or were emitted without them
            o += [{"id": 100 + i, "t": 10 * (epoch - 2) + i} for i in range(3)]
            d += [{"id": i, "t": 10 * (epoch - 2) + i} for i in range(1, 4, 2)]
        for name, rows in (("a", a), ("b", b), ("c", c if late else []), ("o", o), ("d", d)):
            if not rows:
                continue
            path = folder / ("later" if late else "in") / name / f"{epoch}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(rows), path)
            os.utime(path, (1_000_000 + epoch, 1_000_000 + epoch))


def create(flow: rj.Flow | Driver, folder: Path, name: str) -> None:
    """Create a source; every file is an epoch of its own."""
    place = f"path '{folder}/in/{name}', maxFilesPerTrigger '1'{MARKS.get(name, '')}"
    kind, rest = SOURCES[name].split(" ", 1)
    flow.sql(f"CREATE {kind} IF NOT EXISTS {rest} USING parquet OPTIONS ({place})")


def run(flow: rj.Flow | Driver, folder: Path) -> None:
    """Do all that is left to do: some epochs, a new source and new views, one of which emits late, some more epochs."""
    for name in "abod":
        create(flow, folder, name)
    flow.sql(f"CREATE VIEW IF NOT EXISTS p AS {PAIRS}")
    flow.sql("CREATE VIEW IF NOT EXISTS v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    catch_up(flow, FIRST - 1)
    create(flow, folder, "c")
    flow.sql("CREATE VIEW IF NOT EXISTS w AS SELECT DISTINCT a.id, z FROM a JOIN b ON a.id = b.id JOIN c ON b.y = c.y")
    flow.sql("CREATE VIEW IF NOT EXISTS u AS SELECT b.id, c.z FROM b JOIN c ON b.y = c.y EMIT WHEN WATERMARK PAST c.z")
    release(folder, "abcod", range(FIRST, LAST + 1))
    catch_up(flow, LAST)


def catch_up(flow: rj.Flow | Driver, last: int) -> None:
    """Read all files that are there; the last of them is that of epoch `last`."""
    if isinstance(flow, rj.Flow):
        flow.run()
        return
    while flow.epoch < last:
        flow.step()


def release(folder: Path, names: str, epochs: Sequence[int]) -> None:
    """Let files come in that waited; those that came before are passed over."""
    for name in names:
        for epoch in epochs:
            path = folder / "later" / name / f"{epoch}.parquet"
            if path.exists():
                path.replace(folder / "in" / name / path.name)


def outcome(state: Path, views: Sequence[str] = VIEWS) -> dict[str, Any]:
    """Everything that a reader can see, commit times aside; read from the state alone."""
    driver = Driver(store=state)
    result: dict[str, Any] = {"epoch": driver.epoch}
    for view in views:
        table = Counter(tuple(row.values()) for row in driver.table(view))
        stream = [{name: value for name, value in row.items() if name != "_emit_time"} for row in driver.stream(view)]
        changes = Counter(tuple(row.values()) for row in stream)
        summed: Counter[tuple[Any, ...]] = Counter()
        for (*row, _, undo), count in changes.items():
            summed[tuple(row)] += -count if undo else count
        assert +summed == table and min(summed.values()) >= 0
        result |= {view: table, f"changes of {view}": changes}
    return result


def follow(flow: rj.Flow, folder: Path) -> None:
    """Go on with whatever comes, until there is a file `stop`."""
    create(flow, folder, "a")
    create(flow, folder, "b")
    flow.sql("CREATE VIEW IF NOT EXISTS v AS SELECT a.id, x, y FROM a JOIN b ON a.id = b.id")
    flow.start()
    while not (folder / "stop").exists():
        flow.wait(1)
        time.sleep(0.1)
    flow.stop()
    flow.run()


def settle(flow: rj.Flow, folder: Path) -> None:
    """Read the input with a view that emits its changes once a second, until it has emitted all of them."""
    create(flow, folder, "a")
    create(flow, folder, "b")
    query = "SELECT a.id, x, y FROM a JOIN b ON a.id = b.id"
    flow.sql(f"CREATE VIEW IF NOT EXISTS v AS {query}")
    flow.sql(f"CREATE VIEW IF NOT EXISTS paced AS {query} EMIT EVERY INTERVAL 1 SECOND")
    flow.start()
    while flow.epoch < FIRST or flow.engine.seconds_to_tick() is not None:
        flow.wait(1)
    flow.stop()


if __name__ == "__main__":
    where = Path(sys.argv[1])
    try:
        if sys.argv[-1] == "driver":
            run(Driver(store=where / "state", parallelism=2), where)
        else:
            do = {"follow": follow, "settle": settle}.get(sys.argv[-1], run)
            do(rj.Flow(where / "state", parallelism=2), where)
    except rj.RejoinderError as error:
        sys.exit(f"{type(error).__name__}: {error}")
