"""`rejoinder check`: verify a state, with a progress bar on a terminal."""

from __future__ import annotations

from rich.progress import Progress

from rejoinder.cli.terminal.screen import err, note
from rejoinder.engine.maintenance.state_check import check_state
from rejoinder.errors import Corrupt
from rejoinder.formats.text.byte_size import size
from rejoinder.store.objects.object_store import open_store


def show_check(place: str) -> None:
    """Check a state and print the result. Raises `Corrupt`, with all problems, if it is damaged."""
    with Progress(console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("checking", total=None)
        result = check_state(open_store(place), lambda checked, total: bar.update(task, completed=checked, total=total))
    if result.unreferenced:
        total = size(sum(item.bytes for item in result.unreferenced))
        note(f"{len(result.unreferenced)} files ({total}) are not referenced; `rejoinder vacuum {place}` deletes them")
    if result.problems:
        raise Corrupt(
            f"the state in {place} is damaged: {len(result.problems)} problems",
            detail="; ".join(result.problems),
            hint="restore these objects, or the whole state, from a backup",
        )
    counts = f"{result.manifests} manifests, {result.objects} objects, {size(result.bytes)}"
    print(f"intact at epoch {result.epoch}: {counts}")
