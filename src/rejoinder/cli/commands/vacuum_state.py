"""`rejoinder vacuum`: delete unreferenced files of a state, and list them."""

from __future__ import annotations

from rejoinder.cli.commands.open_state import refuse_missing
from rejoinder.cli.terminal.screen import count, note
from rejoinder.engine.maintenance.vacuum import vacuum
from rejoinder.formats.text.byte_size import size
from rejoinder.formats.text.neutral_text import neutral
from rejoinder.store.objects.object_store import open_store


def vacuum_state(place: str, *, dry_run: bool, older_than_hours: float) -> None:
    """Vacuum a state. Prints names to standard output, and a summary for each kind to standard error."""
    store = open_store(place)
    refuse_missing(place, store)
    vacuumed = vacuum(store, dry_run=dry_run, older_than_seconds=older_than_hours * 3600)
    for item in vacuumed.garbage:
        print(neutral(item.name))
    for kind, (number, total) in vacuumed.by_kind().items():
        note(f"{kind}: {number:,}, {size(total)}")
    if not vacuumed.garbage:
        note("nothing to delete")
        return
    verb = "would be deleted" if dry_run else "deleted"
    note(f"{count(len(vacuumed.garbage), 'object')} {verb}, {size(vacuumed.bytes)}")
