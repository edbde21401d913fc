"""`rejoinder diff`: print how the views of two states differ."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from rejoinder.cli.terminal.change_lines import show_changes
from rejoinder.cli.terminal.screen import err, out
from rejoinder.engine.maintenance.state_diff import Side, ViewDifference, compared
from rejoinder.store.objects.object_store import open_store


def show_difference(
    places: tuple[str, str], epochs: tuple[int | None, int | None], views: Sequence[str], limit: int
) -> bool:
    """Compare two states, print a line per view and some of the rows that differ. Returns whether all are equal."""
    first, second = (Side.open(open_store(place), epoch) for place, epoch in zip(places, epochs, strict=True))
    out.print(Text(f"− {places[0]}, epoch {first.epoch}\n+ {places[1]}, epoch {second.epoch}"))
    is_equal = True
    with err.status("comparing"):
        for difference in compared(first, second, views, samples=limit):
            is_equal &= difference.is_equal
            out.print(Text.assemble((difference.view, "bold"), f": {_line(difference)}"))
            show_changes(list(difference.samples), 0)
    return is_equal


def _line(difference: ViewDifference) -> str:
    if difference.fact:
        return difference.fact
    if difference.is_equal:
        return f"equal, {difference.rows[0]:,} rows"
    return (
        f"{difference.rows[0]:,} and {difference.rows[1]:,} rows; {difference.only[0]:,} only in the first, "
        f"{difference.only[1]:,} only in the second"
    )
