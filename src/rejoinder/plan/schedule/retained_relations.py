"""Which rows of each relation the state has, so that a new view is filled completely, or refused.

An arrangement is *sufficient* if no row that one of its users needs has expired. It is *complete* if no row has
expired at all. A definition or query reads complete relations only: its result never depends on other views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from rejoinder.errors import Incomplete
from rejoinder.ir.identities import NEVER
from rejoinder.plan.physical.arrangement import Arrangement

QUERY_WORDS = "the query"
"""What an ad-hoc query is called in errors."""


@dataclass(frozen=True)
class Gap:
    """Why a source is incomplete: which rows are missing, since when, and which views dropped them."""

    missing: str
    cause: str
    reread: str
    """Why the source cannot be read again."""
    since: str = ""
    """The event time since which no row is missing; empty if there is none."""


@dataclass(frozen=True)
class Holdings:
    """What a hydration can read between two epochs."""

    complete: tuple[Arrangement, ...] = ()
    """Arrangements with all columns of all rows of their relation; of several of a relation the last one is read."""
    held: Collection[str] = ()
    """The sufficient arrangements."""
    filled: Collection[str] = ()
    """Those of them from which no row has expired, so that the lookups of a hydration can read them."""
    donors: Mapping[str, Arrangement] = field(default_factory=dict)
    """For an arrangement that is not sufficient, another one of its relation that has as many rows."""
    views: Collection[str] = ()
    """The changelogs that are up to date."""
    names: Collection[str] = ()
    """The defined views; any other name is an ad-hoc query."""
    late: Mapping[str, int] = field(default_factory=dict)
    """The last epoch in which a late row was left out, by source."""
    delivered: Mapping[str, int] = field(default_factory=dict)
    """The last epoch with rows, by source."""
    since: Mapping[str, Sequence[tuple[Arrangement, str, int]]] = field(default_factory=dict)
    """By source, the arrangements that have all rows in which a column is not below a bound."""
    unreadable: Callable[[str], str | None] = lambda source: "it cannot be read again"
    """Why the rows that a source has delivered cannot be read again; None if they can. Raises `InputError`."""
    gap: Callable[[str, str], Gap] = lambda source, reason: Gap("", "", reason)
    """Describes the missing rows of a source, from the reason why it cannot be read again."""

    def is_current(self, source: str, late: int) -> bool:
        """Return whether no row of a source was late after that epoch, so that its on-time rows are all its rows."""
        return self.late.get(source, NEVER) == late

    def refusal(self, source: str, wanted: str) -> Incomplete:
        """Return the error for rows of a source that nothing has. `wanted` names the view, or the query."""
        gap = self.gap(source, self.unreadable(source) or "")
        reasons = [gap.missing, gap.cause, gap.reread]
        return _incomplete(
            source,
            f"{wanted} needs rows of `{source}` that are no longer kept",
            "; ".join(reason for reason in reasons if reason),
            f"start without them: {_way_on(wanted, gap.since)}; or keep all rows from the start: RETAIN "
            f"ALL or RETAIN INTERVAL … in the definition of `{source}`",
        )

    def too_early(self, source: str, wanted: str, epoch: int) -> Incomplete:
        """Return the error for a start at an epoch since which a source has delivered rows that nothing has."""
        gap = self.gap(source, "")
        last = self.delivered[source]
        since = f", or at an event time: STARTING AT TIMESTAMP '{gap.since}'" if gap.since else ""
        return _incomplete(
            source,
            f"{wanted} cannot start at epoch {epoch} of `{source}`",
            f"`{source}` has delivered rows up to epoch {last}, and they are not kept by epoch; {gap.missing}",
            f"the earliest epoch possible is STARTING AT EPOCH {last + 1}{since}",
        )


def _incomplete(source: str, fact: str, detail: str, hint: str) -> Incomplete:
    refused = Incomplete(fact, detail=detail, hint=hint)
    refused.source = source
    return refused


def _way_on(wanted: str, since: str) -> str:
    """Return how to start without the missing rows. A query that starts now would have no rows."""
    if wanted == QUERY_WORDS and since:
        return f"SELECT … STARTING AT TIMESTAMP '{since}'"
    start = f"TIMESTAMP '{since}' (or NOW)" if since else "NOW"
    return f"CREATE VIEW … STARTING AT {start} AS …"
