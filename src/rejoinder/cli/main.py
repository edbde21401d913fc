"""The commands and their options. Errors of Rejoinder are shown as fact, detail and hint, with exit code 1."""

from __future__ import annotations

import re
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rejoinder import __version__
from rejoinder.cli.spark_options import DEFAULT_MEMORY, memory_size, settings_of
from rejoinder.cli.terminal import screen
from rejoinder.cli.terminal.answers import Format, Showing
from rejoinder.cli.terminal.error_places import show_place
from rejoinder.cli.terminal.screen import DEBUG
from rejoinder.cli.terminal.terminal_encoding import adapt_output
from rejoinder.errors import RejoinderError

SHOW_VALUES = "--show-values"
INTERVAL = re.compile(r"\d+ (millisecond|second|minute|hour)s?")


class Commands(TyperGroup):
    """The commands, with one way to report errors; `--debug` and `--show-values` may be anywhere on the line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Remove `--debug` and `--show-values` from the arguments, and apply them."""
        ctx.obj = DEBUG in args
        screen.show_row_values(SHOW_VALUES in args)
        return super().parse_args(ctx, [arg for arg in args if arg not in (DEBUG, SHOW_VALUES)])

    def invoke(self, ctx: Any) -> Any:
        """Run the command. Errors are shown without a traceback, unless `--debug` is given."""
        warnings.showwarning = screen.show_warning
        adapt_output()
        try:
            return super().invoke(ctx)
        except RejoinderError as error:
            if ctx.obj:
                traceback.print_exc()
            screen.show_error(error, show_place)
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            screen.note("interrupted")
            raise typer.Exit(130) from None
        except BrokenPipeError:
            screen.drop_output()  # the reader of the pipe has closed it
            raise typer.Exit(0) from None
        except OSError as error:
            if ctx.obj:
                traceback.print_exc()
            screen.show_error(screen.refused(error))
            raise typer.Exit(1) from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):  # about the line, or how to end
                raise
            if ctx.obj:
                traceback.print_exc()
            screen.show_error(screen.unexpected(error))
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    name="rejoinder",
    help="Keeps the results of SQL queries up to date on Spark while their inputs change.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

State = Annotated[str, typer.Argument(metavar="STATE", help="The state: a folder, or a URL such as s3://bucket/shop.")]
Limit = Annotated[int | None, typer.Option(min=0, show_default="100 in tables", help="Rows to show; 0 for all.")]
Cap = Annotated[
    list[str] | None, typer.Option("--cap", metavar="NAME=NUMBER", help="Set a cap (docs/limits.md); repeatable.")
]
Functions = Annotated[
    list[str] | None, typer.Option(metavar="MODULE", help="A module whose functions ENRICH may call; repeatable.")
]
Guard = Annotated[
    bool, typer.Option("--guard/--no-guard", help="In CSV, keep spreadsheets from reading text as a formula.")
]
As = Annotated[Format, typer.Option("--format", help="How to write rows.")]

Address = Annotated[
    str | None, typer.Option(metavar="IP", show_default="127.0.0.1", help="Where the page listens; needs a token.")
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="The port of the page.")]
Token = Annotated[
    str | None,
    typer.Option(envvar="REJOINDER_UI_TOKEN", show_default="random", help="The secret that opens the page."),
]

Expanded = Annotated[
    bool | None,
    typer.Option(
        "--expanded/--no-expanded",
        "-x/-X",
        show_default="if too wide",
        help="Show each row of a table as a record, name by name.",
    ),
]


def _version(is_asked: bool) -> None:
    if is_asked:
        print(f"rejoinder {__version__}")
        raise typer.Exit


def _interval(text: str) -> str:
    if not INTERVAL.fullmatch(text.strip().lower()):
        raise typer.BadParameter('write it like "500 milliseconds", "1 second" or "2 minutes"')
    return text


def _set_caps(given: list[str]) -> None:
    from rejoinder.host.caps import set_caps

    pairs = [text.partition("=") for text in given]
    if not all(number.isdigit() for _, _, number in pairs):
        raise typer.BadParameter("write it like --cap max_sql_depth=500")
    set_caps({name: int(number) for name, _, number in pairs})


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option(DEBUG, help="Show tracebacks, and the output of Spark.")] = False,
    show_values: Annotated[bool, typer.Option(SHOW_VALUES, help="Show values of rows in errors.")] = False,
) -> None:
    """Options of all commands."""


