"""The progress of sinks: in the manifest as of its commit, and after it in a progress file of that manifest.

An epoch is delivered after its commit, so its manifest cannot contain the delivery. The progress file can. It is one
small object per version, named by the version, with its own checksum and that of its manifest. The next manifest takes
its content over. So a progress file is never read with another state: an older or restored state does not find it, and
a damaged file is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rejoinder.errors import Corrupt
from rejoinder.store.commits.manifest import Manifest
from rejoinder.store.objects.object_store import ObjectStore

FOLDER = "sinks"


@dataclass(frozen=True)
class Delivered:
    """The progress of a sink."""

    epoch: int
    """The last epoch that was delivered, or had no changes."""
    changed: int | None = None
    """The last of these epochs that had changes."""


Progress = Mapping[str, Delivered]


def to_json(progress: Progress) -> dict[str, Any]:
    """Return plain data for a manifest or a progress file, by identity of the sink."""
    return {identity: [delivered.epoch, delivered.changed] for identity, delivered in progress.items()}


def from_json(data: Mapping[str, Any]) -> dict[str, Delivered]:
    """Decode the result of `to_json`."""
    return {
        str(identity): Delivered(int(epoch), None if changed is None else int(changed))
        for identity, (epoch, changed) in data.items()
    }


def progress_file(manifest: Manifest) -> str:
    """Return the name of the progress file of a manifest."""
    return f"{FOLDER}/{manifest.version:020d}.json"


def write_progress(store: ObjectStore, manifest: Manifest, progress: Progress) -> None:
    """Write the progress file of a manifest. It counts until the next commit."""
    body = json.dumps({"manifest": manifest.checksum, "delivered": to_json(progress)}, sort_keys=True).encode()
    store.put(progress_file(manifest), body + b"\n" + _checksum(body))


def recorded(store: ObjectStore, manifest: Manifest) -> dict[str, Delivered]:
    """Return the progress of sinks at a manifest. Raises `Corrupt` if its progress file is damaged."""
    committed = from_json(manifest.extra.get("delivered", {}))
    data = store.find(progress_file(manifest))
    if data is None:
        return committed
    body, _, checksum = data.partition(b"\n")
    if checksum != _checksum(body):
        raise _damaged(store, manifest, "it fails its checksum")
    fields = json.loads(body)
    if fields["manifest"] != manifest.checksum:
        raise _damaged(store, manifest, "it was written for another commit")
    return committed | from_json(fields["delivered"])


def _damaged(store: ObjectStore, manifest: Manifest, reason: str) -> Corrupt:
    return Corrupt(
        "the progress file of the sinks is damaged",
        detail=f"`{progress_file(manifest)}` in {store.url}: {reason}",
        hint=f"restore it from a backup, or delete it: sinks that do not store epochs themselves (functions, the "
        f"console, topics) then get the changes of epoch {manifest.epoch} once more",
    )


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
