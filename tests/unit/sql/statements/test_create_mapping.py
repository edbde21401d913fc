"""CREATE MAPPING: another spelling of CREATE STREAM and CREATE TABLE."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import DefinitionConflict, PlanningError
from rejoinder.ir.catalog import Source
from rejoinder.sql.statements.statement_parser import CreateSource, parse_statements
from rejoinder.testing import Driver

COLUMNS = "(order_id BIGINT, order_time TIMESTAMP, address VARCHAR)"


def source(text: str) -> Source:
    (statement,) = parse_statements(text)
    assert isinstance(statement, CreateSource)
    return statement.source


@pytest.mark.parametrize(
    ("mapping", "stream"),
    [
        (f"MAPPING orders {COLUMNS} TYPE Stream", f"STREAM orders {COLUMNS}"),
        (
            f"MAPPING IF NOT EXISTS orders {COLUMNS} TYPE File OPTIONS ('path'='in', 'format'='csv', 'glob'='*.csv')",
            f"STREAM orders {COLUMNS} USING csv OPTIONS (path 'in', pathGlobFilter '*.csv')",
        ),
        (
            f"MAPPING orders {COLUMNS} TYPE file OPTIONS ('format' = 'json-flat', path = 'in', 'late' = 'drop')",
            f"STREAM orders {COLUMNS} USING json OPTIONS (path 'in', late 'drop')",
        ),
        (
            "MAPPING people (id INT, name VARCHAR, PRIMARY KEY (id)) TYPE File OPTIONS ('path'='p','format'='parquet')",
            "TABLE people (id INT PRIMARY KEY, name STRING) USING parquet OPTIONS (path 'p')",
        ),
        (
            "MAPPING o (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND) TYPE Stream",
            "STREAM o (ts TIMESTAMP, WATERMARK ts DELAY OF INTERVAL 1 SECOND)",
        ),
    ],
)
def test_a_mapping_is_a_source(mapping: str, stream: str) -> None:
    assert source(f"CREATE {mapping}") == source(f"CREATE {stream}")


def test_the_topic_of_a_kafka_mapping_is_its_name_or_the_one_outside() -> None:
    mapping = "MAPPING orders {} (id BIGINT, name VARCHAR) TYPE Kafka OPTIONS ('bootstrap.servers' = 'b:9092'{})"
    stream = "STREAM orders (id BIGINT, name STRING) USING kafka OPTIONS (bootstrap 'b:9092', topic '{}'{})"
    assert source(f"CREATE {mapping.format('', '')}") == source(f"CREATE {stream.format('orders', '')}")
    more = ", 'valueFormat' = 'json-flat', 'auto.offset.reset' = 'earliest', 'security.protocol' = 'SSL'"
    same = ", format 'json', startingOffsets 'earliest', kafka.security.protocol 'SSL'"
    outside = mapping.format("EXTERNAL NAME 'o.1'", more)
    assert source(f"CREATE {outside}") == source(f"CREATE {stream.format('o.1', same)}")


def test_the_tables_of_the_document(tmp_path: Path) -> None:
    """Its two mappings, its views with IMPOSE_ORDER and its query, as they stand there."""
    driver = Driver()
    driver.sql(
        """
        CREATE MAPPING orders (
            order_id BIGINT,
            order_time TIMESTAMP,
            item_id BIGINT
         ) TYPE Stream;

        CREATE MAPPING deliveries (
            delivery_id BIGINT,
            order_id BIGINT,
            delivery_time TIMESTAMP,
            address VARCHAR
        ) TYPE Stream;

        CREATE VIEW orders_ordered AS
          SELECT * FROM TABLE(IMPOSE_ORDER(TABLE orders, DESCRIPTOR(order_time), INTERVAL '10' MINUTE));
        CREATE VIEW deliveries_ordered AS
          SELECT * FROM TABLE(IMPOSE_ORDER(TABLE deliveries, DESCRIPTOR(delivery_time), INTERVAL '10' MINUTE));
        CREATE VIEW joined AS
          SELECT o.order_id, o.item_id, d.delivery_id, d.address
          FROM orders_ordered AS o
          JOIN deliveries_ordered  AS d
              ON d.delivery_time BETWEEN o.order_time
                  AND o.order_time + INTERVAL '1' HOUR
        """
    )
    for number, (ordered, delivered) in enumerate((("10:00", "10:40"), ("11:00", "11:20")), start=1):
        driver.insert("orders", {"order_id": number, "order_time": f"2022-03-01 {ordered}", "item_id": 100})
        driver.step()
        delivery = {"delivery_id": number, "order_id": number, "delivery_time": f"2022-03-01 {delivered}"}
        driver.insert("deliveries", {**delivery, "address": f"address_{number}"})
        assert driver.step()["joined"] == [
            ({"order_id": number, "item_id": 100, "delivery_id": number, "address": f"address_{number}"}, 1)
        ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("7\n", encoding="utf-8")
    driver.sql(f"CREATE MAPPING files (n INT) TYPE File OPTIONS ('path'='{tmp_path}/in', 'format'='csv')")
    driver.sql("CREATE VIEW read AS SELECT n FROM files")
    assert driver.step()["read"] == [({"n": 7}, 1)]
    driver.sql("DROP VIEW read; DROP MAPPING files")
    with pytest.raises(DefinitionConflict, match="`joined` is a view, not a mapping"):
        driver.sql("DROP MAPPING joined")


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("m (id INT) TYPE Files OPTIONS ('path'='p')", "TYPE Files of mapping `m` is not known"),
        ("m (id INT) TYPE IMap", "TYPE IMap of mapping `m` is not known"),
        ("m (id INT) TYPE File OPTIONS ('path'='p')", "mapping `m` has no format"),
        ("m (id INT) TYPE File OPTIONS ('path'='p', 'format'='avro')", "format `avro` of mapping `m` is not known"),
        ("m (id INT) TYPE File OPTIONS ('format'='csv')", "`m` USING csv has no path"),
        ("m (id INT) TYPE File OPTIONS ('path'='p','format'='csv','sharedFileSystem'='true')", "`sharedfilesystem`"),
        ("m EXTERNAL NAME 'x' (id INT) TYPE Stream", "EXTERNAL NAME of mapping `m` is not supported for TYPE Stream"),
        ("m (id INT) TYPE Kafka", "`m` USING kafka has no bootstrap"),
        ("m (id INT EXTERNAL NAME 'key.id') TYPE Stream", "EXTERNAL NAME of column `id` is not supported"),
        ("m (id INT)", "the statement ends too early"),
        ("m (id INT) TYPE Stream USING json", "unexpected `USING` at the end"),
        ("m TYPE Stream", "expected `(` and found `TYPE`"),
    ],
)
def test_what_is_wrong_is_said(text: str, fact: str) -> None:
    with pytest.raises(PlanningError) as raised:
        parse_statements(f"CREATE MAPPING {text}")
    assert fact in str(raised.value) and raised.value.hint
