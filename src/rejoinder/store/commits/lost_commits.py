"""Notices that commits were lost: signs of a flow without manifests, and of newer commits than the newest manifest.

The hint `manifests/latest` is written after each commit and has a checksum, so a version that it names was committed.
If it is lost as well, other things show that version n was committed. None of them is ever ahead of the commits:

- `flow.json` names n or a newer version. It says which flow lives here, and, until the first collection, how far it is;
- `sinks/<n>.json`, or one of a newer version: such a note is written after a commit was delivered;
- a manifest says which versions are retained with it. If the oldest of them is missing, a newer commit has dropped it.
  A backup holds one version only, and `flow.json` says which: those before it were never stored there.

So a flow whose newest manifest and hint are both lost is refused, unless all of this holds: it was killed after its
last commit and before the collection (or is a restored copy with fewer than eight commits since), eight commits or more
were made in all, and no note of a sink is left. Sinks that remember epochs themselves refuse such a flow even then.

With a hint the rest is not asked for. The loss of an old manifest must not stop a flow that is whole; and an older copy
of the folder `manifests`, hint included, is an older state, whatever lies beside it.
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
NOTES = "sinks"
_NOTE = re.compile(rf"{NOTES}/(\d{{20}})\.json")
_OF_A_COMMIT = re.compile(rf"(runs|epochs|positions)/\d{{10,}}/.+|{NOTES}/\d{{20}}\.json")


def write_hint(store: ObjectStore, manifest: Manifest) -> None:
    """Point to a manifest that is stored."""
    store.put(HINT, hint_to(manifest.version))


def hint_to(version: int) -> bytes:
    """What the hint holds: a version that was committed, and a checksum."""
    text = b"%d" % version
    return b"%b %08x" % (text, zlib.crc32(text))


def hinted_version(store: ObjectStore) -> int | None:
    """A version that was committed once; None if there is no hint, or a damaged one."""
    data = store.find(HINT) or b""
    text = data.partition(b" ")[0]
    return int(text) if text.isdigit() and len(text) <= 18 and data == hint_to(int(text)) else None


def is_young(manifest: Manifest) -> bool:
    """Tell whether no manifest of the flow has been collected yet."""
    return min(version for _, _, version in manifest.epochs) == 0


def mark_flow(store: ObjectStore, manifest: Manifest, committed: int, *, first: int | None = None) -> None:
    """Write down that the flow of a manifest lives here, and that it has committed a version.

    `first` is the oldest version that was ever stored here, if that is known to have changed: for a backup. Raises
    `errors.Corrupt` if another flow lives here, or if that cannot be told.
    """
    version = committed if is_young(manifest) else 0
    data = store.find(FLOW)
    if data is None:  # of a flow whose marker is lost, nobody knows where it began
        store.put_if_absent(FLOW, _Flow(manifest.flow_id, version, committed if first is None else first).to_bytes())
        return
    known = _flow(data)
    if known is None or known.flow_id != manifest.flow_id:
        raise errors.Corrupt(
            f"`{FLOW}` is damaged" if known is None else "the manifests belong to another flow",
            detail=f"`{FLOW}` in {store.url} fails its checksum, or another version of Rejoinder wrote it"
            if known is None
            else f"`{FLOW}` in {store.url} names another flow than `{manifest.name}`",
            hint=f"delete `{FLOW}` if all other files belong together: the next commit writes it. Otherwise restore "
            "the state from a backup, into an empty folder",
        )
    wanted = _Flow(manifest.flow_id, max(known.version, version), known.first if first is None else first)
    if wanted != known:
        store.put(FLOW, wanted.to_bytes())


def marked_flow(store: ObjectStore) -> str | None:
    """The identity of the flow that lives here; None if no flow is marked, or if the marker is damaged."""
    known = _flow(store.find(FLOW) or b"")
    return None if known is None else known.flow_id


@dataclass(frozen=True)
class _Flow:
    """What `flow.json` holds."""

    flow_id: str
    version: int
    """A version that was committed."""
    first: int
    """The oldest version that was ever stored here."""

    def to_bytes(self) -> bytes:
        body = json.dumps({"flow_id": self.flow_id, "version": self.version, "first": self.first}).encode()
        return b"%b\n%08x\n" % (body, zlib.crc32(body))


def _flow(data: bytes) -> _Flow | None:
    """Read `flow.json`; None if it is damaged."""
    try:
        fields = json.loads(data.partition(b"\n")[0])
        flow = _Flow(str(fields["flow_id"]), int(fields["version"]), int(fields["first"]))
    except (ValueError, KeyError, TypeError):
        return None
    return flow if data == flow.to_bytes() else None


def sign_of_use(store: ObjectStore) -> str | None:
    """Return an object that only a flow can have left, None if there is none: nobody may begin one over another.

    Files of definitions before the first epoch do not count: a first run that was killed leaves them.
    """
    signs = [name for name in (FLOW, HINT) if store.exists(name)]
    signs = signs or [name for name in store.list() if _OF_A_COMMIT.fullmatch(name)]
    return signs[0] if signs else None


def lost(store: ObjectStore, sign: str) -> errors.Corrupt:
    """Say that all manifests are gone."""
    return errors.Corrupt(
        "the manifests of this state are missing",
        detail=f"{store.url} lists no manifest, but has `{sign}`: a flow was here",
        hint="restore the folder `manifests` from a backup, or use an empty state directory to start a new flow",
    )


def refuse_lost(store: ObjectStore, found: Manifest) -> None:
    """Raise `errors.Corrupt` if a newer manifest than `found`, the newest that is stored, was committed."""
    for sign in _signs(store, found):
        if sign.version > found.version and not _is_stored(store, sign.version):
            raise _newest_is_missing(store, found, sign)


@dataclass(frozen=True)
class _Sign:
    """What shows that a version was committed."""

    text: str
    version: int


def _signs(store: ObjectStore, found: Manifest) -> Iterator[_Sign]:
    hinted = hinted_version(store)
    if hinted is not None:
        yield _Sign(f"`{HINT}` says that version {hinted} was committed", hinted)
        return
    marked = _flow(store.find(FLOW) or b"")
    if marked is not None:
        yield _Sign(f"`{FLOW}` says that version {marked.version} was committed", marked.version)
    notes = [int(note[1]) for name in store.list(NOTES) if (note := _NOTE.fullmatch(name))]
    if notes:
        yield _Sign(f"`{NOTES}/{max(notes):020d}.json` was written after a newer commit", max(notes))
    if marked is None:
        return
    oldest = max(marked.first, min(version for _, _, version in found.epochs))
    if not store.exists(name_of(oldest)):
        yield _Sign(f"`{name_of(oldest)}` is missing, and is kept until a newer commit", found.version + 1)


def _is_stored(store: ObjectStore, version: int) -> bool:
    """Tell whether a version, or a newer one after which it was dropped, has been stored meanwhile."""
    return find(store, version) is not None or max(versions(store), default=-1) > version


def _newest_is_missing(store: ObjectStore, found: Manifest, sign: _Sign) -> errors.Corrupt:
    return errors.Corrupt(
        "the newest commit of this state is missing",
        detail=f"the newest manifest in {store.url} is `{found.name}`, of epoch {found.epoch}, but {sign.text}",
        hint=f"restore `{name_of(sign.version)}`, or the whole state, from a backup. To go on from epoch "
        f"{found.epoch}, and lose what was committed since, write `{hint_to(found.version).decode()}` to `{HINT}`",
    )
