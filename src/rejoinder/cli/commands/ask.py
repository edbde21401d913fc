"""`rejoinder sql` and `rejoinder explain`: statements and queries on a state, in this process, without Spark."""

from __future__ import annotations

import sys
from dataclasses import replace

from rich.text import Text

from rejoinder.cli.commands.open_state import open_state, refuse_missing
from rejoinder.cli.terminal.answers import Showing, follow, show_answer
from rejoinder.cli.terminal.error_places import placed, show_place
from rejoinder.cli.terminal.expanded_rows import toggled
from rejoinder.cli.terminal.prompt import statements
from rejoinder.cli.terminal.screen import err, note, show_error, unexpected
from rejoinder.cli.terminal.terminal_encoding import as_typed
from rejoinder.engine.definitions.definition_batch import define_all, grouped
from rejoinder.engine.definitions.definition_statements import Definition
from rejoinder.engine.engine import Engine
from rejoinder.engine.queries.subscription import Subscription
from rejoinder.engine.statements import Answer, execute, explained
from rejoinder.engine.unread_sources import unread_sources
from rejoinder.errors import Corrupt, InvalidSql, RejoinderError
from rejoinder.formats.text.neutral_text import neutral_lines
from rejoinder.kernels.zones.zone_offsets import arrow_zone
from rejoinder.sql.statements.alter_source import AlterSource
from rejoinder.sql.statements.function_statements import CreateFunction
from rejoinder.sql.statements.statement_parser import (
    AlterView,
    CreateIndex,
    CreateSink,
    CreateSource,
    CreateView,
    Drop,
    Question,
    RenameView,
    Select,
    SetTimeZone,
    parse_statements,
)
from rejoinder.store.objects.object_store import open_store
from rejoinder.testing import Driver
from rejoinder.testing.unread_files import answer_unread, refuse_remote

TURNS = 5


def ask(place: str, text: str | None, showing: Showing) -> None:
    """Run the text, or the input of a pipe; without either, prompt for statements until the user quits."""
    if text is None and sys.stdin.isatty():
        _converse(place, showing)
        return
    script = as_typed(sys.stdin.read() if text is None else text)
    with placed(script, ""):
        parsed = parse_statements(script)
    if not parsed:
        raise InvalidSql("there is no statement", hint='rejoinder sql STATE "SELECT * FROM view"')
    engine = open_state(place, may_create=isinstance(parsed[0], CreateSource | CreateView))
    _run(engine, script, showing)


def show_plan(place: str, target: str) -> None:
    """Print the plan of a view or a query."""
    engine = open_state(place)
    print(neutral_lines(explained(engine, target)))


def watch(place: str, view: str, where: str | None, start: int | None, as_of: int | None, showing: Showing) -> None:
    """Print the changes of a view as a flow commits them, in this process, until Ctrl-C."""
    store = open_store(place)
    refuse_missing(place, store)
    follow(Subscription(store, view, where=where, start=start, as_of=as_of), showing)


def _run(engine: Engine, text: str, showing: Showing) -> None:
    with placed(text, ""):
        _run_all(engine, text, showing)


def _run_all(engine: Engine, text: str, showing: Showing) -> None:
    for statement in grouped(parse_statements(text), engine):
        if not isinstance(statement, list):
            _answer(engine, statement, showing)
            continue
        batch = define_all(engine, statement)
        for definition in statement:
            err.print(Text(confirmation(definition), style="green"))
        named = {definition.name.lower() for definition in statement if isinstance(definition, Drop)}
        others = [name for name in batch.dropped if name.lower() not in named]
        if others:
            note(f"dropped with it: {', '.join(others)}")
        for text_ in batch.notes:
            note(text_)


def _answer(engine: Engine, statement: Question, showing: Showing) -> None:
    """Answer from the last epoch; from a later one, if a running flow has deleted its files meanwhile."""
    for turn in range(TURNS):
        read = engine.version.manifest
        try:
            show_answer(_answered(engine, statement), showing)
            return
        except Corrupt:
            engine.recover()
            if (
                turn == TURNS - 1
                or engine.version.manifest is None
                or read is None
                or engine.version.manifest.version == read.version
            ):
                raise


def _answered(engine: Engine, statement: Question) -> Answer:
    """Answer from the state. Files of sources that no view reads are read in this process."""
    if isinstance(statement, Select) and unread_sources(engine, statement.query):
        refuse_remote(engine, statement.query)
        return answer_unread(engine, statement, Driver)
    return execute(engine, statement)


def confirmation(statement: Definition) -> str:
    """Return the confirmation of a definition."""
    match statement:
        case CreateSource(source=source):
            return f"created {source.kind} {source.name}"
        case CreateView(name=name):
            return f"created view {name}"
        case RenameView(name=name, new_name=new_name):
            return f"renamed view {name} to {new_name}"
        case AlterSource(name=name):
            return f"altered {name}"
        case AlterView(name=name):
            return f"altered view {name}"
        case CreateIndex(name=name):
            return f"created index {name}"
        case CreateSink(sink=sink):
            return f"created sink {sink.name}"
        case CreateFunction(name=name):
            return f"created function {name}"
        case Drop(name=name):
            return f"dropped {name}"
        case SetTimeZone(zone=zone):
            return f"the time zone is {arrow_zone(zone)}"


def _converse(place: str, showing: Showing) -> None:
    engine = open_state(place, may_create=True)
    if engine.version.manifest is None:
        note(f"{place}: no state yet; a CREATE creates one. \\? for help")
    else:
        views = ", ".join(view.name for view in engine.version.catalog.views) or "none"
        note(f"{place}: epoch {engine.epoch}, views: {views}. \\? for help")
    for text in statements():
        try:
            engine.recover()  # a running flow may have committed since the last statement
            if text.split()[0] == "\\x":
                showing = _expanded(showing, text)
                continue
            _run(engine, _expand_command(text) if text.startswith("\\") else text, showing)
        except RejoinderError as error:
            show_error(error, show_place)
        except KeyboardInterrupt:
            note("cancelled")
        except Exception as error:  # noqa: BLE001 - the prompt continues
            show_error(unexpected(error))


def _expanded(showing: Showing, text: str) -> Showing:
    """Apply `\\x [on | off | auto]`, and print the new setting. Raises `InvalidSql`."""
    try:
        expanded = toggled(showing.expanded, " ".join(text.split()[1:]).lower())
    except ValueError:
        raise InvalidSql(f"`{text}` is not known", hint="\\x switches, \\x on, \\x off or \\x auto sets it") from None
    note(f"expanded form: {'auto' if expanded is None else 'on' if expanded else 'off'}")
    return replace(showing, expanded=expanded)


def _expand_command(word: str) -> str:
    if word == "\\d":
        return "SHOW SOURCES; SHOW VIEWS"
    raise InvalidSql(f"`{word}` is not known", hint="\\? lists the commands")
