"""Detects lost commits: a used state without manifests, and evidence of newer commits than the newest manifest.

The hint `manifests/latest` is written after each commit and has a checksum, so the version that it names was committed.
If the hint is lost as well, other objects prove that version n was committed. None of them precedes the commit:

- `flow.json` names n or a newer version. It holds the identity of the flow and a version that was committed: until the
  first collection the newest one, later the newest one when the last driver started;
- `sinks/<n>.json`, or one of a newer version: progress of sinks is written after a commit was delivered;
- a manifest lists the versions that are retained with it. If the oldest of them is missing, a newer commit has dropped
  it. A backup holds a single version, which `flow.json` names: earlier ones were never stored there.

So a flow whose newest manifest and hint are both lost is refused, unless all of this holds: it was killed after its
last commit and before the collection (or is a restored copy with fewer than eight commits since), at least eight
commits were made in total, and no progress of a sink is left. Sinks that store epochs themselves refuse such a flow
even then.

If the hint is readable, nothing else is checked. The loss of an old manifest must not stop an intact flow; and an older
copy of the folder `manifests`, hint included, is an older state, whatever else the store contains.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from rejoinder import errors
from rejoinder.store.commits.manifest import FOLDER, Manifest, find, name_of, versions
from rejoinder.store.objects.object_store import ObjectStore

FLOW = "flow.json"
HINT = f"{FOLDER}/latest"
SINK_PROGRESS = "sinks"
_SINK_PROGRESS_NAME = re.compile(rf"{SINK_PROGRESS}/(\d{{20}})\.json")
_OF_COMMIT = re.compile(rf"(runs|epochs|positions)/\d{{10,}}/.+|{SINK_PROGRESS}/\d{{20}}\.json")


def write_hint(store: ObjectStore, manifest: Manifest) -> None:
    """Let the hint point to a stored manifest."""
    store.put(HINT, hint_to(manifest.version))


def hint_to(version: int) -> bytes:
    """Return the content of the hint: a committed version, and a checksum."""
    text = b"%d" % version
    return b"%b %08x" % (text, zlib.crc32(text))


def hinted_version(store: ObjectStore) -> int | None:
    """Return the version that the hint names, which was committed; None if the hint is missing or damaged."""
    data = store.find(HINT) or b""
    text = data.partition(b" ")[0]
    return int(text) if text.isdigit() and len(text) <= 18 and data == hint_to(int(text)) else None


def is_young(manifest: Manifest) -> bool:
    """Whether no manifest of the flow has been collected yet."""
    return min(version for _, _, version in manifest.epochs) == 0


def mark_flow(store: ObjectStore, manifest: Manifest, committed: int, *, first: int | None = None) -> None:
    """Write to `flow.json` that the flow of a manifest owns this state, and has committed a version.

    `first` is the oldest version that was ever stored here; a backup passes it because it changes it. Raises
    `errors.Corrupt` if another flow owns the state, or if `flow.json` is damaged.
    """
    data = store.find(FLOW)
    if data is None:  # if the marker of an older flow was lost, its first version is unknown
        store.put_if_absent(
            FLOW, FlowMark(manifest.flow_id, committed, committed if first is None else first).to_bytes()
        )
        return
    stored = _flow(data)
    if stored is None or stored.flow_id != manifest.flow_id:
        raise errors.Corrupt(
            f"`{FLOW}` is damaged" if stored is None else "the manifests belong to another flow",
            detail=f"`{FLOW}` in {store.url} fails its checksum, or another version of Rejoinder wrote it"
            if stored is None
            else f"`{FLOW}` in {store.url} names another flow than `{manifest.name}`",
            hint=f"delete `{FLOW}` if all other files belong together: the next commit writes it. Otherwise restore "
            "the state from a backup, into an empty folder",
        )
    updated = FlowMark(manifest.flow_id, max(stored.version, committed), stored.first if first is None else first)
    if updated != stored:
        store.put(FLOW, updated.to_bytes())


def marked_flow(store: ObjectStore) -> FlowMark | None:
    """Return which flow owns this state, and what it has committed; None if `flow.json` is missing or damaged."""
    return _flow(store.find(FLOW) or b"")


@dataclass(frozen=True)
class FlowMark:
    """The content of `flow.json`."""

    flow_id: str
    version: int
    """A version that was committed."""
    first: int
    """The oldest version that was ever stored here."""

    def to_bytes(self) -> bytes:
        body = json.dumps({"flow_id": self.flow_id, "version": self.version, "first": self.first}).encode()
        return b"%b\n%08x\n" % (body, zlib.crc32(body))


def _flow(data: bytes) -> FlowMark | None:
    """Read `flow.json`; None if it is damaged."""
    try:
        fields = json.loads(data.partition(b"\n")[0])
        flow = FlowMark(str(fields["flow_id"]), int(fields["version"]), int(fields["first"]))
    except (ValueError, KeyError, TypeError):
        return None
    return flow if data == flow.to_bytes() else None


def sign_of_use(store: ObjectStore) -> str | None:
    """Return the name of an object that only a flow can have written; None if there is none.

    A new flow must not start on the state of another. Files of definitions before the first epoch do not count: a
    first run that was killed leaves them.
    """
    signs = [name for name in (FLOW, HINT) if store.exists(name)]
    signs = signs or [name for name in store.list() if _OF_COMMIT.fullmatch(name)]
    return signs[0] if signs else None


def lost(store: ObjectStore, sign: str) -> errors.Corrupt:
    """Return the error for a used state without manifests."""
    return errors.Corrupt(
        "the manifests of this state are missing",
        detail=f"{store.url} lists no manifest, but contains `{sign}` of a flow",
        hint="restore the folder `manifests` from a backup, or use an empty state directory to start a new flow",
    )


def refuse_lost(store: ObjectStore, newest: Manifest) -> None:
    """Raise `errors.Corrupt` if a newer manifest than `newest`, the newest that is stored, was committed."""
    for sign in _signs(store, newest):
        if sign.version > newest.version and not _is_stored(store, sign.version):
            raise _newest_is_missing(store, newest, sign)


@dataclass(frozen=True)
class _Sign:
    """Evidence that a version was committed."""

    text: str
    version: int


def _signs(store: ObjectStore, newest: Manifest) -> Iterator[_Sign]:
    hinted = hinted_version(store)
    if hinted is not None:
        yield _Sign(f"`{HINT}` says that version {hinted} was committed", hinted)
        return
    marked = marked_flow(store)
    if marked is not None:
        yield _Sign(f"`{FLOW}` says that version {marked.version} was committed", marked.version)
    names = map(_SINK_PROGRESS_NAME.fullmatch, store.list(SINK_PROGRESS))
    delivered = max((int(name[1]) for name in names if name), default=None)
    if delivered is not None:
        yield _Sign(f"`{SINK_PROGRESS}/{delivered:020d}.json` was written after a newer commit", delivered)
    if marked is None:
        return
    oldest = max(marked.first, min(version for _, _, version in newest.epochs))
    if not store.exists(name_of(oldest)):
        yield _Sign(f"`{name_of(oldest)}` is missing, and only a newer commit drops it", newest.version + 1)


def _is_stored(store: ObjectStore, version: int) -> bool:
    """Whether a version, or a newer one, was stored since the search for the newest manifest."""
    return find(store, version) is not None or max(versions(store), default=-1) > version


def _newest_is_missing(store: ObjectStore, newest: Manifest, sign: _Sign) -> errors.Corrupt:
    return errors.Corrupt(
        "the newest commit of this state is missing",
        detail=f"the newest manifest in {store.url} is `{newest.name}`, of epoch {newest.epoch}, but {sign.text}",
        hint=f"restore `{name_of(sign.version)}`, or the whole state, from a backup. To continue from epoch "
        f"{newest.epoch} and lose later commits, write `{hint_to(newest.version).decode()}` to `{HINT}`",
    )