@app.command()
def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FLOW.SQL", help="A file of SQL statements.")],
    state: Annotated[
        str | None, typer.Option(show_default="state/ and the file's name", help="Where the state is kept.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more input until Ctrl-C.")] = False,
    parallelism: Annotated[
        int | None, typer.Option(min=1, show_default="one per core", help="Hash ranges, and tasks at a time.")
    ] = None,
    history: Annotated[
        int | None,
        typer.Option(min=1, metavar="EPOCHS", show_default="10,000", help="Epochs whose changes stay readable."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            callback=memory_size, metavar="SIZE", show_default=DEFAULT_MEMORY, help="Memory of Spark, as 800m or 4g."
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of Spark; may be given several times.")
    ] = None,
    interval: Annotated[
        str, typer.Option(callback=_interval, help="With --follow: at most one epoch per interval.")
    ] = "0 seconds",
    watch: Annotated[
        str | None,
        typer.Option(metavar="VIEW", help="Show the rows that every epoch removes from the view or adds to it."),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Show the flow in the browser while it runs.")] = False,
    ui_port: Port = 8470,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Replace views that the file defines differently.")] = False,
    limit: Limit = None,
    format_: As = Format.TABLE,
    guard: Guard = True,
    expanded: Expanded = None,
    functions: Functions = None,
    cap: Cap = None,
) -> None:
    """Run a file of statements until all input is processed.

    Definitions that the state has already are skipped, so the same file can be run again.
    If the file gives a view another definition, it shows what changes and asks first.
    SELECT, SHOW and EXPLAIN in it are answered at the end.
    """
    from rejoinder.cli.commands.run_flow import run_file
    from rejoinder.cli.commands.show_page import page_shown
    from rejoinder.ir.allowed_functions import allow_functions

    allow_functions(functions or [])
    _set_caps(cap or [])
    place = state or str(Path("state") / file.stem)
    with page_shown(place, ui_port if ui else None):
        run_file(
            file,
            place,
            interval=interval if follow else None,
            settings=settings_of(parallelism, history, memory, conf),
            watched=watch,
            showing=Showing(format_, limit, guard, expanded),
            is_debug=bool(context.obj),
            is_confirmed=yes,
        )


@app.command()
def plan(
    file: Annotated[Path, typer.Argument(metavar="FLOW.SQL", help="A file of SQL statements.")],
    state: Annotated[
        str | None, typer.Option(show_default="state/ and the file's name", help="The state to compare with.")
    ] = None,
    functions: Functions = None,
    cap: Cap = None,
) -> None:
    """Show what running a file would change in a state; without Spark, and without effect.

    Views: unchanged, replaced, new, dropped. Arrangements: kept, built, freed. What is read, and what sinks receive.
    """
    from rejoinder.cli.commands.edited_file import show_change
    from rejoinder.ir.allowed_functions import allow_functions

    allow_functions(functions or [])
    _set_caps(cap or [])
    show_change(file, state or str(Path("state") / file.stem))


@app.command()
def sql(
    state: State,
    statements: Annotated[
        str | None,
        typer.Argument(metavar="STATEMENTS", help="SQL. Without: from a pipe, or a prompt.", show_default=False),
    ] = None,
    limit: Limit = None,
    format_: As = Format.TABLE,
    guard: Guard = True,
    expanded: Expanded = None,
    functions: Functions = None,
    cap: Cap = None,
) -> None:
    """Query a state, or define sources and views in it; without Spark.

    SELECT reads views and sources; SELECT STREAM shows a view's changes, SELECT TVR its history.
    """
    from rejoinder.cli.commands.ask import ask
    from rejoinder.ir.allowed_functions import allow_functions

    allow_functions(functions or [])
    _set_caps(cap or [])
    ask(state, statements, Showing(format_, limit, guard, expanded))


@app.command()
def ui(
    state: State,
    address: Address = None,
    port: Port = 8470,
    token: Token = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A host name by which browsers call the page; repeatable.")
    ] = None,
    functions: Functions = None,
) -> None:
    """Show a flow in the browser: its graph, epochs, watermarks, and views at any epoch. Read-only, without Spark.

    It works while the flow runs and when it has stopped. Only this machine can open it, unless you give an address and
    a token.
    """
    from rejoinder.cli.commands.show_page import show_page
    from rejoinder.ir.allowed_functions import allow_functions

    allow_functions(functions or [])
    show_page(state, address, port, token, tuple(name or ()))


