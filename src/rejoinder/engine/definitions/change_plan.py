"""What a batch of definitions would change: views, arrangements, rows to read, sinks. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rejoinder.engine.definitions.definition_batch import Batch, edits_of
from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.redefinition import redefinition
from rejoinder.engine.hydration.replacement import has_same_columns, refuse_spark_state, replaced_views, retired
from rejoinder.engine.hydration.view_starts import settled
from rejoinder.plan.physical.dataflow import ArrangementScan, ChangelogScan, SourceScan
from rejoinder.state.flow_state import State
from rejoinder.store.runs.spine import Spine


@dataclass(frozen=True)
class Amount:
    """Rows and bytes of files. Rows that were retracted count until compaction removes them."""

    rows: int
    bytes: int

    @classmethod
    def of(cls, parts: Iterable[Spine]) -> Amount:
        """Add up the runs of an arrangement or a changelog."""
        refs = [ref for part in parts for ref in part.refs]
        return cls(sum(ref.rows for ref in refs), sum(ref.size for ref in refs))

    def __str__(self) -> str:
        return f"{self.rows:,} rows, {self.bytes:,} bytes"


@dataclass(frozen=True)
class ChangePlan:
    """What would change. Names are in the order of the catalog."""

    epoch: int
    """The epoch that the commit would have."""
    is_epoch: bool
    """Whether it would be a new epoch, with the difference of replaced views."""
    views: dict[str, str]
    """By view, what happens to it: unchanged, replaced, new, dropped; with the reason."""
    sources: dict[str, str]
    """By altered source, what happens to its columns."""
    kept: dict[str, Amount]
    built: tuple[str, ...]
    freed: dict[str, Amount]
    """Arrangements that stay, that are filled, and that nothing needs any more."""
    read: dict[str, Amount] = field(default_factory=dict)
    """What is read to fill views and arrangements, and to compute differences."""
    reread: tuple[str, ...] = ()
    """The sources that are read again."""
    sinks: dict[str, str] = field(default_factory=dict)
    """By sink, what it receives."""

    @property
    def is_empty(self) -> bool:
        """Whether no view, arrangement or sink changes."""
        return not (self.sources or self.built or self.freed or self.sinks or set(self.views.values()) - {"unchanged"})

    def lines(self) -> list[str]:
        """Return the plan as text."""
        arrangements = {name: f"kept: {amount}" for name, amount in self.kept.items()}
        arrangements |= dict.fromkeys(self.built, "built")
        arrangements |= {name: f"freed: {amount}" for name, amount in self.freed.items()}
        read = {name: str(amount) for name, amount in self.read.items()}
        read |= dict.fromkeys(self.reread, "from its start")
        sections = {
            "sources": self.sources,
            "views": self.views,
            "arrangements": arrangements,
            "to read": read,
            "sinks": self.sinks,
        }
        result = [f"commits epoch {self.epoch}: the difference of replaced views"] if self.is_epoch else []
        for title, entries in sections.items():
            width = max(map(len, entries), default=0)
            result += [title] if entries else []
            result += [f"  {name:{width}}  {text}" for name, text in entries.items()]
        return result


def change_plan(engine: Engine, batch: Batch) -> ChangePlan:
    """Plan a batch without effect. Raises the `PlanningError` with which it would be refused."""
    before = edits_of(batch).base(engine.version)
    views = replaced_views(before, batch.catalog)
    refuse_spark_state(before, views)
    base = retired(before, views, batch.catalog)
    todo = redefinition(base, engine.replay(base), settled(batch.catalog, base.state, base.deliveries))
    held, scans = set(todo.filling.holdings.held), todo.filling.dataflow.scans.values()
    needed = [arrangement.id for arrangement in todo.plan.dataflow.arrangements]
    stored = before.state.arrangements
    names = {scan.arrangement.id for scan in scans if isinstance(scan, ArrangementScan)}
    is_epoch = bool(views) and engine.epoch >= 0
    changelogs = {scan.view for scan in scans if isinstance(scan, ChangelogScan)}
    changelogs |= {name for name in views if is_epoch and has_same_columns(before.catalog, batch.catalog, name)}
    return ChangePlan(
        engine.epoch + is_epoch,
        is_epoch,
        _views(batch, before.state, views),
        {name: _alteration(batch, name) for name in dict.fromkeys(batch.altered)},
        kept={name: Amount.of(stored[name]) for name in needed if name in held},
        built=tuple(name for name in needed if name not in held),
        freed={name: Amount.of(parts) for name, parts in stored.items() if name not in needed},
        read={name: Amount.of(base.state.arrangements[name]) for name in sorted(names & base.state.arrangements.keys())}
        | {f"content of {name}": Amount.of(before.state.changelogs[name]) for name in sorted(changelogs)},
        reread=tuple(scan.source.name for scan in scans if isinstance(scan, SourceScan)),
        sinks=_sinks(batch, views if is_epoch else ()),
    )


def _alteration(batch: Batch, source: str) -> str:
    words = {"add": "adds `{0}`", "drop": "drops `{0}`", "rename": "renames `{0}` to `{1}`", "cast": "widens `{0}`"}
    changes = [words[change.kind].format(change.column, change.to) for change in batch.changes.get(source, ())]
    return f"altered: {', '.join(changes) or 'delays or options'}; rows of the past are not rewritten"


def _views(batch: Batch, before: State, replaced: Sequence[str]) -> dict[str, str]:
    old_names = {new: old for old, new in batch.renames.items()}
    result = {}
    for view in batch.catalog.views:
        if view.name in replaced:
            text = "replaced" if view.name in batch.redefined else "replaced: it reads a replaced view"
        else:
            text = "unchanged" if view.name in before.changelogs else "new"
        result[view.name] = text if view.name not in old_names else f"{text}; was `{old_names[view.name]}`"
    names = {view.name: batch.renames.get(view.name, view.name) for view in batch.before.views}
    return result | {old: "dropped" for old, new in names.items() if batch.catalog.find(new) is None}


def _sinks(batch: Batch, replaced: Sequence[str]) -> dict[str, str]:
    result = {}
    for sink in batch.catalog.sinks:
        if sink.name not in {other.name for other in batch.before.sinks}:
            result[sink.name] = "new" if sink.options.get("from") == "now" else f"new: the content of `{sink.view}`"
        elif sink.view in replaced:
            result[sink.name] = f"the difference of `{sink.view}`"
    return result
