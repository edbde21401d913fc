"""The registry of connectors: every connector is in it, and nothing else knows a format by its name."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pytest

import rejoinder.connectors
from rejoinder.connectors.connector import Connector
from rejoinder.connectors.registry import CONNECTORS, SINK_FORMATS, SINKS, SOURCE_FORMATS, SOURCES, source_side
from rejoinder.connectors.sink_definition import make_sink
from rejoinder.errors import UnknownName, Unsupported
from rejoinder.ir.catalog import INTERNAL, Source
from rejoinder.sql.definitions.source_definition import make_source

PACKAGE = Path(rejoinder.connectors.__file__).parent
FIELDS = [pa.field("a", pa.string())]


def test_every_connector_of_a_folder_is_registered() -> None:
    found = []
    for module in pkgutil.walk_packages([str(PACKAGE)], "rejoinder.connectors."):
        if module.name.endswith(".connector"):
            found += [value for value in vars(import_module(module.name)).values() if isinstance(value, Connector)]
    assert sorted(found, key=lambda connector: connector.name) == sorted(CONNECTORS, key=lambda each: each.name)
    assert len({connector.name for connector in CONNECTORS}) == len(CONNECTORS)
    assert all(connector.source or connector.sink for connector in CONNECTORS)


@pytest.mark.parametrize("name", SOURCES)
def test_the_source_side_of_a_connector_is_consistent(name: str) -> None:
    side = SOURCES[name]
    assert all(option == option.lower() for option in side.options)
    assert side.options.issuperset(side.needs)
    assert not side.rereads_files or side.reader is not None


@pytest.mark.parametrize("name", SINKS)
def test_the_sink_side_of_a_connector_is_consistent(name: str) -> None:
    side = SINKS[name]
    assert set(side.keyed_modes) <= set(side.modes)
    assert set(side.choices) <= {*side.needs, *side.takes}


def test_an_unknown_format_is_answered_with_the_formats_of_its_side() -> None:
    with pytest.raises(Unsupported, match=f"known: {', '.join(SOURCE_FORMATS)}"):
        make_source("s", "stream", FIELDS, (), "jdbc", {})
    with pytest.raises(Unsupported, match=f"known: {', '.join(SINK_FORMATS)}"):
        make_sink("k", "v", "memory", {})
    assert "dataframe" not in SOURCE_FORMATS and "python" not in SINK_FORMATS


def test_an_internal_relation_has_no_connector() -> None:
    side = source_side(Source("s", "stream", pa.schema(FIELDS), format=INTERNAL))
    assert side.reader is None and not side.keeps_changes and not side.rereads_files
    with pytest.raises(Unsupported):
        make_source("s", "stream", FIELDS, (), INTERNAL, {})


def test_a_dataframe_has_no_options_of_files() -> None:
    with pytest.raises(UnknownName, match="maxfilespertrigger"):
        make_source("s", "stream", FIELDS, (), "dataframe", {"maxfilespertrigger": "1"})


def test_no_module_compares_the_name_of_a_format() -> None:
    comparison = re.compile(r"\b(?:source|sink|relation|view|known|other)\.format\b *(?:==|!=|in\b|not in\b)")
    source = PACKAGE.parent
    found = [str(path.relative_to(source)) for path in source.rglob("*.py") if comparison.search(path.read_text())]
    assert found == []
