"""`rejoinder vacuum`: deletes what nobody names any more in a state, and says what it was."""

from __future__ import annotations

from rejoinder.cli.commands.open_state import refuse_missing
from rejoinder.cli.terminal.screen import count, note, size
from rejoinder.engine.maintenance.vacuum import vacuum
from rejoinder.state.neutral_text import neutral
from rejoinder.store.objects.object_store import open_store


def vacuum_state(place: str, *, dry_run: bool, older_than_hours: float) -> None:
    """Vacuum a state. The names go to standard output, a summary for each kind to standard error."""
    store = open_store(place)
    refuse_missing(place, store)
    done = vacuum(store, dry_run=dry_run, older_than_seconds=older_than_hours * 3600)
    for each in done.garbage:
        print(neutral(each.name))
    for kind, (number, total) in done.by_kind().items():
        note(f"{kind}: {number:,}, {size(total)}")
    verb = "would be deleted" if dry_run else "deleted"
    note(f"{count(len(done.garbage), 'object')} {verb}, {size(done.bytes)}" if done.garbage else "nothing to delete")
