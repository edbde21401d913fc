"""Bounded state is small on disk too: after a burst, and over many epochs of a steady stream."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from rejoinder.engine.collector import KEEP_VERSIONS
from rejoinder.state.flow_state import State
from rejoinder.store.commits.manifest import find, versions
from rejoinder.store.runs.run import _cache, _written
from rejoinder.testing import Driver
from tests.deep import DEEP

START = datetime(2026, 1, 1)
WINDOW = timedelta(minutes=30)


@dataclass(frozen=True)
class Held:
    """What a flow holds: rows and bytes of arrangements, as they are and on disk; files; the manifest.

    Changelogs are left out: they hold the results of views, and grow with them.
    """

    rows: int
    bytes: int
    disk: int
    files: int
    folders: int
    manifest: int


def held(driver: Driver) -> Held:
    """Measure. On disk is what any of the retained versions names."""
    store = driver._engine.store
    root = Path(store.path)
    retained = [State.from_json(found.spines) for version in versions(store) if (found := find(store, version))]
    kept = [part for state in retained for parts in state.arrangements.values() for part in parts]
    state = {ref.name: ref.size for part in kept for ref in part.refs}
    results = {ref.name for state in retained for parts in state.changelogs.values() for p in parts for ref in p.refs}
    files = {path.relative_to(root).as_posix() for path in (root / "runs").rglob("*") if path.is_file()} - results
    shown = driver.arrangements()
    manifest = driver._manifest
    plain = json.dumps([manifest.spines["arrangements"], manifest.catalog, manifest.extra, manifest.epochs])
    folders = sum(path.is_dir() for path in (root / "runs").iterdir())
    rows, size = sum(row["rows"] for row in shown), sum(row["bytes"] for row in shown)
    return Held(rows, size, sum(state.values()), len(files), folders, len(plain))


def opened(folder: Path, kind: str, emit: str, parallelism: int = 2, history: int = 5) -> Driver:
    """Deliveries within half an hour of their orders."""
    driver = Driver(store=folder / "state", parallelism=parallelism, history=history)
    for name in ("o", "d"):
        driver.sql(f"CREATE STREAM {name} (id BIGINT, ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 MINUTE)")
    driver.sql(
        f"CREATE VIEW j AS SELECT o.id, o.ts, d.ts AS delivered FROM o {kind} JOIN d "
        f"ON o.id = d.id AND d.ts BETWEEN o.ts AND o.ts + INTERVAL 30 MINUTES {emit}"
    )
    return driver


@pytest.mark.parametrize(
    ("kind", "emit"),
    [pytest.param("", "", marks=DEEP), pytest.param("LEFT", "EMIT FINAL", marks=DEEP), ("FULL", "EMIT FINAL")],
)
def test_a_burst_leaves_next_to_nothing(tmp_path: Path, kind: str, emit: str) -> None:
    driver = opened(tmp_path, kind, emit)
    for part in range(3):
        rows = [{"id": 10_000 * part + i, "ts": START + timedelta(seconds=i % 60)} for i in range(10_000)]
        driver.insert("o", *rows)
        driver.insert("d", *rows[::2])
        driver.step()
    burst = held(driver)
    assert burst.rows > 30_000 and burst.disk > 500_000
    for later in range(KEEP_VERSIONS + 3):
        now = START + timedelta(days=1, hours=later)
        driver.insert("o", {"id": -1 - later, "ts": now})
        driver.insert("d", {"id": -1001 - later, "ts": now})
        driver.step()
    after = held(driver)
    assert after.rows <= 10
    assert after.disk < burst.disk / 10 and after.disk < 150_000, after
    assert after.files < 150 and after.folders < 2 * KEEP_VERSIONS, after
    assert sum((row["id"] or 0) >= 0 and row["ts"] < START + WINDOW for row in driver.table("j") if row["ts"]) == (
        15_000 if not kind else 30_000
    )
    named = driver._engine.version.state.files()
    cached = set(_cache(driver._engine.store))
    assert len(cached - named) < 100 and len(_written(driver._engine.store)) <= 4096, "and nothing else stays mapped"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "emit"), [pytest.param("", "", marks=DEEP), ("LEFT", "EMIT FINAL")])
def test_a_window_over_a_steady_stream_is_flat_over_200_epochs(tmp_path: Path, kind: str, emit: str) -> None:
    driver = opened(tmp_path, kind, emit, parallelism=1)
    measured: list[Held] = []
    for epoch in range(200):
        now = START + timedelta(minutes=3 * epoch)
        times = {20 * epoch + i: now - timedelta(seconds=i) for i in range(20)}
        driver.insert("o", *({"id": number, "ts": time} for number, time in times.items()))
        driver.insert("d", *({"id": number - 60, "ts": time} for number, time in times.items() if number % 2 == 0))
        driver.step()
        if epoch % 3 == 0:
            measured.append(held(driver))
        if epoch == 120:
            driver.restart(parallelism=1)
    for what in Held.__dataclass_fields__:
        early = max(getattr(each, what) for each in measured[14:34])
        late = max(getattr(each, what) for each in measured[34:])
        # The manifest has a line for each of up to 512 epochs, and results have as many runs as the logarithm of their
        # rows, each perhaps in a folder of its own.
        bound = {"manifest": 1.05 * early + 2_500, "folders": 2 * early}.get(what, 1.05 * early)
        assert late <= bound, f"{what}: {early} at most in epochs 40 to 99, {late} later"
