"""The manifest: one object per commit that names all state of the flow. Writing it is the commit.

Invariants:
- `manifests/<version>.json` is written by `put_if_absent`. Of two drivers, one gets a version;
- versions have no gaps, and each manifest carries the checksum of the one before it (`parent`);
- old manifests are deleted in ascending order, one after the other (`gc`), and the newest is never deleted;
- a manifest names its writer, a random identity of one driver, and counts in `writer_epoch` how often the writer
  changed. The count is a fencing token: a driver with a lower one than another has been replaced.

`commit` publishes manifests, `newest_manifest` finds the newest one, `lost_commits` detects that it is missing.
[ADR 0033](../../../docs/adr/0033-commit-protocol.md) argues why this survives lost, late and duplicate answers.
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

FORMAT = 2
OLDEST_FORMAT = 2
"""The oldest format that this version reads."""
FOLDER = "manifests"
_RESTORE = "restore the state from a backup; all manifests belong together, so restore them into an empty folder"


@dataclass(frozen=True)
class Manifest:
    """The content of a commit. Dicts are plain JSON data with text keys, and are never modified."""

    version: int
    """Number of commits before this one, of epochs and of definitions."""
    epoch: int
    """The last committed epoch; -1 before the first."""
    time_ms: int
    """Processing time of that epoch, in milliseconds since 1970."""
    parent: str
    """Checksum of the manifest of the version before; empty for version 0."""
    flow_id: str
    """Random identity of the flow."""
    plan: str = ""
    """Fingerprint of the plan."""
    catalog: dict[str, Any] = field(default_factory=dict)
    """Definitions of sources, views and sinks."""
    spines: dict[str, Any] = field(default_factory=dict)
    """The runs of each arrangement and changelog."""
    extra: dict[str, Any] = field(default_factory=dict)
    """Positions of sources, watermarks, progress of sinks."""
    epochs: tuple[tuple[int, int, int], ...] = ()
    """(epoch, time_ms, version) of each retained commit, this one included."""
    commit_id: str = field(default_factory=lambda: token(8))
    """Random, so that two drivers never write the same bytes."""
    writer: str = ""
    """Random identity of the driver."""
    writer_epoch: int = 0
    """Number of drivers before this one: the fencing token."""
    format: int = FORMAT
    """Version of the format of this state."""

    @classmethod
    def first(cls, *, time_ms: int, epoch: int = -1, **rest: Any) -> Manifest:
        """Return the first manifest of a new flow, with a new `flow_id`; `rest` sets plan, catalog, spines, extra."""
        flow_id = token(16)
        return cls(0, epoch, time_ms, "", flow_id, epochs=((epoch, time_ms, 0),), **rest)

    def successor(self, *, keep_versions: int, **changes: Any) -> Manifest:
        """Return the next manifest; fields that `changes` does not set (epoch, time_ms, plan, …) keep their values.

        A new `writer` increments `writer_epoch`.
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
        """The checksum of this manifest, which is the `parent` of the next one."""
        return _checksum(self._body)

    @property
    def name(self) -> str:
        """The name of the object that holds this manifest."""
        return name_of(self.version)

    def to_bytes(self) -> bytes:
        """Return a line of canonical JSON, and a line with its checksum."""
        return self._body + b"\n" + last_line(self.checksum)

    @cached_property
    def _body(self) -> bytes:
        parts = {member.name: getattr(self, member.name) for member in dataclasses.fields(self)}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "manifest") -> Manifest:
        """Read what `to_bytes` returned. Raises `errors.Corrupt`, naming the object, if a single byte differs."""
        body, _, trailer = data.partition(b"\n")
        intact = trailer == last_line(_checksum(body))
        try:
            # A newer format may use another checksum; its `format` is still readable.
            parts = json.loads(body) if intact or not trailer.startswith(b'"blake2b:') else {}
            stored_format = parts.get("format", 0)
            if stored_format > FORMAT:
                raise errors.NewerFormat(
                    "the state was written by a newer version of Rejoinder",
                    detail=f"`{name}` has format {stored_format}, and this version reads up to {FORMAT}",
                    hint="upgrade Rejoinder; nothing was changed",
                )
            if not intact:
                raise errors.Corrupt("a manifest fails its checksum", detail=f"`{name}` is damaged", hint=_RESTORE)
            if 0 < stored_format < OLDEST_FORMAT:
                raise errors.StateError(
                    "the state was written by an older version of Rejoinder",
                    detail=f"`{name}` has format {stored_format}, and this version reads from {OLDEST_FORMAT} on",
                    hint="run it with the version that wrote it, or start again with another state directory",
                )
            parts["epochs"] = tuple((int(epoch), int(time), int(version)) for epoch, time, version in parts["epochs"])
            manifest = cls(**parts)
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise errors.Corrupt("a manifest cannot be read", detail=f"`{name}`: {error}", hint=_RESTORE) from None
        manifest.__dict__["_body"] = body  # the checksum covers these bytes; serializing again could give others
        return manifest


def name_of(version: int) -> str:
    """Return the name of the object that holds the manifest of `version`."""
    return f"{FOLDER}/{version:020d}.json"


def check_chain(older: Manifest, newer: Manifest) -> None:
    """Raise `errors.Corrupt` unless `older` is the parent of `newer`."""
    if newer.parent != older.checksum:
        raise broken_chain(older.name, newer.name)


def broken_chain(older: str, newer: str) -> errors.Corrupt:
    """Return the error for two stored manifests that do not belong to one chain."""
    return errors.Corrupt(
        "the manifests do not belong together",
        detail=f"the parent of `{newer}` is not the stored `{older}`: an old copy was restored over a newer state",
        hint=_RESTORE,
    )


def has_parent(store: ObjectStore, manifest: Manifest) -> bool:
    """Whether the manifest before this one is stored. Raises `errors.Corrupt` if that is not its parent."""
    if manifest.version == 0:
        return False
    stored = store.find(name_of(manifest.version - 1))
    if stored is not None and not stored.endswith(last_line(manifest.parent)):
        raise broken_chain(name_of(manifest.version - 1), manifest.name)
    return stored is not None


def find(store: ObjectStore, version: int) -> Manifest | None:
    """Return the stored manifest of `version`; None if there is none. Raises `errors.Corrupt` if it is damaged."""
    name = name_of(version)
    data = store.find(name)
    if data is None:
        return None
    manifest = Manifest.from_bytes(data, name)
    if manifest.version != version:
        raise errors.Corrupt(
            "a manifest has the wrong name", detail=f"`{name}` holds version {manifest.version}", hint=_RESTORE
        )
    return manifest


def versions(store: ObjectStore) -> list[int]:
    """Return all stored versions, ascending. Lists the folder, so it costs more than `latest`."""
    stems = (name.removeprefix(f"{FOLDER}/").removesuffix(".json") for name in store.list(FOLDER))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def _checksum(body: bytes) -> str:
    return "blake2b:" + hashlib.blake2b(body, digest_size=16).hexdigest()


def last_line(checksum: str) -> bytes:
    """Return the last line of a manifest with that checksum."""
    return b'"%b"\n' % checksum.encode()