@app.command()
def explain(
    state: State,
    target: Annotated[str, typer.Argument(metavar="VIEW|QUERY", help="A view's name, or a query.")],
) -> None:
    """Show how a view or query is kept up to date: paths, arrangements, and which views share them."""
    from rejoinder.cli.commands.ask import show_plan

    show_plan(state, target)


@app.command()
def watch(
    state: State,
    view: Annotated[str, typer.Argument(metavar="VIEW", help="The view to follow.")],
    from_: Annotated[
        int | None, typer.Option("--from", min=0, metavar="EPOCH", show_default="now", help="The first epoch to show.")
    ] = None,
    as_of: Annotated[
        int | None, typer.Option(min=0, metavar="EPOCH", help="Show the content at this epoch first.")
    ] = None,
    where: Annotated[str | None, typer.Option(metavar="CONDITION", help="Show only rows that fulfil it.")] = None,
    limit: Limit = None,
    format_: As = Format.TABLE,
    guard: Guard = True,
) -> None:
    """Follow the changes of a view while a flow runs in another process; Ctrl-C ends."""
    from rejoinder.cli.commands.ask import watch as follow_view

    follow_view(state, view, where, from_, as_of, Showing(format_, limit, guard))


@app.command()
def backup(
    state: State,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="An empty folder or URL, or an earlier backup of this state.")
    ],
) -> None:
    """Copy the newest committed epoch of a state, also while its flow runs.

    The checksum of every object is checked. To restore, copy TARGET back, or open it as it is.
    """
    from rejoinder.engine.maintenance.backup import backup as copy
    from rejoinder.store.objects.object_store import open_store

    done = copy(open_store(state), open_store(target))
    screen.note(f"epoch {done.epoch}: {done.objects} objects, {done.copied} new ({done.copied_bytes} bytes)")


@app.command()
def check(state: State) -> None:
    """Check a state: its manifests, and every file that they name against its checksum; without Spark.

    The exit code is 1 if something is damaged or missing. The flow may be running.
    """
    from rejoinder.cli.commands.check_state import show_check

    show_check(state)


@app.command()
def diff(
    state: State,
    other: Annotated[
        str | None, typer.Argument(metavar="[OTHER]", help="The state to compare with; STATE itself if left out.")
    ] = None,
    view: Annotated[
        list[str] | None, typer.Option("--view", metavar="VIEW", help="Compare only this view; repeatable.")
    ] = None,
    as_of: Annotated[
        int | None, typer.Option(min=0, metavar="EPOCH", show_default="newest", help="The epoch of STATE.")
    ] = None,
    other_as_of: Annotated[
        int | None, typer.Option(min=0, metavar="EPOCH", show_default="newest", help="The epoch of OTHER.")
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Rows to show for each view that differs.")] = 6,
) -> None:
    """Compare the views of two states, or of two epochs of one state, row by row; without Spark.

    The exit code is 1 if they differ. The flows may be running.
    """
    from rejoinder.cli.commands.diff_states import show_difference

    if not show_difference((state, other or state), (as_of, other_as_of), view or [], limit):
        raise typer.Exit(1)


@app.command()
def vacuum(
    state: State,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what would be deleted.")] = False,
    older_than: Annotated[
        float, typer.Option(min=0, metavar="HOURS", help="Keep younger files, which may belong to a running epoch.")
    ] = 24,
) -> None:
    """Delete unreferenced files: files of killed runs, old checkpoints, inserted rows that were read.

    It is safe while the flow runs.
    """
    from rejoinder.cli.commands.vacuum_state import vacuum_state

    vacuum_state(state, dry_run=dry_run, older_than_hours=older_than)


@app.command()
def demo(
    context: typer.Context,
    folder: Annotated[Path, typer.Option(help="Where its files go.")] = Path("rejoinder-demo"),
) -> None:
    """See a three-way join of generated orders follow its inputs, in under a minute."""
    from rejoinder.cli.commands.demo import run_demo

    run_demo(folder, is_debug=bool(context.obj))


if __name__ == "__main__":
    sys.exit(app())
