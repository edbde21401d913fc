"""Manifests of another version: an error with a name, never a raw exception, never sources that are read twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rejoinder.errors import StateError
from rejoinder.store.commits.commit import commit
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver


def rewritten(folder: Path, **extra: Any) -> None:
    """Commit the newest manifest again, with another `extra`; None takes a field out."""
    store = open_store(str(folder))
    manifest = latest(store)
    assert manifest is not None
    fields = {name: value for name, value in {**manifest.extra, **extra}.items() if value is not None}
    commit(store, manifest.successor(keep_versions=8, extra=fields))


@pytest.mark.parametrize("field", ["timeline", "created", "positions", "attached", "watermarks", "deliveries"])
def test_a_field_that_is_missing(tmp_path: Path, field: str) -> None:
    driver = Driver(store=tmp_path)
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    driver.step()
    rewritten(tmp_path, **{field: None})
    with pytest.raises(StateError, match=rf"written by another version[\s\S]*{field}[\s\S]*Hint: use a new state"):
        Driver(store=tmp_path)


@pytest.mark.parametrize(
    "positions", [{"ab12cd34": ["in/1.csv"]}, {"spark": {"number": 0, "folder": "0-x", "sources": ["ab/0"]}}]
)
def test_positions_as_they_were_kept_before(tmp_path: Path, positions: dict[str, Any]) -> None:
    driver = Driver(store=tmp_path)
    driver.sql("CREATE STREAM t (a BIGINT); CREATE VIEW v AS SELECT a FROM t")
    driver.step()
    rewritten(tmp_path, positions=positions)
    with pytest.raises(StateError, match="positions of sources have another format"):
        Driver(store=tmp_path)
