"""Views for Spark readers: partitions, offsets and batches. Runs on workers without an engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rejoinder.errors import Corrupt, NotCommitted
from rejoinder.ir.catalog import Catalog
from rejoinder.kernels.arrow.sorting import hash_range
from rejoinder.plan.operations.side_outputs import readable
from rejoinder.state.reading.changelog_reader import (
    changelog_refs,
    check_epoch,
    expanded,
    from_start,
    history_start,
    read_changes,
    read_table,
    timeline_of,
)
from rejoinder.state.reading.renderings import CHANGE_COLUMNS, Changes, described
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore

ROWS_PER_PARTITION = 500_000
BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Serving:
    """The readable side of a store. Options: `view`, and for tables `as_of` (an epoch)."""

    store: ObjectStore

    def manifest(self) -> Manifest:
        """Return the last commit. Raises `NotCommitted` if there is none."""
        manifest = latest(self.store)
        if manifest is None:
            raise NotCommitted("nothing is committed yet", detail=self.store.url, hint="run the flow first")
        return manifest

    def view_schema(self, manifest: Manifest, view: str) -> pa.Schema:
        """Return the columns of a view or of a side output."""
        schema: pa.Schema = readable(Catalog.from_json(manifest.catalog), view).schema
        return schema

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        """Return the columns that a reader gets: those of the view, and for changes also the system columns."""
        schema = self.view_schema(self.manifest(), options["view"])
        if options["what"] == "table":
            return schema
        return pa.schema([*schema, *CHANGE_COLUMNS])

    def first(self, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the offset before all changes."""
        return {"epoch": -2}

    def latest(self, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the offset of the last committed epoch."""
        return {"epoch": self.manifest().epoch}

    def partitions(self, options: Mapping[str, str], between: Mapping[str, Any]) -> list[dict[str, int]]:
        """Split the work by row hash. Every partition nets its own rows."""
        manifest = self.manifest()
        view = options["view"]
        start, end = -2, int(options.get("as_of", manifest.epoch))
        if "start" in between:
            start, end = between["start"]["epoch"], between["end"]["epoch"]
            _check_start(manifest, view, start)
        elif "as_of" in options:
            check_epoch(manifest, view, end)
        rows = sum(ref.rows for ref in changelog_refs(manifest, view) if ref.epochs[0] <= end and ref.epochs[1] > start)
        count = max(1, min(64, -(-rows // ROWS_PER_PARTITION)))
        return [{"part": part, "parts": count, "start": start, "end": end} for part in range(count)]

    def read(self, options: Mapping[str, str], partition: Mapping[str, int]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition. May run at any time: later manifests have the same rows of an epoch."""
        manifest = self.manifest()
        try:
            rows = self._rows(manifest, options, partition)
        except Corrupt:
            newer = self.manifest()
            if newer.version == manifest.version:
                raise
            rows = self._rows(newer, options, partition)  # files were compacted and deleted during the read
        yield from rows.combine_chunks().to_batches(BATCH_ROWS)

    def _rows(self, manifest: Manifest, options: Mapping[str, str], partition: Mapping[str, int]) -> pa.Table:
        view, start, end = options["view"], partition["start"], partition["end"]
        schema = self.view_schema(manifest, view)
        hashes = hash_range(partition["part"], partition["parts"])
        if options["what"] == "table":
            return expanded(read_table(self.store, manifest, view, schema, as_of=end, hashes=hashes))
        _check_start(manifest, view, start)
        changes = read_changes(self.store, manifest, view, schema, after=start, until=end, hashes=hashes)
        changes = from_start(changes, history_start(manifest, view) if start < 0 else None)
        return described(Changes(changes, schema, timeline_of(manifest).times(self.store)))


def _check_start(manifest: Manifest, view: str, start: int) -> None:
    """Raise `NotCommitted` if the epochs after `start` are compacted into one."""
    since = manifest.extra["since"]
    if 0 <= start < since:
        raise NotCommitted(
            f"the changes of `{view}` after epoch {start} are no longer kept",
            detail=f"history starts at epoch {since}",
            hint="start the reader again, and open the flow with a longer history=…",
        )
