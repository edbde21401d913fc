"""`rejoinder demo`: a three-way join on Spark follows a small shop, epoch by epoch."""

from __future__ import annotations

import json
import queue
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from rejoinder.cli.commands.demo_data import CUSTOMERS, ORDERS, SQL, Shop, name_of
from rejoinder.cli.commands.follow import interruptible
from rejoinder.cli.commands.run_flow import check, define_all, spark_flow
from rejoinder.cli.commands.script import read_script
from rejoinder.cli.spark_options import Settings
from rejoinder.cli.terminal.answers import Showing, show_answer
from rejoinder.cli.terminal.change_lines import changes_of, counts, show_changes
from rejoinder.cli.terminal.screen import count, duration, out, status
from rejoinder.engine.engine import Engine
from rejoinder.engine.epoch_progress import Progress
from rejoinder.engine.statements import execute
from rejoinder.errors import MissingInput, StateError
from rejoinder.ir.catalog import Catalog
from rejoinder.sql.statements.statement_parser import Question, parse_statements

if TYPE_CHECKING:
    from rejoinder.api.flow import Flow

VIEW = "sales"
ADA, GRACE = 1, 7
MARK = "shop.sql"
PAUSE_SECONDS = 0.8
EPOCH_SECONDS = 60.0
BEST = "SELECT order_id, customer, city, product, amount FROM sales ORDER BY amount DESC, order_id LIMIT 5"


@dataclass(frozen=True)
class Event:
    """An event in the shop. `write` writes its files and returns their number of rows."""

    story: str
    write: Callable[[], int]


def events(shop: Shop) -> list[Event]:
    """Return the events of the demonstration."""
    order = shop.orders + 1
    shop.orders = order
    ada, grace = name_of(ADA), name_of(GRACE)

    def owned_by(customer: int | None) -> Callable[[], int]:
        row = {"id": order, "customer_id": customer, "op": "d" if customer is None else "u"}
        return lambda: shop.write_orders([row])

    return [
        Event(f"Lines of order {order} come before their order", lambda: shop.write_lines(shop.lines(order, 3))),
        Event(f"Order {order} follows, from {ada}", owned_by(ADA)),
        Event(f"{ada} moves to Turin", lambda: shop.write_customers([shop.customer(ADA, city="Turin")])),
        Event(f"Order {order} was meant for {grace}", owned_by(GRACE)),
        Event(f"Order {order} is cancelled", owned_by(None)),
        Event("Two hundred more orders", lambda: shop.trade(200)),
    ]


def run_demo(folder: Path, *, is_debug: bool) -> None:
    """Create the shop, run the join, print its changes, and keep the state for further queries."""
    shop, state = _prepare(folder), str(folder / "state")
    script = read_script(folder / MARK)
    check(script, Catalog())
    out.print(Text.assemble(("Rejoinder", "bold"), ": a three-way join that follows its inputs\n"))
    view_text = SQL[SQL.index("CREATE VIEW") :].strip()
    out.print(Syntax(view_text, "sql", background_color="default") if out.is_terminal else Text(view_text))
    out.print()
    rows = shop.open()
    with spark_flow(state, Settings(), is_debug=is_debug) as flow:

        def work(stopped: threading.Event) -> None:
            define_all(flow, script, stopped)
            _play(flow, shop, rows)

        if not interruptible(work, flow.stop):
            raise KeyboardInterrupt
        _show_end(flow.engine)
    _show_next(folder)


def _play(flow: Flow, shop: Shop, rows: int) -> None:
    """Write the files of each event, and print the epochs that read them."""
    progress: queue.Queue[Progress] = queue.Queue()
    flow.on_progress(progress.put)
    flow.start()
    _show_epochs(flow, progress, f"The shop opens with {CUSTOMERS} customers and {ORDERS:,} orders", rows)
    for event in events(shop):
        if out.is_terminal:
            time.sleep(PAUSE_SECONDS)
        _show_epochs(flow, progress, event.story, event.write())
    flow.stop()


def _prepare(folder: Path) -> Shop:
    """Create a folder with the statements. Removes only files of an earlier demonstration. Raises `StateError`."""
    if folder.exists() and any(folder.iterdir()):
        if not (folder / MARK).exists():
            raise StateError(
                f"`{folder}` is not empty, and not from an earlier demonstration",
                hint="name another folder: rejoinder demo --folder …",
            )
        for name in ("data", "state"):
            shutil.rmtree(folder / name, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text(SQL.format(data=folder / "data"), encoding="utf-8")
    return Shop(folder / "data")


def _show_epochs(flow: Flow, epochs: queue.Queue[Progress], story: str, rows: int) -> None:
    """Wait until all rows are read, and print each epoch that read some of them."""
    read, until = 0, time.monotonic() + EPOCH_SECONDS
    while read < rows:
        with status(story):
            progress = _next(flow, epochs, until)
        read += sum(progress.rows_in.values())
        _show_epoch(flow.engine, progress, story)


def _next(flow: Flow, epochs: queue.Queue[Progress], until: float) -> Progress:
    while time.monotonic() < until:
        try:
            return epochs.get(timeout=0.1)
        except queue.Empty:
            if not flow.is_running:
                flow.wait()
                raise StateError("the flow has stopped", hint="rejoinder demo --debug shows more") from None
    raise MissingInput("the flow did not read the files", hint="rejoinder demo --debug shows more")


def _show_epoch(engine: Engine, progress: Progress, story: str) -> None:
    changes = changes_of(engine, VIEW, progress.epoch)
    out.print(Text.assemble((f"epoch {progress.epoch}  ", "bold cyan"), (story, "bold")))
    rows = count(sum(progress.rows_in.values()), "row")
    out.print(Text(f"  {rows} in; {counts(changes)}; {duration(progress.seconds)}"))
    show_changes(changes)
    out.print()


def _show_end(engine: Engine) -> None:
    for title, text in (("The table now", BEST), ("How it is kept up to date", f"EXPLAIN {VIEW}")):
        out.print(Rule(title, align="left") if out.is_terminal else Text(title))
        for statement in parse_statements(text):
            assert isinstance(statement, Question)
            show_answer(execute(engine, statement), Showing())
        out.print()


def _show_next(folder: Path) -> None:
    command, state = _command(), folder / "state"
    moved = json.dumps({"id": GRACE, "name": name_of(GRACE), "city": "Oslo"})
    lines = [
        ("Every change so far", f'{command} sql {state} "SELECT STREAM * FROM {VIEW}" --limit 20'),
        ("Ask what you like; \\q quits", f"{command} sql {state}"),
        ("Keep it running …", f"{command} run {folder / MARK} --state {state} --follow --watch {VIEW}"),
        ("… and let a customer move, from another terminal", f"echo '{moved}' > {folder}/data/customers/mine.json"),
    ]
    out.print(Text(f"State, data and statements are in {folder}. Try next:", style="bold"))
    for title, line in lines:
        out.print(Text(f"  # {title}", style="dim"))
        out.print(Text(f"  {line}", style="cyan"))


def _command() -> str:
    """Return the command of this program: its name if it is on the PATH, else its path."""
    this = Path(sys.argv[0])
    installed = shutil.which("rejoinder")
    if installed is not None and Path(installed).resolve() == this.resolve():
        return "rejoinder"
    try:
        return str(this.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(this)
