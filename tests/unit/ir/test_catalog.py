"""The catalog: names without case, and all of it survives the manifest."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from rejoinder.errors import DefinitionConflict, UnknownName
from rejoinder.ir.catalog import Catalog, Index, Source, View
from rejoinder.ir.schema_text import schema_from_json, schema_to_json
from tests.unit.kernels.arrow.tables import TYPES, array_of


def catalog() -> Catalog:
    schema = pa.schema([(f"c{at}", array_of(name, []).type) for at, name in enumerate(TYPES)])
    source = Source("S", "table", schema, ("c0",), "c1", "op", None, "json", {"path": "/x", "malformed": "divert"})
    return Catalog((source, View("v", "SELECT c0 FROM s", pa.schema([("c0", pa.int8())]))), (Index("i", "S", ("c2",)),))


def test_it_survives_the_manifest() -> None:
    assert Catalog.from_json(json.loads(json.dumps(catalog().to_json()))) == catalog()


@pytest.mark.parametrize("name", TYPES)
def test_types_survive_exactly(name: str) -> None:
    schema = pa.schema([pa.field("a", array_of(name, []).type)])
    assert schema_from_json(schema_to_json(schema)).equals(schema, check_metadata=True)


def test_names_compare_without_case() -> None:
    assert catalog().get("s").name == "S" and catalog().find("V") is not None
    with pytest.raises(DefinitionConflict):
        catalog().with_relation(View("s", "", pa.schema([])))
    with pytest.raises(DefinitionConflict):
        catalog().with_index(Index("I", "S", ("c0",)))
    with pytest.raises(UnknownName) as raised:
        catalog().get("w")
    assert raised.value.detail == "known: S, v" and raised.value.hint


def test_indexes_go_with_their_relation() -> None:
    assert catalog().without_relation("s").indexes == ()
    assert catalog().without_index("I").indexes == ()
    assert [source.name for source in catalog().sources] == ["S"] and [view.name for view in catalog().views] == ["v"]


def test_it_says_where_malformed_records_go() -> None:
    (source,) = catalog().sources
    assert source.diverts and str(source.rejected) == "S.rejected"
    assert not Source("p", "stream", source.schema).diverts
