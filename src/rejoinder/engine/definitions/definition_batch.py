"""Several definitions as one commit: all are checked first, then the engine adopts the final catalog at once.

A definition may be changed freely as long as its sources have no committed rows. It is replaced, and its dependents are
defined again on top of the new definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rejoinder.engine.definitions.altered_sources import FilesRead, alteration, existing_source
from rejoinder.engine.definitions.definition_statements import (
    Creation,
    Definition,
    defined,
    existing_view,
    find_defined,
    is_defined,
    says_same,
    statement_key,
)
from rejoinder.engine.definitions.dependents import (
    Defined,
    Key,
    definitions_of,
    key_of,
    sources_of,
    with_dependents,
    without,
)
from rejoinder.engine.definitions.replaced_views import (
    as_replacement,
    follow,
    refuse_other_columns,
    restored,
    with_new_name,
    with_replacement,
)
from rejoinder.engine.engine import Engine
from rejoinder.engine.hydration.edits import Edits
from rejoinder.errors import DefinitionConflict, PlanningError
from rejoinder.ir.catalog import Catalog, Sink, Source, View
from rejoinder.ir.evolution.column_changes import ColumnChange
from rejoinder.ir.new_names import renamed_catalog
from rejoinder.sql.bind.windows.order_and_limit import ignored_order
from rejoinder.sql.statements.alter_source import AlterSource
from rejoinder.sql.statements.function_statements import CreateFunction
from rejoinder.sql.statements.statement_parser import (
    AlterView,
    CreateSource,
    CreateView,
    Drop,
    Question,
    RenameView,
    SetTimeZone,
    Statement,
)


@dataclass
class Batch:
    """Applies definitions one after the other to a catalog, without a commit.

    `fed` are the names of the sources with committed rows. `is_rerun`: definitions that the catalog has already are
    skipped, as when the same file is run again.
    """

    before: Catalog
    fed: frozenset[str]
    is_rerun: bool = False
    read: Mapping[str, FilesRead] = field(default_factory=dict)
    """What the sources in `fed` have read."""
    catalog: Catalog = field(init=False)
    created: list[Defined] = field(default_factory=list)
    """New definitions, including replacements."""
    replaced: list[str] = field(default_factory=list)
    """Names whose definition has changed."""
    dropped: list[str] = field(default_factory=list)
    """Names that DROP removed, dependents last."""
    removed: set[Key] = field(default_factory=set)
    """Earlier definitions that were removed in between; some of them may exist again."""
    uncollected: str | None = None
    """Why files of old versions could not be deleted after the commit."""
    redefined: list[str] = field(default_factory=list)
    """Names of views that CREATE OR REPLACE or ALTER VIEW gives another query. They keep what both queries share."""
    renames: dict[str, str] = field(default_factory=dict)
    """New names of earlier views, by old name."""
    changes: dict[str, tuple[ColumnChange, ...]] = field(default_factory=dict)
    """What ALTER does to the columns of earlier sources, by source."""
    altered: list[str] = field(default_factory=list)
    """Names of the sources that ALTER changes."""
    _cascaded: set[Key] = field(default_factory=set)
    _displaced: list[Defined] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.catalog = self.before

    def add(self, statement: Definition) -> None:
        """Apply one statement. Raises a `PlanningError`."""
        if isinstance(statement, Drop):
            self._drop(statement)
        elif isinstance(statement, RenameView):
            self._rename(statement)
        elif isinstance(statement, AlterSource):
            self._alter(statement)
        elif isinstance(statement, AlterView) and statement.query is not None:
            replacement = as_replacement(self.catalog, statement)
            self._recreate(self.catalog.get(replacement.name), replacement)
        elif isinstance(statement, SetTimeZone):
            self.catalog = defined(self.catalog, statement)
        elif isinstance(statement, AlterView):
            if not (self.is_rerun and is_defined(self.catalog, statement)):
                self.catalog = defined(self.catalog, statement)
        else:
            known = find_defined(self.catalog, statement)
            is_new = known is None or not self._is_created(known)
            if known is None:
                self._create(statement)
            elif isinstance(statement, CreateView) and statement.or_replace:
                self._recreate(known, statement)
            elif isinstance(statement, CreateFunction) and statement.or_replace:
                self._declare_again(known, statement)
            elif self._is_kept(known, statement, is_new=is_new):
                return
            elif is_new and self._may_replace(known, statement):
                self._replace(known, statement)
            else:
                is_tolerant = statement.if_not_exists and not self.is_rerun
                if is_new and not is_tolerant and not says_same(known, statement):
                    is_defined(self.catalog, statement)  # raises, and shows both definitions
                self.catalog = defined(self.catalog, statement)

    def finish(self) -> None:
        """Raise `DefinitionConflict` if an earlier definition no longer fits the relations that it reads."""
        for definition in self._displaced:
            try:
                self.catalog = restored(self.catalog, definition)
            except PlanningError as error:
                raise DefinitionConflict(
                    f"`{definition.name}` does not fit the new definition of "
                    f"{_listed(dict.fromkeys([*self.replaced, *self.redefined, *self.altered]))}",
                    detail=error.fact,
                    hint=f"change `{definition.name}` in the same text, or DROP it",
                ) from error
        if self.redefined or self.altered:
            edited = {("relation", name.lower()) for name in self.redefined}
            before = renamed_catalog(without(self.before, self.removed), self.renames)
            refuse_other_columns(before, self.catalog, edited, self._cascaded, altered=self.altered)

    def _is_kept(self, known: Defined, statement: Creation, *, is_new: bool) -> bool:
        """Return whether the definition in the catalog stays as it is, without an error."""
        if says_same(known, statement):
            return self.is_rerun or (is_new and self._is_free(known))
        if self.is_rerun or not statement.if_not_exists:
            return False
        try:
            return defined(self.catalog, statement) == self.catalog
        except DefinitionConflict:
            return False

    def _may_replace(self, known: Defined, statement: Creation) -> bool:
        is_source = isinstance(statement, CreateSource)
        is_relation = isinstance(known, Source | View)
        return self._is_free(known) and (not is_relation or is_source == isinstance(known, Source))

    def _is_free(self, known: Defined) -> bool:
        return not sources_of(self.catalog, known) & self.fed

    def _create(self, statement: Creation) -> None:
        key = statement_key(statement)
        self.catalog = defined(self.catalog, statement)
        created = [definition for definition in definitions_of(self.catalog) if key_of(definition) == key]
        self.created += created
        if any(key_of(displaced) == key for displaced in self._displaced):
            self._displaced = [displaced for displaced in self._displaced if key_of(displaced) != key]
            names = [definition.name for definition in created]
            if key in self.removed:
                self.replaced += names
            else:
                self.redefined += names
        self._restore()

    def _replace(self, known: Defined, statement: Creation) -> None:
        removed = with_dependents(self.catalog, known)
        self._remove(removed)
        self._displaced += [definition for definition in removed if definition is not known]
        self.replaced.append(known.name)
        self._create(statement)

    def _recreate(self, known: Defined, statement: CreateView) -> None:
        """Give a view another definition. What reads it is bound to the new columns. An equal definition stays."""
        if says_same(known, statement):
            return
        view = existing_view(self.catalog, known.name)
        removed = with_dependents(self.catalog, view)
        smaller = without(self.catalog, map(key_of, removed))
        self.catalog = with_replacement(smaller, view, statement, removed)
        self._displaced += [definition for definition in removed if definition is not view]
        if statement.cascade:
            self._cascaded |= set(map(key_of, removed))
        if not self._is_created(view):
            self.redefined.append(view.name)
        self._restore()

    def _alter(self, statement: AlterSource) -> None:
        """Change the columns, the delays or the options of a source. What reads it is bound to the new columns."""
        known, order = existing_source(self.catalog, statement), [each.name for each in self.catalog.relations]
        is_fed = known.name in self.fed and not self._is_created(known)
        made = alteration(known, statement, self.catalog.time_zone, self.read.get(known.name) if is_fed else None)
        if made.source == known:
            return
        removed = with_dependents(self.catalog, known)
        smaller = without(self.catalog, map(key_of, removed))
        self.catalog = smaller.with_relation(made.source)
        self._displaced += [follow(each, made.changes) for each in removed if each is not known]
        self._cascaded |= set(map(key_of, removed)) if statement.cascade else set()
        if not self._is_created(known):
            self.changes[known.name] = (*self.changes.get(known.name, ()), *made.changes)
            self.altered.append(known.name)
        self._restore()
        places = {name: place for place, name in enumerate(order)}
        if not self._displaced:  # a view stays as old as it is
            relations = sorted(self.catalog.relations, key=lambda each: places.get(each.name, len(places)))
            self.catalog = replace(self.catalog, relations=tuple(relations))

    def _rename(self, statement: RenameView) -> None:
        view, self.catalog = with_new_name(self.catalog, statement)
        name = statement.new_name
        if self._is_created(view):
            self.created = [replace(d, name=name) if key_of(d) == key_of(view) else d for d in self.created]
        else:
            earlier = next((old for old, new in self.renames.items() if new == view.name), view.name)
            self.renames[earlier] = name
        self.redefined = [name if redefined == view.name else redefined for redefined in self.redefined]

    def _is_created(self, definition: Defined) -> bool:
        return key_of(definition) in {key_of(created) for created in self.created}

    def _declare_again(self, known: Defined, statement: CreateFunction) -> None:
        """Apply CREATE OR REPLACE FUNCTION: DROP and CREATE in one commit. An equal declaration stays.

        Raises `DefinitionConflict` if a view calls the function: its rows have the answers of the old one.
        """
        if not says_same(known, statement):
            dropped = list(self.dropped)
            self._drop(Drop("FUNCTION", known.name, False))
            self.dropped = dropped
            self._create(statement)

    def _restore(self) -> None:
        """Define the dependents of replaced definitions again, as far as they fit now."""
        displaced, self._displaced = self._displaced, []
        for definition in displaced:
            try:
                self.catalog = restored(self.catalog, definition)
            except PlanningError:  # a later statement may replace it as well; otherwise `finish` raises
                self._displaced.append(definition)

    def _drop(self, statement: Drop) -> None:
        key = statement_key(statement)
        if any(key_of(displaced) == key for displaced in self._displaced):
            self._displaced = [displaced for displaced in self._displaced if key_of(displaced) != key]
            return
        smaller = defined(self.catalog, statement)
        left = {key_of(definition) for definition in definitions_of(smaller)}
        removed = [definition for definition in definitions_of(self.catalog) if key_of(definition) not in left]
        self._remove(removed)
        self.dropped += [definition.name for definition in sorted(removed, key=lambda dropped: key_of(dropped) != key)]

    def _remove(self, definitions: Sequence[Defined]) -> None:
        keys = {key_of(definition) for definition in definitions}
        self.catalog = without(self.catalog, keys)
        self.created = [definition for definition in self.created if key_of(definition) not in keys]
        self.removed |= keys & {key_of(definition) for definition in definitions_of(self.before)}

    @property
    def notes(self) -> list[str]:
        """Messages for the user about the batch."""
        notes = [] if self.uncollected is None else [self.uncollected]
        if self.replaced:
            whose = "its" if len(self.replaced) == 1 else "their"
            notes.append(f"replaced {_listed(self.replaced)}: no row of {whose} sources was committed yet")
        return notes + [note for definition in self.created if (note := _order_note(definition)) is not None]


def planned(engine: Engine, statements: Iterable[Definition], *, is_rerun: bool = False) -> Batch:
    """Apply statements to the catalog of an engine, without a commit. Raises a `PlanningError`."""
    engine.publisher.settle()  # a definition whose response was lost is part of the catalog
    version = engine.version
    read = {
        name: FilesRead(identity, version.positions.files_of(identity)) for name, identity in version.attached.items()
    }
    batch = Batch(version.catalog, frozenset(version.fed), is_rerun, read)
    for statement in statements:
        batch.add(statement)
    batch.finish()
    return batch


def define_all(
    engine: Engine,
    statements: Iterable[Definition],
    *,
    is_rerun: bool = False,
    before_commit: Callable[[Batch], None] = lambda batch: None,
    time_ms: int | None = None,
) -> Batch:
    """Execute definitions at an epoch boundary: all of them in one commit, or none. Raises a `PlanningError`.

    `before_commit` may raise to cancel the batch. `time_ms` is the time of the commit; None means now.
    """
    with engine.lock:
        batch = planned(engine, statements, is_rerun=is_rerun)
        before_commit(batch)
        if batch.removed or batch.catalog != engine.version.catalog:
            engine.define(batch.catalog, edits_of(batch), time_ms=time_ms)
            batch.uncollected = engine.collector.notice
    return batch


def edits_of(batch: Batch) -> Edits:
    """Return what a batch does to the state. A definition that is removed may exist again, without its state."""
    recreated = batch.removed & {key_of(definition) for definition in definitions_of(batch.catalog)}
    kept = without(batch.before, batch.removed) if recreated else None
    names = {source.name for source in (kept or batch.catalog).sources}
    changes = {name: changes for name, changes in batch.changes.items() if name in names}
    return Edits(kept, batch.renames, changes)


def grouped(statements: Sequence[Statement], engine: Engine) -> Iterator[list[Definition] | Question]:
    """Yield statements in order, with consecutive definitions as one list. All definitions are checked first."""
    groups: list[list[Definition] | Question] = []
    for statement in statements:
        if isinstance(statement, Question):
            groups.append(statement)
        elif groups and isinstance(groups[-1], list):
            groups[-1].append(statement)
        else:
            groups.append([statement])
    lists = [group for group in groups if isinstance(group, list)]
    if len(lists) > 1:
        planned(engine, [statement for group in lists for statement in group])
    yield from groups


def new_sinks(batch: Batch) -> list[Sink]:
    """Return the sinks that a batch creates."""
    return [definition for definition in batch.created if isinstance(definition, Sink)]


def new_sources(batch: Batch) -> list[Source]:
    """Return the sources that a batch creates."""
    return [definition for definition in batch.created if isinstance(definition, Source)]


def _order_note(definition: Defined) -> str | None:
    order = ignored_order(definition.query) if isinstance(definition, View) else None
    if order is None:
        return None
    return (
        f"`{order}` has no effect on view `{definition.name}`: the rows of a view have no order; "
        "write it in the SELECT that reads the view, or add LIMIT"
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
