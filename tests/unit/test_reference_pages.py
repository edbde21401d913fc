"""Reference pages are complete: every name, option, code and cap of the code is on the page that documents it."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main

from rejoinder import errors
from rejoinder.cli.main import app
from rejoinder.connectors.files.options import FILE_OPTIONS
from rejoinder.connectors.kafka.topic_options import TOPIC_OPTIONS
from rejoinder.connectors.registry import SINKS, SOURCE_FORMATS
from rejoinder.host.caps import Caps
from rejoinder.sql.definitions.source_definition import _EVERY_SOURCE
from rejoinder.sql.statements.statement_parser import _SHOWN, DropKind
from rejoinder.store.objects.object_store import _OPTIONS
from tests.unit.test_public_names import METHODS

ROOT = Path(__file__).parents[2]
COMMAND: Any = typer.main.get_command(app)
OF_THE_COMMAND_LINE = {"answer", "define"}  # of Flow: for `rejoinder run`


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def missing(name: str, words: Any) -> list[str]:
    """The words that a page does not have, ignoring case: options of Spark are in lower case in the code."""
    text = page(name).lower()
    return [word for word in words if not re.search(rf"(?<![\w.-]){re.escape(word.lower())}(?![\w-])", text)]


def error_classes(of: type[errors.RejoinderError]) -> list[type[errors.RejoinderError]]:
    return [kind for child in of.__subclasses__() for kind in (child, *error_classes(child))]


def test_every_error_has_a_row() -> None:
    rows = dict(re.findall(r"^\| (RJ\d+) \| \**`(\w+)`", page("docs/errors.md"), re.MULTILINE))
    assert rows == {kind.code: kind.__name__ for kind in error_classes(errors.RejoinderError)}


@pytest.mark.parametrize("owner", METHODS)
def test_every_method_of_a_flow_and_a_driver_is_described(owner: str) -> None:
    names = [name for name in METHODS[owner].split() if name not in OF_THE_COMMAND_LINE]
    text = page("docs/python.md")
    inherited = {"insert", "delete", "sql", "load"}  # of the driver: in its text
    calls = [name for name in names if owner == "Flow" or name not in inherited]
    assert [name for name in calls if f"`{owner.lower()}.{name}" not in text] == []


@pytest.mark.parametrize("command", COMMAND.commands)
def test_every_option_of_a_command_is_described(command: str) -> None:
    options = [flag for parameter in COMMAND.commands[command].params for flag in parameter.opts if flag[:1] == "-"]
    assert missing("docs/cli.md", [flag for flag in options if flag != "--help"]) == []


def test_every_cap_has_a_row() -> None:
    assert sorted(re.findall(r"\| cap `(\w+)`", page("docs/limits.md"))) == sorted(asdict(Caps()))


def test_every_option_of_a_source_or_store_is_described() -> None:
    assert missing("docs/sources.md", FILE_OPTIONS) == missing("docs/kafka.md", TOPIC_OPTIONS) == []
    every = page("docs/sources.md") + page("docs/watermarks.md")
    assert [option for option in _EVERY_SOURCE if f"`{option}" not in every] == []
    assert missing("docs/operating.md", sorted({option for options in _OPTIONS.values() for option in options})) == []
    assert missing("docs/sources.md", [name for name in SOURCE_FORMATS if name not in ("kafka", "delta")]) == []
    assert missing("docs/sinks.md", SINKS) == []


def test_every_statement_is_described() -> None:
    assert missing("docs/statements.md", [*get_args(DropKind), *(f"SHOW {word}" for word in _SHOWN)]) == []


def test_the_readme_leads_to_every_page() -> None:
    readme = page("README.md")
    assert [path.name for path in (ROOT / "docs").glob("*.md") if f"(docs/{path.name})" not in readme] == []


def test_the_glossary_is_in_order() -> None:
    terms = re.findall(r"^\*\*(.*?)\.\*\*", page("docs/glossary.md"), re.MULTILINE)
    assert terms == sorted(terms, key=str.lower) and len(terms) > 100
