"""Compare the views of two states, or of two epochs of one state, row by row and without Spark.

Equal rows have equal hashes in every state, so views are compared slice by slice of the hash range. The memory needed
is that of a slice, whatever the size of the view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rejoinder.errors import NotCommitted, UnknownName, near_misses
from rejoinder.formats.text.plain_rows import Row, python_rows
from rejoinder.ir.catalog import Catalog
from rejoinder.kernels.arrow.columns import DIFF, HASH, diffs, replaced, without
from rejoinder.kernels.arrow.consolidate import consolidate
from rejoinder.kernels.arrow.sorting import LAST_HASH
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.state.reading.changelog_reader import changelog_refs, check_epoch, read_table
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.commits.newest_manifest import latest
from rejoinder.store.objects.object_store import ObjectStore

SLICE_ROWS = 1_000_000
"""About how many changes of both views are read at a time."""


@dataclass(frozen=True)
class Side:
    """A state at a committed epoch."""

    store: ObjectStore
    manifest: Manifest
    epoch: int
    catalog: Catalog

    @classmethod
    def open(cls, store: ObjectStore, as_of: int | None = None) -> Side:
        """Open the newest commit. Raises `NotCommitted` if there is none. Epochs are checked view by view."""
        manifest = latest(store)
        if manifest is None:
            raise NotCommitted(f"there is no state in `{store.url}`", hint="give the folder or URL of a state")
        epoch = manifest.epoch if as_of is None else as_of
        return cls(store, manifest, epoch, Catalog.from_json(manifest.catalog))

    def views(self) -> dict[str, pa.Schema]:
        """Return the columns of all views, by name."""
        return {view.name: view.schema for view in self.catalog.views}

    def rows(self, view: str, schema: pa.Schema, hashes: tuple[int, int]) -> pa.Table:
        """Return rows of a view with their number of copies."""
        rows = read_table(self.store, self.manifest, view, schema, as_of=self.epoch, hashes=hashes)
        return without(rows, [HASH])


@dataclass(frozen=True)
class ViewDifference:
    """How a view differs between two states. Its rows are compared only if it has the same columns in both."""

    view: str
    fact: str = ""
    """Why the rows were not compared: the view is missing on one side, or has other columns."""
    rows: tuple[int, int] = (0, 0)
    """The number of rows on each side."""
    only: tuple[int, int] = (0, 0)
    """The number of rows that only one side has."""
    samples: tuple[tuple[Row, int], ...] = ()
    """Some of the rows that differ, with their diff: negative for the first side."""

    @property
    def is_equal(self) -> bool:
        """Whether both sides have the same rows."""
        return not self.fact and self.only == (0, 0)


def compared(first: Side, second: Side, views: Sequence[str] = (), *, samples: int = 6) -> Iterator[ViewDifference]:
    """Yield how each view differs; `views` chooses some. Raises `UnknownName` and `NotCommitted`."""
    left, right = first.views(), second.views()
    for name in _chosen(views, [*left, *(name for name in right if name not in left)]):
        if name not in left or name not in right:
            yield ViewDifference(name, f"only the {'first' if name in left else 'second'} state has it")
        elif columns := _other_columns(left[name], right[name]):
            yield ViewDifference(name, columns)
        else:
            yield _compared(first, second, name, left[name], samples)


def _chosen(views: Sequence[str], known: list[str]) -> list[str]:
    names = {name.lower(): name for name in known}
    for view in views:
        if view.lower() not in names:
            hint = near_misses(view, known) or "leave the names out to compare all views"
            raise UnknownName(f"no state has a view `{view}`", detail=f"views: {', '.join(known) or 'none'}", hint=hint)
    return [names[view.lower()] for view in views] or known


def _other_columns(left: pa.Schema, right: pa.Schema) -> str:
    """Return how the columns differ as text; "" if they do not."""
    texts = [[f"{field.name} {spark_name(field.type)}" for field in schema] for schema in (left, right)]
    if texts[0] == texts[1]:
        return ""
    only = [[text for text in texts[at] if text not in texts[1 - at]] for at in (0, 1)]
    listed = [f"{side}: {', '.join(own)}" for side, own in zip(("first", "second"), only, strict=True) if own]
    return f"other columns ({'; '.join(listed) or 'in another order'})"


def _compared(first: Side, second: Side, view: str, schema: pa.Schema, samples: int) -> ViewDifference:
    sides = (first, second)
    for side in sides:
        check_epoch(side.manifest, view, side.epoch)
    changes = sum(ref.rows for side in sides for ref in changelog_refs(side.manifest, view))
    counts, only = np.zeros(2, np.int64), np.zeros(2, np.int64)
    shown: list[tuple[Row, int]] = []
    for hashes in _slices(1 + changes // SLICE_ROWS):
        left, right = (side.rows(view, schema, hashes) for side in sides)
        counts += [diffs(left).sum(), diffs(right).sum()]
        difference = consolidate(pa.concat_tables([replaced(left, DIFF, -diffs(left)), right]))
        signed = diffs(difference)
        only += [-signed[signed < 0].sum(), signed[signed > 0].sum()]
        if len(shown) < samples:
            some = difference.slice(0, samples - len(shown))
            shown += list(zip(python_rows(without(some, [DIFF, HASH])), diffs(some).tolist(), strict=True))
    shown.sort(key=lambda change: change[1])
    return ViewDifference(view, "", _pair(counts), _pair(only), tuple(shown))


def _slices(number: int) -> Iterator[tuple[int, int]]:
    ends = [(LAST_HASH + 1) * at // number for at in range(number + 1)]
    for start, end in pairwise(ends):
        yield start, end - 1


def _pair(values: np.ndarray) -> tuple[int, int]:
    return int(values[0]), int(values[1])
