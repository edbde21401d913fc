"""What people read in EXPLAIN instead of names that the plan has made."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rejoinder.ir.catalog import Catalog
from rejoinder.ir.expressions.expression import column
from rejoinder.ir.identities import DerivedRows, PendingRows, RelationId, SourceRows
from rejoinder.kernels.duckdb.text_expression import text_expression
from rejoinder.plan.blocks.normal_form import Derived
from rejoinder.plan.operations.union import Union
from rejoinder.plan.rounds.labels import Labels, shown, written
from rejoinder.planner import plan
from rejoinder.testing import Driver


def relation(kind: str, digest: str) -> Derived:
    return Derived(DerivedRows(kind, digest), (), Union(), pa.schema([]))


def test_a_derived_relation_is_called_by_as_much_of_its_name_as_tells_it_from_others() -> None:
    names = (("rows", "abcd12345678"), ("rows", "abcd92345678"), ("union", "abcd12345678"))
    relations = [relation(kind, digest) for kind, digest in names]
    labels = Labels({made.id: made for made in relations})
    assert [labels.relation(made.id) for made in relations] == ["rows#abcd1", "rows#abcd9", "union#abcd1"]
    assert labels.relation(relations[0].input) == "rows#abcd1/input"
    assert labels.relation(SourceRows("orders")) == "orders" and labels.relation(PendingRows("v")) == "v/pending"


def labels_of(query: str) -> tuple[Labels, Catalog, RelationId]:
    driver = Driver()
    driver.sql("CREATE STREAM a (id INT, x STRING, t TIMESTAMP); CREATE STREAM b (id INT, y STRING)")
    driver.sql(f"CREATE VIEW v AS {query}")
    program = plan(driver._engine.version.catalog, {}).program
    (only,) = program.views["v"].inputs
    return Labels(program.derived), driver._engine.version.catalog, only.relation


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a.x, b.y FROM a FULL JOIN b ON a.id = b.id", ["a.id", "x", "t", "b.id", "y"]),
        ("SELECT x, y FROM a FULL ANTI JOIN b ON a.id = b.id", ["a.id", "x", "t", "b.id", "y"]),
        ("SELECT o.x, p.x AS other FROM a o FULL JOIN a p ON o.id = p.id", ["c0", "c1", "c2", "c3", "c4", "c5"]),
        ("SELECT DISTINCT upper(x) AS u, id FROM a", ["UPPER(x)", "id"]),
        ("SELECT x, sum(id) AS s FROM a GROUP BY x", ["x", "count(*)", "sum(id)", "count(id)"]),
    ],
)
def test_columns_say_what_they_hold_and_whose_they_are_where_that_is_not_clear(query: str, expected: list[str]) -> None:
    labels, _, name = labels_of(query)
    assert [labels.column(name, each) for each in labels._derived[name].schema.names] == expected


def test_a_window_of_a_group_has_a_start_and_an_end() -> None:
    labels, _, name = labels_of("SELECT TUMBLE(t, INTERVAL 1 MINUTE) AS w, count(*) AS n FROM a GROUP BY w")
    window = "TUMBLE(t, INTERVAL '1' MINUTE)"
    assert [labels.column(name, each) for each in ("c0", "c1", "n")] == [f"{window}.start", f"{window}.end", "count(*)"]


def test_a_column_in_another_type_is_not_taken_for_the_column() -> None:
    cast = text_expression('CAST("0.id" AS DOUBLE)', pa.float64(), ("0.id",), text="o.id")
    names = {"0.id": "id"}
    assert shown(column("0.id", pa.int32()), names) == "id"
    assert shown(cast, names) == "CAST(id AS DOUBLE)"


def test_expressions_are_shown_as_written_without_qualifiers() -> None:
    made = text_expression('("0.id" + 1)', pa.int32(), ("0.id",), text="o.id + length('o.x')")
    assert shown(made, {"0.id": "id"}) == "id + length('o.x')"
    nobody = text_expression('("0.id") = ("1.id")', pa.bool_(), ("0.id", "1.id"), text="3.id = 4.id")
    assert written(nobody) is None
    assert shown(nobody, {"0.id": "a.id", "1.id": "b.id"}) == "a.id = b.id"


def test_calls_of_having_have_no_unseen_letters() -> None:
    driver = Driver()
    driver.sql("CREATE STREAM a (id INT, x STRING)")
    driver.sql("CREATE VIEW v AS SELECT x FROM a GROUP BY x HAVING count(*) > 1 AND max(id) < 5 AND min(id) < 3")
    text = driver.sql("EXPLAIN v")
    assert isinstance(text, str)
    assert text.isascii() and "where COUNT(*) > 1 AND MAX(id) < 5 AND MIN(id) < 3" in text
