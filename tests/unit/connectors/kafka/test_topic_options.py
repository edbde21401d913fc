"""Sources on Kafka, as they are defined: what is refused, and with which words."""

from __future__ import annotations

import json

import pytest

from rejoinder.connectors.kafka.record_layout import Layout, layout_of
from rejoinder.errors import PlanningError
from rejoinder.formats.avro.framed_records import schemas_by_id
from rejoinder.ir.catalog import Source
from rejoinder.sql.statements.statement_parser import CreateSource, parse_statements

PLACE = "bootstrap 'here:9092', topic 't'"


def defined(text: str) -> Source:
    (statement,) = parse_statements(text)
    assert isinstance(statement, CreateSource)
    return statement.source


def test_which_part_fills_which_column() -> None:
    source = defined(
        "CREATE TABLE s (ID BIGINT, x STRING, Ts TIMESTAMP, p INT, o BIGINT, PRIMARY KEY (id)) "
        f"USING kafka OPTIONS ({PLACE}, timestamp 'ts', partition 'P', offset 'o')"
    )
    assert layout_of(source) == Layout(
        "json", ("x",), "text", ("ID",), {"timestamp": "Ts", "partition": "p", "offset": "o"}
    )
    source = defined(f"CREATE STREAM s (a INT, b INT, c INT) USING kafka OPTIONS ({PLACE}, key 'b, A')")
    assert layout_of(source) == Layout("json", ("c",), "json", ("b", "a"), {})


def test_names_that_spark_has_for_place() -> None:
    source = defined("CREATE STREAM s (a INT) USING kafka OPTIONS (kafka.bootstrap.servers 'here:9092', subscribe 't')")
    assert source.options == {"bootstrap": "here:9092", "topic": "t"}


def test_options_of_the_client_are_passed_on() -> None:
    security = "kafka.security.protocol 'SASL_SSL', kafka.sasl.jaas.config 'env:JAAS'"
    options = defined(f"CREATE STREAM s (a INT) USING kafka OPTIONS ({PLACE}, {security})").options
    assert options["kafka.security.protocol"] == "SASL_SSL" and options["kafka.sasl.jaas.config"] == "env:JAAS"


def test_a_secret_in_clear_is_refused_and_not_repeated() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hush";'
    with pytest.raises(PlanningError, match="contains a secret in plain text") as caught:
        defined(f"CREATE STREAM s (a INT) USING kafka OPTIONS ({PLACE}, kafka.sasl.jaas.config '{jaas}')")
    assert "hush" not in str(caught.value) and "'env:KAFKA_SASL_JAAS_CONFIG'" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("a INT", "topic 't'", "has no bootstrap"),
        ("a INT", "bootstrap 'h:1'", "has no topic"),
        ("a INT", "bootstrap 'h:1', topic 'a,b'", "not the name of one topic"),
        ("a INT", f"{PLACE}, format 'avr'", "did you mean `avro`"),
        ("a INT", f"{PLACE}, key_format 'xml'", "'text' or 'json' or 'raw' or 'none'"),
        ("a INT", f"{PLACE}, path 'x'", "option `path` of `s` is not known"),
        ("a INT", f"{PLACE}, maxOffsetsPerTrigger 'many'", "give a number"),
        ("a INT", f"{PLACE}, timestamp 'ts'", "no column `ts`, which option `timestamp` names"),
        ("a INT", f"{PLACE}, timestamp 'a'", "cannot take the timestamp into `a`"),
        ("a INT, b STRING", f"{PLACE}, headers 'b'", "ARRAY<STRUCT<key: STRING, value: BINARY>>"),
        ("a INT, b STRING", f"{PLACE}, offset 'b'", "declare it as BIGINT"),
        ("a BIGINT", f"{PLACE}, key 'a', timestamp 'a'", "takes `a` from two parts"),
        ("a INT", f"{PLACE}, key 'a', key_format 'none'", "key_format is 'none'"),
        ("a INT, b INT", f"{PLACE}, format 'text'", "has 2 columns for a value that is one text"),
        ("a INT", f"{PLACE}, format 'raw'", "declare the column as BINARY"),
        ("a BINARY", f"{PLACE}, format 'text'", "declare the column as STRING"),
        ("a INT, b INT", f"{PLACE}, key 'a, b', key_format 'text'", "has 2 columns for a key"),
        ("a INT", f"{PLACE}, format 'avro'", "have no schema"),
        ("a INT", f"{PLACE}, format 'avro', avro_schema '5'", "cannot be used"),
        ("a INT", f"{PLACE}, format 'avro', avro_schema '{{\"type\": \"record\"}}'", "cannot be used"),
        ("a INT, WATERMARK a DELAY OF 1", f"{PLACE}, partitions '3'", "says what Kafka knows"),
    ],
)
def test_what_is_refused(columns: str, options: str, words: str) -> None:
    with pytest.raises(PlanningError) as caught:
        defined(f"CREATE STREAM s ({columns}) USING kafka OPTIONS ({options})")
    assert words in str(caught.value)


