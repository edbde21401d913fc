"""What definitions do to the state before new views are hydrated: drop, rename and alter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rejoinder.engine.hydration.alteration import Changes, altered
from rejoinder.engine.hydration.removal import reduced
from rejoinder.engine.hydration.renaming import renamed
from rejoinder.engine.version import Version
from rejoinder.ir.catalog import Catalog


@dataclass(frozen=True)
class Edits:
    """Edits of the state. Without any, all definitions keep theirs."""

    kept: Catalog | None = None
    """The definitions that keep their state; None means all. Others start anew, even if they are created again."""
    renames: Mapping[str, str] = field(default_factory=dict)
    """New names of kept views, by old name."""
    changes: Changes = field(default_factory=dict)
    """What happens to the columns of sources."""

    def base(self, version: Version) -> Version:
        """Return the version that a definition builds on."""
        before = version if self.kept is None else reduced(version, self.kept)
        return altered(renamed(before, self.kept or version.catalog, self.renames), self.changes)


NO_EDITS = Edits()
