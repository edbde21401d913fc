"""The manifest: one object per commit that names all state of the flow. Writing it is the commit.

Invariants:
- `manifests/<version>.json` is written by `put_if_absent`. Of two drivers, one gets a version;
- versions have no gaps, and each manifest carries the checksum of the one before it (`parent`);
- old manifests are deleted in ascending order, one after the other (`gc`), and the newest is never deleted;
- a manifest names its writer, a random identity of one driver, and counts in `writer_epoch` how often the writer
  changed. The count is a fencing token: whoever has a lower one than another has been replaced.

`commit` publishes manifests, `newest` finds the newest one, `lost_commits` notices that it is gone.
[ADR 0033](../../../docs/adr/0033-commit-protocol.md) argues why this survives answers that are lost, late or doubled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rejoinder import errors
from rejoinder.host.entropy import token
from rejoinder.store.objects.object_store import ObjectStore

FORMAT = 1
FOLDER = "manifests"
_RESTORE = "restore the state from a backup; all manifests belong together, so restore them into an empty folder"


@dataclass(frozen=True)
class Manifest:
    """All that a commit says. Dicts are plain JSON data with text keys; nobody changes them.

    `version` counts commits of any kind, `epoch` is the last committed one (-1 before the first), `time_ms` its
    processing time. `epochs` lists (epoch, time_ms, version) of the retained commits, this one included.
    `commit_id` is random, so that two drivers never write the same bytes. `writer` is the identity of the driver,
    `writer_epoch` the number of drivers before it.
    """

    version: int
    epoch: int
    time_ms: int
    parent: str
    flow_id: str
    plan: str = ""
    catalog: dict[str, Any] = field(default_factory=dict)
    spines: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    epochs: tuple[tuple[int, int, int], ...] = ()
    commit_id: str = field(default_factory=lambda: token(8))
    writer: str = ""
    writer_epoch: int = 0
    format: int = FORMAT

    @classmethod
    def first(cls, *, time_ms: int, epoch: int = -1, **rest: Any) -> Manifest:
        """Make the first manifest of a new flow, with a new `flow_id`; `rest` gives plan, catalog, spines, extra."""
        flow_id = token(16)
        return cls(0, epoch, time_ms, "", flow_id, epochs=((epoch, time_ms, 0),), **rest)

    def successor(self, *, keep_versions: int, **changes: Any) -> Manifest:
        """Make the next manifest: what `changes` does not give (epoch, time_ms, plan, …) stays as it is.

        Another `writer` than before is the next one: it gets a `writer_epoch` of its own.
        """
        version = self.version + 1
        epoch, time_ms = changes.get("epoch", self.epoch), changes.get("time_ms", self.time_ms)
        retained = tuple(entry for entry in self.epochs if entry[2] > version - keep_versions)
        own = {
            "version": version,
            "parent": self.checksum,
            "epochs": (*retained, (epoch, time_ms, version)),
            "commit_id": token(8),
            "writer_epoch": self.writer_epoch + (changes.get("writer", self.writer) != self.writer),
            "format": FORMAT,
        }
        return dataclasses.replace(self, **{**changes, **own})

    @cached_property
    def checksum(self) -> str:
        """What the next manifest gives as its `parent`."""
        return _checksum(self._body)

    @property
    def name(self) -> str:
        """The object that holds this manifest."""
        return name_of(self.version)

    def to_bytes(self) -> bytes:
        """Return one line of canonical JSON, and one with its checksum."""
        return self._body + b"\n" + last_line(self.checksum)

    @cached_property
    def _body(self) -> bytes:
        parts = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "manifest") -> Manifest:
        """Read what `to_bytes` wrote. A changed, lost or added byte is `errors.Corrupt`, and names the object."""
        body, _, trailer = data.partition(b"\n")
        intact = trailer == last_line(_checksum(body))
        try:
            # A newer format may check itself in a way that we do not know, and still says that it is newer.
            parts = json.loads(body) if intact or not trailer.startswith(b'"blake2b:') else {}
            found = parts.get("format", 0)
            if found > FORMAT:
                raise errors.NewerFormat(
                    "the state was written by a newer version of Rejoinder",
                    detail=f"`{name}` has format {found}, and this version reads up to {FORMAT}",
                    hint="upgrade Rejoinder; nothing was changed",
                )
            if not intact:
                raise errors.Corrupt("a manifest fails its checksum", detail=f"`{name}` is damaged", hint=_RESTORE)
            parts["epochs"] = tuple((int(epoch), int(time), int(version)) for epoch, time, version in parts["epochs"])
            manifest = cls(**parts)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise errors.Corrupt("a manifest cannot be read", detail=f"`{name}`: {error}", hint=_RESTORE) from None
        manifest.__dict__["_body"] = body  # the checksum is of these bytes, whatever would be written today
        return manifest


def name_of(version: int) -> str:
    """Return the name of the object that holds the manifest of `version`."""
    return f"{FOLDER}/{version:020d}.json"


def check_chain(older: Manifest, newer: Manifest) -> None:
    """Raise `errors.Corrupt` unless `older` is the parent of `newer`."""
    if newer.parent != older.checksum:
        raise broken_chain(older.name, newer.name)


def broken_chain(older: str, newer: str) -> errors.Corrupt:
    """Say that two stored manifests are not of one chain."""
    return errors.Corrupt(
        "the manifests do not belong together",
        detail=f"`{newer}` was not written after the present `{older}`: an old copy was restored over a newer state",
        hint=_RESTORE,
    )


def has_parent(store: ObjectStore, manifest: Manifest) -> bool:
    """Tell whether the manifest before this one is stored; `errors.Corrupt` if that is not its parent."""
    if manifest.version == 0:
        return False
    stored = store.find(name_of(manifest.version - 1))
    if stored is not None and not stored.endswith(last_line(manifest.parent)):
        raise broken_chain(name_of(manifest.version - 1), manifest.name)
    return stored is not None


def find(store: ObjectStore, version: int) -> Manifest | None:
    """Return the stored manifest of `version`, None if there is none; `errors.Corrupt` if it is damaged."""
    name = name_of(version)
    data = store.find(name)
    if data is None:
        return None
    manifest = Manifest.from_bytes(data, name)
    if manifest.version != version:
        raise errors.Corrupt(
            "a manifest is under a wrong name", detail=f"`{name}` holds version {manifest.version}", hint=_RESTORE
        )
    return manifest


def versions(store: ObjectStore) -> list[int]:
    """Return all stored versions, ascending. Lists the folder, so it costs more than `latest`."""
    stems = (name.removeprefix(f"{FOLDER}/").removesuffix(".json") for name in store.list(FOLDER))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def _checksum(body: bytes) -> str:
    return "blake2b:" + hashlib.blake2b(body, digest_size=16).hexdigest()


def last_line(checksum: str) -> bytes:
    """The last line of a manifest."""
    return b'"%b"\n' % checksum.encode()
