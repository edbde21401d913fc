"""What really happened: every manifest that was ever stored, by whom, with which rows; and what may not be the case.

The ledger sees the store as it is, not as drivers see it. A commit counts as *acknowledged* once the driver that made
it goes on from it; acknowledged commits and their ancestors must be one chain.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rejoinder.errors import RejoinderError
from rejoinder.store.commits.manifest import FOLDER, Manifest
from tests.simulation.flows import Bag, Content, Flow, Row, ViewSpec

Arrived = list[tuple[str, Row, int]]


class Violation(Exception):  # noqa: N818 - what a seed finds
    """An invariant does not hold. `kind` is the same for the same invariant."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


@dataclass
class Commit:
    """A manifest that was stored."""

    manifest: Manifest
    author: str
    arrived: Arrived


@dataclass
class Ledger:
    """All commits by checksum; `acknowledged` are those that their drivers know of."""

    flow: Flow
    commits: dict[str, Commit] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    head: str = ""
    root: int = 0
    """The version that the state was restored to last: older ones are not stored."""
    _requests: dict[str, Commit] = field(default_factory=dict)
    _contents: dict[str, Content] = field(default_factory=dict)
    _answers: dict[tuple[str, str], Bag] = field(default_factory=dict)

    def requested(self, name: str, data: bytes, author: str, arrived: Arrived) -> str:
        """Note what a driver asks the store to keep; return the checksum if it is a manifest. Tries are one request."""
        if not name.startswith(f"{FOLDER}/"):
            return ""
        try:
            manifest = Manifest.from_bytes(data, name)
        except RejoinderError:
            return ""  # a hint, or the like
        parent = self._requests.get(manifest.parent)
        is_epoch = manifest.epoch > (-1 if parent is None else parent.manifest.epoch)
        self._requests.setdefault(manifest.checksum, Commit(manifest, author, arrived if is_epoch else []))
        return manifest.checksum

    def stored(self, checksum: str) -> None:
        """Note that a request took effect."""
        if checksum:
            self.commits[checksum] = self._requests[checksum]

    def acknowledge(self, manifest: Manifest | None, author: str) -> None:
        """Note that a driver goes on from a manifest."""
        if manifest is None or manifest.checksum in self.acknowledged:
            return
        commit = self.commits.get(manifest.checksum)
        if commit is None:
            raise Violation("phantom commit", f"{author} goes on from version {manifest.version}, which nobody stored")
        self.acknowledged.add(manifest.checksum)
        if not self.head or self._is_ancestor(self.head, manifest.checksum):
            self.head = manifest.checksum
        elif not self._is_ancestor(manifest.checksum, self.head):
            head = self.commits[self.head]
            raise Violation(
                "forked chain",
                f"{author} committed version {manifest.version} (epoch {manifest.epoch}), and {head.author} version "
                f"{head.manifest.version} (epoch {head.manifest.epoch}); neither comes after the other",
            )

    def newest(self, manifest: Manifest | None) -> Commit | None:
        """Check what somebody who opens the state now finds: it must come after all that was acknowledged."""
        if manifest is None:
            if self.head:
                raise Violation("lost state", "commits were acknowledged, and who opens the state finds nothing")
            return None
        commit = self.commits.get(manifest.checksum)
        if commit is None:
            raise Violation("phantom commit", f"version {manifest.version} is found, and nobody stored it")
        if self.head and not self._is_ancestor(self.head, manifest.checksum):
            head = self.commits[self.head].manifest
            raise Violation(
                "lost commit",
                f"version {head.version} (epoch {head.epoch}) was acknowledged, and who opens the state finds version "
                f"{manifest.version} (epoch {manifest.epoch}), which does not come after it",
            )
        return commit

    def path(self, checksum: str) -> list[Commit]:
        """The commits up to one, oldest first."""
        result = []
        while checksum in self.commits:
            result.append(self.commits[checksum])
            checksum = self.commits[checksum].manifest.parent
        return result[::-1]

    def content(self, commit: Commit) -> Content:
        """What the sources hold after a commit."""
        manifest = commit.manifest
        known = self._contents.get(manifest.checksum)
        if known is None:
            parent = self.commits.get(manifest.parent)
            before = Content() if parent is None else self.content(parent)
            known = before
            if manifest.epoch > before.epoch:
                known = before.after(manifest.epoch, manifest.time_ms, commit.arrived)
                self._check_once(commit)
            self._contents[manifest.checksum] = known
        return known

    def answer(self, commit: Commit, view: ViewSpec) -> Bag:
        """The batch answer of a view after a commit."""
        key = (commit.manifest.checksum, view.name)
        if key not in self._answers:
            created = commit.manifest.extra["created"].get(view.name, -1)
            self._answers[key] = view.batch(self.content(commit).for_view(created))
        return self._answers[key]

    def restore(self, checksum: str) -> None:
        """Go back to a commit: those after it have not happened, and those before it are no longer stored."""
        kept = {commit.manifest.checksum: commit for commit in self.path(checksum)}
        self.commits, self.head = kept, checksum
        self.acknowledged = (self.acknowledged & set(kept)) | {checksum}
        self.root = kept[checksum].manifest.version

    def is_committed(self, number: int) -> bool:
        """Whether a row is in some manifest that was stored."""
        return any(row["id"] == number for commit in self.commits.values() for _, row, _ in commit.arrived)

    def forget_all_but(self, present: set[str]) -> None:
        """Drop manifests that the store lost before any driver read them."""
        for checksum in [each for each in self.commits if each not in present]:
            if not any(self._is_ancestor(checksum, known) for known in self.acknowledged):
                del self.commits[checksum]

    def _check_once(self, commit: Commit) -> None:
        numbers = Counter(row["id"] for each in self.path(commit.manifest.checksum) for _, row, _ in each.arrived)
        twice = [number for number, count in numbers.items() if count > 1]
        if twice:
            raise Violation("row twice", f"row {twice[0]} was inserted once and is in {numbers[twice[0]]} epochs")

    def _is_ancestor(self, older: str, newer: str) -> bool:
        while newer in self.commits:
            if newer == older:
                return True
            newer = self.commits[newer].manifest.parent
        return False
