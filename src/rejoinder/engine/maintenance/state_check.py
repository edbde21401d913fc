"""Check a state without Spark: its manifests, and every object that they name against its size and checksum.

Safe while the flow runs: an object that is missing is a problem only if a manifest that names it is still stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rejoinder.engine.maintenance.backup import refs_of
from rejoinder.engine.version import named_files
from rejoinder.errors import Corrupt, NotCommitted
from rejoinder.state.sink_progress import recorded
from rejoinder.store.commits.manifest import Manifest, check_chain, find, name_of, versions
from rejoinder.store.commits.newest_manifest import newest
from rejoinder.store.commits.unnamed_files import Garbage, find_garbage
from rejoinder.store.objects.checked_objects import CheckedRef, map_checked
from rejoinder.store.objects.object_store import ObjectStore

OLDER_THAN_SECONDS = 24 * 3600.0
"""Younger unreferenced files may belong to a running epoch."""

Report = Callable[[int, int], None]
"""Called with the bytes that are checked, and with those that are to be checked."""


@dataclass(frozen=True)
class StateCheck:
    """The result of a check."""

    epoch: int
    manifests: int
    objects: int
    bytes: int
    problems: tuple[str, ...]
    """What is damaged or missing, one line each; empty if the state is intact."""
    unreferenced: tuple[Garbage, ...]
    """Files that no manifest names. They do no harm; a vacuum deletes them."""


def check_state(store: ObjectStore, report: Report = lambda checked, total: None) -> StateCheck:
    """Check all stored manifests and all objects that they name. Reads the whole state.

    Raises `NotCommitted` if there is no state, `NewerFormat` if this version cannot read it, and `Corrupt` if its
    newest manifest is lost or damaged.
    """
    latest = newest(store)
    if latest is None:
        raise NotCommitted(f"there is no state in {store.url}", hint="give the state directory of a flow")
    manifests, problems = _manifests(store, latest)
    refs: dict[str, tuple[CheckedRef, Manifest]] = {}
    for manifest in manifests:
        for ref in refs_of(manifest):
            refs[ref.name] = (ref, manifest)  # of several manifests that name it, the newest is deleted last
        problems += _failures(lambda manifest=manifest: recorded(store, manifest))  # type: ignore[misc]
    total, checked = sum(ref.size for ref, _ in refs.values()), 0
    for ref, manifest in refs.values():
        failures = _failures(lambda ref=ref: map_checked(store, ref, "an object"))  # type: ignore[misc]
        if failures and (manifest == latest or store.exists(manifest.name)):
            problems += failures
        checked += ref.size
        report(checked, total)
    unreferenced = find_garbage(store, named_files, OLDER_THAN_SECONDS)
    return StateCheck(latest.epoch, len(manifests), len(refs), total, tuple(problems), tuple(unreferenced))


def _manifests(store: ObjectStore, latest: Manifest) -> tuple[list[Manifest], list[str]]:
    """Return the intact manifests up to the newest one, oldest first, and what is wrong with the others."""
    manifests: list[Manifest] = []
    problems: list[str] = []
    stored = [version for version in versions(store) if version <= latest.version]
    problems += [
        f"`{name_of(version)}` is missing" for version in range(stored[0], latest.version) if version not in stored
    ]
    for version in stored:
        try:
            manifest = find(store, version)
            if manifest is not None:
                if manifests and manifests[-1].version == version - 1:
                    check_chain(manifests[-1], manifest)
                manifests.append(manifest)
        except Corrupt as damage:
            problems.append(_text(damage))
    return manifests, problems


def _failures(read: Callable[[], object]) -> list[str]:
    try:
        read()
    except Corrupt as damage:
        return [_text(damage)]
    return []


def _text(damage: Corrupt) -> str:
    return f"{damage.fact}: {damage.detail}"
