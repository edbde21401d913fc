"""`rejoinder plan`, and `rejoinder run` on an edited file: show what would change, and ask."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from rich.prompt import Confirm

from rejoinder.cli.commands.open_state import open_state
from rejoinder.cli.commands.script import Script, read_script
from rejoinder.cli.terminal.error_places import placed
from rejoinder.cli.terminal.screen import err, note
from rejoinder.engine.definitions.change_plan import ChangePlan, change_plan
from rejoinder.engine.definitions.definition_statements import Definition, find_defined, is_defined, says_same
from rejoinder.engine.definitions.dependents import sources_of
from rejoinder.engine.engine import Engine
from rejoinder.errors import DefinitionConflict, Unsupported
from rejoinder.formats.text.neutral_text import neutral_lines
from rejoinder.ir.catalog import View
from rejoinder.sql.statements.statement_parser import CreateView


def show_change(path: Path, state: str) -> None:
    """Print what running a file would change in a state. Raises the error with which it would be refused."""
    engine = open_state(state, may_create=True)
    script, _ = edited(read_script(path), engine)
    plan = _plan(script, engine)
    print(neutral_lines("\n".join(plan.lines())))
    unnamed = _unnamed(script, engine)
    if unnamed:
        note(f"not in {path}, and kept: {', '.join(unnamed)}")
    if plan.is_empty:
        note("nothing changes")


def edited(script: Script, engine: Engine) -> tuple[Script, list[str]]:
    """Return a file in which CREATE VIEW replaces a view that the state has with another definition; and their names.

    A view whose sources have no committed rows may be changed in any case.
    """
    definitions: list[Definition] = []
    names: list[str] = []
    for statement in script.definitions:
        if isinstance(statement, CreateView) and _differs(statement, engine):
            names.append(statement.name)
            definitions.append(replace(statement, or_replace=True, if_not_exists=False))
        else:
            definitions.append(statement)
    return replace(script, definitions=definitions), names


def _differs(statement: CreateView, engine: Engine) -> bool:
    version = engine.version
    known = find_defined(version.catalog, statement)
    if not isinstance(known, View) or says_same(known, statement):
        return False
    return bool(sources_of(version.catalog, known) & version.fed)


def _unnamed(script: Script, engine: Engine) -> list[str]:
    """Return the views of the state that a file does not create."""
    created = {statement.name.lower() for statement in script.definitions if isinstance(statement, CreateView)}
    return [view.name for view in engine.version.catalog.views if view.name.lower() not in created]


def _plan(script: Script, engine: Engine) -> ChangePlan:
    batch = script.applied(engine.version.catalog, engine.version.fed)
    with placed(script.text, script.path):
        return change_plan(engine, batch)


def confirmed(script: Script, engine: Engine, *, is_confirmed: bool) -> Script:
    """Return a file as it is run. If it replaces views, show what changes, and ask unless `is_confirmed`.

    Raises `DefinitionConflict` if the user declines, or if there is no terminal to ask.
    """
    replacing, names = edited(script, engine)
    if not names:
        return script
    try:
        for line in _plan(replacing, engine).lines():
            err.print(line, highlight=False, markup=False)
    except Unsupported as unknown:  # only Spark can read the topics of the flow; it plans again
        note(f"what changes is not known yet: {unknown.fact}")
    if is_confirmed:
        return replacing
    if sys.stdin.isatty() and Confirm.ask("Apply?", console=err, default=False):
        return replacing
    for statement in script.definitions:
        if isinstance(statement, CreateView) and statement.name in names:
            _refuse(statement, engine)
    return replacing


def _refuse(statement: CreateView, engine: Engine) -> None:
    try:
        is_defined(engine.version.catalog, replace(statement, or_replace=False))
    except DefinitionConflict as conflict:
        raise DefinitionConflict(
            conflict.fact,
            detail=conflict.detail,
            hint="--yes replaces it, and keeps its state; `rejoinder plan` shows what changes",
        ) from None