def test_a_field_that_the_avro_schema_does_not_have() -> None:
    schema = '{"type": "record", "name": "r", "fields": [{"name": "price", "type": "long"}]}'
    with pytest.raises(PlanningError, match="no field `prize`") as caught:
        defined(f"CREATE STREAM s (prize INT) USING kafka OPTIONS ({PLACE}, format 'avro', avro_schema '{schema}')")
    assert "did you mean `price`" in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "type_", "words"),
    [
        ("price BIGINT", '"string"', "declared bigint, the schema has string"),
        ("price TIMESTAMP", '"long"', "declared timestamp, the schema has bigint"),
        ("price ARRAY<INT>", '{"type": "array", "items": "string"}', "the schema has array<string>"),
        ("price DECIMAL(9, 2)", '{"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}', ""),
        ("price INT", '"long"', ""),
        ("price STRING", '["null", {"type": "enum", "name": "e", "symbols": ["a"]}]', ""),
        ("price MAP<STRING, BIGINT>", '{"type": "map", "values": "int"}', ""),
    ],
)
def test_types_of_the_avro_schema(columns: str, type_: str, words: str) -> None:
    schema = f'{{"type": "record", "name": "r", "fields": [{{"name": "Price", "type": {type_}}}]}}'
    text = f"CREATE STREAM s ({columns}) USING kafka OPTIONS ({PLACE}, format 'avro', avro_schema '{schema}')"
    if not words:
        defined(text)
        return
    with pytest.raises(PlanningError, match="field `Price` does not fit column `price`") as caught:
        defined(text)
    assert words in str(caught.value)


def record(*fields: tuple[str, object]) -> str:
    return json.dumps({"type": "record", "name": "r", "fields": [{"name": name, "type": t} for name, t in fields]})


A, AB = record(("a", "long")), record(("a", "long"), ("b", "string"))
FRAMED = f"{PLACE}, format 'avro', avro_framing 'confluent', avro_schema '{A}'"


def test_schemas_by_their_ids() -> None:
    source = defined(
        f"CREATE STREAM s (a BIGINT, b STRING) USING kafka OPTIONS ({FRAMED}, avro_schema_id '7', "
        f"avro_schema.9 '{AB}', 'avro_schema.12' = '{AB}')"
    )
    assert schemas_by_id(source.options) == {7: A, 9: AB, 12: AB}


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("a INT", FRAMED, "add avro_schema_id '…', the number that the registry gave to avro_schema"),
        ("a INT", f"{FRAMED}, avro_schema.9 '{A}'", "has avro_framing 'confluent' and no avro_schema_id"),
        ("a INT", f"{FRAMED}, avro_schema_id 'x'", "option `avro_schema_id` of `s` has the schema id 'x'"),
        ("a INT", f"{FRAMED}, avro_schema_id '{1 << 31}'", "has the schema id"),
        ("a INT", f"{FRAMED}, avro_schema_id '7', avro_schema.x '{A}'", "option `avro_schema.x` of `s` has"),
        ("a INT", f"{FRAMED}, avro_schema_id '7', avro_schema.09 '{A}'", "option `avro_schema.09` of `s` has"),
        ("a INT", f"{FRAMED}, avro_schema_id '7', avro_schema.7 '{A}'", "has two schemas of id 7"),
        ("a INT", f"{FRAMED}, avro_schema_id '7', avro_schema.9 '5'", "correct avro_schema.9"),
        ("a INT, b INT", f"{FRAMED}, avro_schema_id '7', avro_schema.9 '{AB}'", "avro_schema.9 has string"),
        ("a INT, c INT", f"{FRAMED}, avro_schema_id '7', avro_schema.9 '{AB}'", "fields: a, b;"),
        ("a INT", f"{PLACE}, format 'avro', avro_schema '{A}', avro_schema_id '7'", "add avro_framing 'confluent'"),
        ("a INT", f"{PLACE}, format 'avro', avro_schema '{A}', avro_schema.9 '{A}'", "add avro_framing 'confluent'"),
        ("a INT", f"{PLACE}, avro_schema '{A}'", "has avro_schema, and its values are not Avro"),
        ("a INT", f"{PLACE}, avro_framing 'confluent'", "has avro_framing, and its values are not Avro"),
    ],
)
def test_schema_ids_that_are_refused(columns: str, options: str, words: str) -> None:
    with pytest.raises(PlanningError) as caught:
        defined(f"CREATE STREAM s ({columns}) USING kafka OPTIONS ({options})")
    assert words in str(caught.value)


def test_a_nested_field_may_be_missing_in_all_schemas_but_one() -> None:
    old = record(("x", {"type": "record", "name": "x", "fields": [{"name": "n", "type": "int"}]}))
    both = [{"name": "n", "type": "long"}, {"name": "t", "type": "string"}]
    new = record(("x", {"type": "record", "name": "x", "fields": both}))
    options = f"{PLACE}, format 'avro', avro_framing 'confluent', avro_schema_id '7', avro_schema '{old}'"
    text = "CREATE STREAM s (x STRUCT<n: BIGINT, t: STRING>) USING kafka OPTIONS "
    assert schemas_by_id(defined(f"{text} ({options}, avro_schema.9 '{new}')").options) == {7: old, 9: new}
    with pytest.raises(PlanningError, match="does not fit column `x`"):
        defined(f"{text} ({options})")


def test_the_key_of_a_table_is_that_of_its_records() -> None:
    with pytest.raises(PlanningError, match="has the primary key a, and takes b from the key"):
        defined(f"CREATE TABLE s (a INT, b INT, PRIMARY KEY (a)) USING kafka OPTIONS ({PLACE}, key 'b')")
