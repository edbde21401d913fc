"""How far each sink is: in the manifest as of its commit, and since then in a note that belongs to that manifest.

An epoch is delivered after its commit, so its manifest cannot say that it was. A note can: one small object per
version, named by the version, that carries the checksum of its manifest and its own. The next manifest takes over what
the note says. So a note is never read with another state than its own: an older or restored state does not find it, and
a damaged one is an error.
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
    """How far a sink is."""

    epoch: int
    """The last epoch that it has taken, or that had nothing for it."""
    changed: int | None = None
    """The last of these epochs that had something for it."""


Progress = Mapping[str, Delivered]


def to_json(progress: Progress) -> dict[str, Any]:
    """Give plain data for a manifest or a note, by identity of the sink."""
    return {identity: [each.epoch, each.changed] for identity, each in progress.items()}


def from_json(data: Mapping[str, Any]) -> dict[str, Delivered]:
    """Read what `to_json` gave."""
    return {
        str(identity): Delivered(int(epoch), None if changed is None else int(changed))
        for identity, (epoch, changed) in data.items()
    }


def note_name(manifest: Manifest) -> str:
    """The object that says what was delivered since a manifest was committed."""
    return f"{FOLDER}/{manifest.version:020d}.json"


def write_note(store: ObjectStore, manifest: Manifest, progress: Progress) -> None:
    """Say how far the sinks are, until the next manifest does."""
    body = json.dumps({"manifest": manifest.checksum, "delivered": to_json(progress)}, sort_keys=True).encode()
    store.put(note_name(manifest), body + b"\n" + _checksum(body))


def recorded(store: ObjectStore, manifest: Manifest) -> dict[str, Delivered]:
    """How far the sinks are at a manifest. Raises `Corrupt` if its note is damaged or belongs to another manifest."""
    known = from_json(manifest.extra.get("delivered", {}))
    data = store.find(note_name(manifest))
    if data is None:
        return known
    body, _, checksum = data.partition(b"\n")
    if checksum != _checksum(body):
        raise _damaged(store, manifest, "it fails its checksum")
    note = json.loads(body)
    if note["manifest"] != manifest.checksum:
        raise _damaged(store, manifest, "it was written for another commit")
    return known | from_json(note["delivered"])


def _damaged(store: ObjectStore, manifest: Manifest, why: str) -> Corrupt:
    return Corrupt(
        "the note of what sinks have taken is damaged",
        detail=f"`{note_name(manifest)}` in {store.url}: {why}",
        hint=f"restore it from a backup, or delete it: sinks that do not remember epochs themselves (functions, the "
        f"console, topics) then get the changes of epoch {manifest.epoch} once more",
    )


def _checksum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).hexdigest().encode()
