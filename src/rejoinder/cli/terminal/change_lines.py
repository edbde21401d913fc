"""Print the changes of a view: a line for every row that was removed or added."""

from __future__ import annotations

from decimal import Decimal

from rich.table import Table
from rich.text import Text

from rejoinder.cli.terminal.result_tables import cell, show_table
from rejoinder.cli.terminal.screen import out
from rejoinder.engine.engine import Engine
from rejoinder.engine.statements import find_view
from rejoinder.formats.text.neutral_text import neutral
from rejoinder.formats.text.plain_rows import Row
from rejoinder.state.reading.renderings import net_changes

SHOWN = 6


def changes_of(engine: Engine, view: str, epoch: int) -> list[tuple[Row, int]]:
    """Return the net changes of a view in a committed epoch, retractions first."""
    assert engine.version.manifest is not None, "an epoch is committed"
    name, schema = find_view(engine, view)
    return net_changes(engine.store, engine.version.manifest, name, schema, epoch)


def counts(changes: list[tuple[Row, int]]) -> str:
    """Return the numbers of removed and added rows as text."""
    minus = sum(-diff for _, diff in changes if diff < 0)
    plus = sum(diff for _, diff in changes if diff > 0)
    return f"{minus:,} retracted, {plus:,} added" if changes else "no change"


def show_epoch(view: str, epoch: int, changes: list[tuple[Row, int]], limit: int | None = None) -> None:
    """Print the changes of a view in an epoch: their number, and the first of them; all if `limit` is 0."""
    out.print(Text.assemble((f"epoch {epoch}", "bold cyan"), f"  {view}: {counts(changes)}"))
    show_changes(changes, SHOWN if limit is None else limit)


def show_changes(changes: list[tuple[Row, int]], limit: int = SHOWN) -> None:
    """Print the first changes: − in red, + in green, with the number of copies if it is not one."""
    shown = _both(changes, limit) if limit else changes
    if not shown:
        return
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 1, 0, 1))
    table.add_column("")
    table.add_column("sign")
    for name, value in shown[0][0].items():
        is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        table.add_column(Text(neutral(name)), justify="right" if is_number else "left", overflow="fold")
    for row, diff in shown:
        sign = ("−" if diff < 0 else "+") + (f" {abs(diff)} ×" if abs(diff) > 1 else "")
        style = "red" if diff < 0 else "green"
        table.add_row("", Text(sign, style="bold"), *[cell(value) for value in row.values()], style=style)
    show_table(table)
    if len(shown) < len(changes):
        out.print(Text(f"    … and {len(changes) - len(shown):,} more", style="dim"))


def _both(changes: list[tuple[Row, int]], limit: int) -> list[tuple[Row, int]]:
    """Return the first retractions and the first additions, together `limit` of them."""
    removed = [change for change in changes if change[1] < 0]
    added = [change for change in changes if change[1] > 0]
    count = min(len(removed), max(limit // 2, limit - len(added)))
    return removed[:count] + added[: limit - count]
