"""The manifest: one object per commit that names all state of the flow. Writing it is the commit.

Invariants:
- `manifests/<version>.json` is written by `put_if_absent`. Of two drivers, one gets a version;
- versions have no gaps, and each manifest carries the checksum of the one before it (`parent`);
- old manifests are deleted in ascending order, one after the other (`gc`), and the newest is never deleted. So a name
  that was deleted has a newer one above it for ever, and a name that was never used has none. A driver that has put
  its manifest lists the folder: it is committed if nothing is above it, or if the next one is its child. Otherwise the
  name had been used before and was free only because it was deleted; the driver is fenced and removes what it put;
- a manifest names its writer, a random identity of one driver, and counts in `writer_epoch` how often the writer
  changed. The count is a fencing token: whoever has a lower one than another has been replaced;
- an answer that is lost decides nothing. A driver publishes no other manifest before it has published that one (again,
  with the same bytes) or was fenced; see `engine.publishing`;
- `manifests/latest` is a hint. Readers start there; a driver starts from the listing (`newest`). A hint that is
  missing, stale or damaged costs time and nothing else. It carries a checksum, so a version that it names was
  committed: if neither that nor a newer one is there, the newest commit is lost, which is an error;
- `flow.json` says which flow lives here, from its first commit on. Without it, without a hint and without runs of an
  epoch, a store that lists no manifest is a new one. Otherwise its manifests are lost, which is an error.

[ADR 0033](../../../docs/adr/0033-commit-protocol.md) argues why this survives answers that are lost, late or doubled.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rejoinder import errors
from rejoinder.kernels.entropy import token
from rejoinder.store.objects import ObjectStore

FORMAT = 1
FOLDER = "manifests"
FLOW = "flow.json"
_HINT = f"{FOLDER}/latest"
_PROBES = 16
_TRIES = 20
_RUNS = "runs"
_OF_AN_EPOCH = re.compile(r"runs/\d{10}/")
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
        return self._body + b"\n" + _trailer(self.checksum)

    @cached_property
    def _body(self) -> bytes:
        parts = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "manifest") -> Manifest:
        """Read what `to_bytes` wrote. A changed, lost or added byte is `errors.Corrupt`, and names the object."""
        body, _, trailer = data.partition(b"\n")
        intact = trailer == _trailer(_checksum(body))
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


def commit(store: ObjectStore, manifest: Manifest) -> None:
    """Publish `manifest`; when this returns, it is committed.

    `errors.Fenced` if another driver has its version, or had it and went on so far that it was dropped;
    `errors.Corrupt`, and nothing is published, if the stored manifest before it is not its parent. After
    `errors.Unconfirmed` it may or may not be committed: call again with the same manifest, which makes no second
    commit. After any other error it is not committed.
    """
    data = manifest.to_bytes()
    _check_place(store, manifest)
    try:
        _put(store, manifest, data)
        _confirm(store, manifest)
    except errors.StorageFailed as failure:
        raise errors.Unconfirmed(
            "the storage did not confirm a commit",
            detail=f"version {manifest.version} (epoch {manifest.epoch}) may or may not be stored: "
            + (failure.detail or failure.fact),
            hint="fix the storage and go on: the next commit of this flow finishes this one first. "
            + (failure.hint or ""),
        ) from failure
    if manifest.version == 0:
        _check_fence(store, manifest)
    with suppress(errors.StorageFailed):  # it is committed; the hint only saves time, the marker comes with the next
        write_hint(store, manifest)
        if manifest.version == 0:
            mark_flow(store, manifest)


def _put(store: ObjectStore, manifest: Manifest, data: bytes) -> None:
    """Put the manifest under its name, if that is free or holds this very manifest."""
    for _ in range(3):
        if store.put_if_absent(manifest.name, data):
            return
        stored = store.find(manifest.name)
        if stored == data:  # an earlier request of ours, whose answer was lost
            return
        if stored is not None:
            raise _fenced(manifest, stored)
    raise errors.StorageFailed(
        "the storage refuses a commit and shows no other one",
        detail=f"`{manifest.name}` in {store.url} is said to exist, and cannot be found",
        hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
    )


def _confirm(store: ObjectStore, manifest: Manifest) -> None:
    """Raise `errors.Fenced` if the name of `manifest`, which is put, had been used and deleted before."""
    stored = versions(store)
    if not stored or stored[-1] <= manifest.version:
        # The listing is proof where listings are consistent; a name is deleted after the one below it in any case.
        if manifest.version == 0 or store.exists(name_of(manifest.version - 1)):
            return
        raise _taken_over(store, manifest, "the one before it is no longer kept")
    child = find(store, manifest.version + 1) if manifest.version + 1 in stored else None
    if child is not None and child.parent == manifest.checksum:
        return  # another driver has built on it
    if manifest.version in stored and store.find(manifest.name) == manifest.to_bytes():
        store.delete([manifest.name])
    raise _taken_over(store, manifest, f"version {stored[-1]} is committed")


def mark_flow(store: ObjectStore, manifest: Manifest) -> None:
    """Write down that there is a flow; `errors.Corrupt` if there is another one."""
    data = json.dumps({"flow_id": manifest.flow_id}).encode()
    if store.put_if_absent(FLOW, data):
        return
    found = store.find(FLOW)
    if found is not None and found != data:
        raise errors.Corrupt(
            "the manifests belong to another flow",
            detail=f"`{FLOW}` in {store.url} names another flow than `{manifest.name}`",
            hint=_RESTORE,
        )


def latest(store: ObjectStore, known: Manifest | None = None) -> Manifest | None:
    """Return the newest manifest, None if nothing was ever committed here.

    `known`, which an earlier call returned, is where the search starts; while it is the newest, nothing is read.
    """
    start = known or _hinted(store)
    is_hinted = start is not None
    for _ in range(_TRIES):
        found = _walk_up(store, start) if start is not None else None
        if found is not None:
            if not is_hinted:
                _refuse_missing(store, found)
            return found
        stored = versions(store)
        if not stored:
            sign = _sign_of_use(store)
            if sign is None:
                return None
            stored = versions(store)  # a new flow may have begun since the first listing
            if not stored:
                raise _lost(store, sign)
        start = find(store, stored[-1])
        if start is not None:
            _has_parent(store, start)
    raise errors.StorageFailed(
        "the newest commit cannot be found",
        detail=f"the manifests in {store.url} are listed, and are gone when read",
        hint="check that the storage lists what it holds, and nothing else",
    )


def newest(store: ObjectStore) -> Manifest | None:
    """Return the newest manifest as `latest` does, from the listing. For a driver, which is about to commit.

    A manifest that was deleted and came back, because a request was late, can mislead a hint but not a listing.
    """
    for _ in range(_TRIES):
        stored = versions(store)
        if not stored:
            return latest(store)
        start = find(store, stored[-1])
        if start is None:
            continue
        _has_parent(store, start)
        found = _walk_up(store, start)
        if found is not None:
            _refuse_missing(store, found)
            return found
    return latest(store)


def _sign_of_use(store: ObjectStore) -> str | None:
    """Return an object that only a flow can have left, None if there is none: nobody may begin one over another."""
    signs = [name for name in (FLOW, _HINT) if store.exists(name)]
    signs = signs or [name for name in store.list(_RUNS) if _OF_AN_EPOCH.match(name)]
    return signs[0] if signs else None


def _lost(store: ObjectStore, sign: str) -> errors.Corrupt:
    return errors.Corrupt(
        "the manifests of this state are missing",
        detail=f"{store.url} lists no manifest, but has `{sign}`: a flow was here",
        hint="restore the folder `manifests` from a backup, or use an empty state directory to start a new flow",
    )


def _refuse_missing(store: ObjectStore, found: Manifest) -> None:
    """Raise `errors.Corrupt` if a newer manifest than `found` was committed: the hint says so, and it is not there."""
    hinted = _hint(store)
    if hinted is None or hinted <= found.version or find(store, hinted) is not None:
        return
    if max(versions(store), default=-1) > hinted:  # it was dropped since
        return
    raise errors.Corrupt(
        "the newest commit of this state is missing",
        detail=f"`{_HINT}` in {store.url} says that version {hinted} was committed; the newest one that is there is "
        f"`{found.name}`, of epoch {found.epoch}",
        hint=f"restore `{name_of(hinted)}` from a backup. To go on from epoch {found.epoch}, and lose what was "
        f"committed since, delete `{_HINT}`",
    )


def load(store: ObjectStore, version: int) -> Manifest:
    """Return the manifest of `version`; `errors.NotCommitted` if there is none, or none any more."""
    found = find(store, version)
    if found is None:
        raise errors.NotCommitted(
            f"no manifest of version {version}",
            detail=f"`{name_of(version)}` is not in {store.url}",
            hint="it was never committed, or is no longer kept: read a newer one",
        )
    return found


def at_epoch(store: ObjectStore, epoch: int) -> Manifest:
    """Return the last manifest of `epoch`; `errors.NotCommitted`, naming what can be read, if it is not kept."""
    newest = latest(store)
    if newest is None:
        raise errors.NotCommitted(
            f"epoch {epoch} is not committed yet", detail=f"{store.url} holds no commit", hint="run the flow first"
        )
    if newest.epoch == epoch:
        return newest
    version = max((version for kept, _, version in newest.epochs if kept == epoch), default=None)
    if version is not None:
        found, following = find(store, version), find(store, version + 1)
        if found is not None and following is not None:
            check_chain(found, following)
            return found
    raise errors.NotCommitted(
        f"epoch {epoch} is {'not committed yet' if epoch > newest.epoch else 'no longer kept'}",
        detail=f"{store.url} keeps epochs {min(kept for kept, _, _ in newest.epochs)} to {newest.epoch}",
        hint="read one of these, or set the flow to keep more",
    )


def check_chain(older: Manifest, newer: Manifest) -> None:
    """Raise `errors.Corrupt` unless `older` is the parent of `newer`."""
    if newer.parent != older.checksum:
        raise _broken_chain(older.name, newer.name)


def _walk_up(store: ObjectStore, start: Manifest) -> Manifest | None:
    """Follow the chain to its end; None if that takes too long, or if the end was dropped while we walked."""
    newest = start
    for _ in range(_PROBES):
        following = find(store, newest.version + 1)
        if following is None:
            return newest if store.exists(newest.name) else None  # asked after the probe: see the third invariant
        check_chain(newest, following)
        newest = following
    return None


def _hinted(store: ObjectStore) -> Manifest | None:
    """Return the manifest that the hint points to, if it is certainly one of the chain."""
    version = _hint(store)
    found = None if version is None else find(store, version)
    return found if found is not None and _has_parent(store, found) else None


def write_hint(store: ObjectStore, manifest: Manifest) -> None:
    """Point to a manifest that is stored."""
    store.put(_HINT, hint_to(manifest.version))


def hint_to(version: int) -> bytes:
    """What the hint holds: a version that was committed, and a checksum."""
    text = b"%d" % version
    return b"%b %08x" % (text, zlib.crc32(text))


def _hint(store: ObjectStore) -> int | None:
    """A version that was committed once; None if there is no hint, or a damaged one."""
    data = store.find(_HINT) or b""
    text = data.partition(b" ")[0]
    return int(text) if text.isdigit() and len(text) <= 18 and data == hint_to(int(text)) else None


def _has_parent(store: ObjectStore, manifest: Manifest) -> bool:
    """Tell whether the manifest before this one is stored; `errors.Corrupt` if that is not its parent."""
    if manifest.version == 0:
        return False
    stored = store.find(name_of(manifest.version - 1))
    if stored is not None and not stored.endswith(_trailer(manifest.parent)):
        raise _broken_chain(name_of(manifest.version - 1), manifest.name)
    return stored is not None


def _check_place(store: ObjectStore, manifest: Manifest) -> None:
    """Raise unless `manifest` comes right after what is stored (itself aside)."""
    if manifest.version == 0:
        if any(versions(store)):
            raise _taken_over(store, manifest, "newer ones are stored")
    elif not _has_parent(store, manifest):
        raise _taken_over(store, manifest, "the one before it is no longer kept")


def _taken_over(store: ObjectStore, manifest: Manifest, why: str) -> errors.Fenced:
    return errors.Fenced(
        "another driver has taken over this state",
        detail=f"version {manifest.version} cannot be committed to {store.url}: {why}",
        hint="run one driver per state; stop this one, or start it again once the other has ended",
    )


def _check_fence(store: ObjectStore, manifest: Manifest) -> None:
    """Raise, and withdraw `manifest`, if the storage would let a second driver have its name."""
    if store.put_if_absent(manifest.name, manifest.to_bytes()):
        store.delete([manifest.name])
        raise errors.StorageFailed(
            "the storage cannot hold state: it overwrites what it was told not to",
            detail=f"`{manifest.name}` in {store.url} was created twice",
            hint="use a store with atomic put-if-absent (S3 needs `If-None-Match` on PUT)",
        )


def _fenced(manifest: Manifest, stored: bytes) -> errors.Fenced:
    try:
        other = Manifest.from_bytes(stored, manifest.name)
        by = f"another driver did, with epoch {other.epoch}, processing time {other.time_ms} ms"
    except errors.StateError as error:
        by = f"another driver did, and what it wrote cannot be read ({error.fact})"
    return errors.Fenced(
        "another driver has committed to this state",
        detail=f"version {manifest.version} (epoch {manifest.epoch}) was ours to commit; {by}",
        hint="run one driver per state; stop this one, or start it again once the other has ended",
    )


def _broken_chain(older: str, newer: str) -> errors.Corrupt:
    return errors.Corrupt(
        "the manifests do not belong together",
        detail=f"`{newer}` was not written after the present `{older}`: an old copy was restored over a newer state",
        hint=_RESTORE,
    )


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


def _trailer(checksum: str) -> bytes:
    return b'"%b"\n' % checksum.encode()
