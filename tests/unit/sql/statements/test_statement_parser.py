"""Statements: what can be written, and what is said about what cannot: fact, detail and hint, always."""

from __future__ import annotations

import pytest

from rejoinder.errors import DefinitionConflict, InvalidSql, RejoinderError, UnknownName, Unsupported
from rejoinder.sql.statements.statement_parser import (
    CreateIndex,
    CreateSource,
    CreateView,
    Drop,
    Explain,
    Select,
    Show,
    Statement,
    parse_statements,
)
from rejoinder.testing import Driver

SOURCES = """
    CREATE CHANGELOG a (k INT, x INT);
    CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id));
    CREATE STREAM s (k INT)
"""


def parsed(text: str) -> Statement:
    (statement,) = parse_statements(text)
    return statement


def test_statements_are_separated_by_semicolons_outside_quotes() -> None:
    text = "CREATE VIEW v AS SELECT ';' AS s FROM a; -- a comment; with one\n SHOW VIEWS;; DROP VIEW v;"
    assert parse_statements(text) == [
        CreateView("v", "SELECT ';' AS s FROM a"),
        Show("VIEWS"),
        Drop("VIEW", "v", False),
    ]
    assert parse_statements("") == parse_statements(" ;; -- nothing") == []


def test_a_source_is_read_with_all_its_clauses() -> None:
    statement = parsed(
        "create table if not exists `Odd name` (id BIGINT NOT NULL COMMENT 'the key', m MAP<STRING, ARRAY<INT>>,"
        " p DECIMAL(10, 2), s STRUCT<a: INT, b: STRING>, op STRING, primary key (ID))"
        " USING json OPTIONS (path '/tmp/x', op = 'op', order 'P', maxFilesPerTrigger 3)"
    )
    assert isinstance(statement, CreateSource) and statement.if_not_exists
    source = statement.source
    assert (source.name, source.kind, source.format) == ("Odd name", "table", "json")
    assert source.schema.names == ["id", "m", "p", "s"] and source.primary_key == ("id",)
    assert (source.op, source.order, source.diff) == ("op", "p", None)
    assert source.options == {"path": "/tmp/x", "maxfilespertrigger": "3"}


def test_a_primary_key_may_stand_beside_its_column() -> None:
    statement = parsed("CREATE TABLE t (a INT PRIMARY KEY, b STRING)")
    assert isinstance(statement, CreateSource) and statement.source.primary_key == ("a",)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("CREATE MATERIALIZED VIEW v AS WITH w AS (SELECT 1) SELECT * FROM w", None),
        ("CREATE INDEX i ON a (k, x)", CreateIndex("i", "a", ("k", "x"))),
        ("CREATE INDEX IF NOT EXISTS ON a (k)", CreateIndex("a_k", "a", ("k",), True)),
        ("DROP TABLE IF EXISTS `t`", Drop("TABLE", "t", True)),
        ("DROP INDEX i", Drop("INDEX", "i", False)),
        ("EXPLAIN SELECT a.k, ';' FROM a", Explain("SELECT a.k, ';' FROM a")),
        ("explain v", Explain("v")),
        ("SHOW arrangements", Show("ARRANGEMENTS")),
        ("SELECT k FROM a", Select("SELECT k FROM a", "TABLE")),
        ("SELECT STREAM * FROM v", Select("SELECT  * FROM v", "STREAM")),
        ("WITH w AS (SELECT k FROM a) SELECT TVR k FROM w", None),
        ("SELECT stream FROM a", Select("SELECT stream FROM a", "TABLE")),
        ("SELECT stream, `table` FROM a", Select("SELECT stream, `table` FROM a", "TABLE")),
        ("SELECT `stream` * 2 AS x FROM a", Select("SELECT `stream` * 2 AS x FROM a", "TABLE")),
        ("(SELECT k FROM a)", Select("(SELECT k FROM a)", "TABLE")),
        ("VALUES (1)", Select("VALUES (1)", "TABLE")),
        ("FROM a |> SELECT k", Select("FROM a |> SELECT k", "TABLE")),
    ],
)
def test_statements_are_read(text: str, statement: Statement | None) -> None:
    assert statement is None or parsed(text) == statement


REFUSED: list[tuple[str, type[RejoinderError], str]] = [
    ("SELEC k FROM a", InvalidSql, "a statement cannot start with `SELEC`"),
    ("INSERT INTO a VALUES (1)", Unsupported, "INSERT is not supported"),
    ("SELECT 'open FROM a", InvalidSql, "a quote is not closed"),
    ("CREATE FUNCTION f AS 'x'", InvalidSql, "function `f` has no arguments in parentheses"),
    ("CREATE OR REPLACE TABLE v (k INT)", Unsupported, "CREATE OR REPLACE TABLE is not supported"),
    (
        "CREATE OR REPLACE VIEW IF NOT EXISTS v AS SELECT k FROM a",
        InvalidSql,
        "OR REPLACE and IF NOT EXISTS exclude each other",
    ),
    ("CREATE TEMPORARY VIEW v AS SELECT k FROM a", Unsupported, "CREATE TEMPORARY is not supported"),
    ("CREATE VIEW v AS", InvalidSql, "the statement ends too early"),
    ("CREATE VIEW v SELECT k FROM a", InvalidSql, "expected `AS` and found `SELECT`"),
    ("CREATE TEMP VIEW v AS SELECT k FROM a", Unsupported, "CREATE TEMP is not supported"),
    ("SELECT k FROM a WHERE", InvalidSql, "something is missing at `WHERE`"),
    ("SELECT k FROM a JOIN", InvalidSql, "expected table name at the end"),
    ("SELECT k FROM WHERE k > 1", InvalidSql, "expected table name and found `WHERE`"),
    ("CREATE VIEW 'v' AS SELECT k FROM a", InvalidSql, "expected a name and found `v`"),
    ("CREATE VIEW a AS SELECT k FROM s", DefinitionConflict, "`a` differs from the definition stored in this state"),
    ("CREATE STREAM z (k INT); CREATE STREAM Z (k INT)", DefinitionConflict, "`Z` is already defined"),
    ("CREATE STREAM z", InvalidSql, "the statement ends too early"),
    ("CREATE STREAM z ()", InvalidSql, "expected a name and found `)`"),
    ("CREATE STREAM z (k)", InvalidSql, "column `k` has no type"),
    ("CREATE STREAM z (k INT", InvalidSql, "the statement ends too early"),
    (
        "CREATE STREAM z (k INT) PARTITIONED BY (k)",
        Unsupported,
        "PARTITIONED after the columns of `z` is not supported",
    ),
    ("CREATE STREAM z (k INT, K INT)", InvalidSql, "column `k` of `z` is declared twice"),
    ("CREATE STREAM z (__hash INT)", InvalidSql, "column `__hash` of `z` has a reserved name"),
    ("CREATE STREAM z (k INT, WATERMARK j DELAY OF 5)", UnknownName, "`z` has no column `j`"),
    (
        "CREATE STREAM z (k STRING, WATERMARK k DELAY OF 5)",
        InvalidSql,
        "WATERMARK on `k` of `z`, which is of type string",
    ),
    (
        "CREATE STREAM z (k INT, WATERMARK k DELAY OF INTERVAL 1 DAY)",
        InvalidSql,
        "the delay `INTERVAL 1 DAY` of `z` does not fit column `k`",
    ),
    ("CREATE STREAM z (k INT, WATERMARK k DELAY OF)", InvalidSql, "WATERMARK of `z` has no delay"),
    ("CREATE STREAM z (k INT) USNG json", InvalidSql, "unexpected `USNG` after the columns of `z`"),
    ("CREATE STREAM z (k INT) USING json OPTIONS (path in/z)", InvalidSql, "the value of option `path` has no quotes"),
    ("CREATE STREAM z (k INT NOT NULL)", Unsupported, "NOT NULL of column `k` is not supported"),
    ("CREATE STREAM z (k VARCHAR(3))", Unsupported, "the length of `VARCHAR(3)` is not supported"),
    ("CREATE STREAM z (k FOO)", InvalidSql, "`FOO` is not a type"),
    ("CREATE STREAM z (k INTERVAL)", Unsupported, "the type `INTERVAL` is not supported"),
    ("CREATE STREAM z (k INT) USING kafkaesque", Unsupported, "format `kafkaesque` of `z` is not known"),
    ("CREATE STREAM z (k INT) USING parquet", InvalidSql, "`z` USING parquet has no path"),
    ("CREATE STREAM z (k INT) OPTIONS (pth 'x')", UnknownName, "option `pth` of `z` is not known"),
    ("CREATE STREAM z (k INT) OPTIONS (malformed 'ignore')", InvalidSql, "option `malformed` of `z` is `ignore`"),
    ("CREATE TABLE z (k INT)", InvalidSql, "table `z` has no primary key"),
    ("CREATE TABLE z (k INT, PRIMARY KEY (q))", UnknownName, "`z` has no column `q`"),
    ("CREATE TABLE z (k INT, PRIMARY KEY (k, K))", InvalidSql, "table `z` names a column of its primary key twice"),
    ("CREATE TABLE z (k INT PRIMARY KEY) OPTIONS (order 'o')", UnknownName, "`z` has no column `o`"),
    ("CREATE TABLE z (k INT PRIMARY KEY, d INT) OPTIONS (diff 'd')", InvalidSql, "table `z` has a diff column"),
    ("CREATE STREAM z (k INT PRIMARY KEY)", InvalidSql, "stream `z` cannot have a primary key"),
    ("CREATE STREAM z (k INT, d INT) OPTIONS (op 'd')", InvalidSql, "stream `z` is append-only and has no op or diff"),
    ("CREATE CHANGELOG z (k INT) OPTIONS (order 'k')", InvalidSql, "changelog `z` has an order column"),
    ("CREATE CHANGELOG z (k INT) OPTIONS (op 'o', diff 'd')", InvalidSql, "changelog `z` has both op and diff"),
    (
        "CREATE CHANGELOG z (k INT) USING parquet OPTIONS (path 'x')",
        InvalidSql,
        "changelog `z` does not say which column distinguishes inserts from deletes",
    ),
    ("CREATE INDEX i ON a (q)", UnknownName, "`a` has no column `q`"),
    ("CREATE INDEX i ON nope (k)", UnknownName, "there is no relation `nope`"),
    ("CREATE INDEX i ON a (k, K)", InvalidSql, "column `k` appears twice in index `i`"),
    ("CREATE INDEX i ON a (k); CREATE INDEX I ON a (x)", DefinitionConflict, "index `I` is already defined"),
    ("DROP FUNCTION f", UnknownName, "there is no function `f`"),
    ("DROP VIEW nope", UnknownName, "there is no relation `nope`"),
    ("DROP VIEW a", DefinitionConflict, "`a` is a changelog, not a view"),
    ("DROP STREAM t", DefinitionConflict, "`t` is a table, not a stream"),
    ("DROP INDEX nope", UnknownName, "there is no index `nope`"),
    ("DROP STREAM s s", InvalidSql, "unexpected `s` at the end"),
    ("SHOW NOTHING", InvalidSql, "SHOW NOTHING is not known"),
    ("EXPLAIN a", Unsupported, "`a` is a source and has no plan"),
    ("EXPLAIN nope", UnknownName, "there is no relation `nope`"),
    ("EXPLAIN", InvalidSql, "the statement ends too early"),
]


@pytest.mark.parametrize(("text", "error", "fact"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_cannot_be_done_is_said_with_detail_and_hint(text: str, error: type[RejoinderError], fact: str) -> None:
    driver = Driver()
    driver.sql(SOURCES)
    with pytest.raises(error) as raised:
        driver.sql(text)
    assert type(raised.value) is error
    assert raised.value.fact == fact
    assert raised.value.detail and raised.value.hint
    assert str(raised.value).splitlines()[0] == f"[{error.code}] {fact}"


@pytest.mark.parametrize(
    ("format_", "options", "fact"),
    [
        *(
            ("csv", f"{option} '{value}'", f"option `{option.lower()}` of `z` is `{value}`")
            for option, value in (
                ("sep", ";;;"),
                ("sep", ""),
                ("delimiter", "é"),
                ("quote", "ab"),
                ("header", "maybe"),
                ("multiLine", "1"),
                ("maxFilesPerTrigger", "x"),
                ("maxFilesPerTrigger", "0"),
                ("maxFilesPerTrigger", "-1"),
                ("maxBytesPerTrigger", "1.5"),
                ("recursiveFileLookup", "yes"),
                ("latestFirst", ""),
                ("cleanSource", "burn"),
            )
        ),
        ("csv", "sep '|', quote '|'", "`z` has one character as separator and as quote"),
        ("csv", "sep '|', delimiter ';'", "`z` has both `sep` and `delimiter`"),
        ("json", "sep '|'", "option `sep` of `z` is for CSV, and this is json"),
        ("parquet", "header 'true'", "option `header` of `z` is for CSV, and this is parquet"),
    ],
)
def test_options_of_files_are_checked(format_: str, options: str, fact: str) -> None:
    with pytest.raises(InvalidSql) as raised:
        Driver().sql(f"CREATE STREAM z (k INT) USING {format_} OPTIONS (path 'x', {options})")
    assert raised.value.fact == fact
    assert raised.value.detail and raised.value.hint


@pytest.mark.parametrize("type_", ["map<string,int>", "struct<x:int>", "array<int>"])
def test_a_type_that_a_format_has_no_form_for(type_: str) -> None:
    with pytest.raises(Unsupported) as raised:
        Driver().sql(f"CREATE STREAM z (k INT, c {type_}) USING csv OPTIONS (path 'x')")
    assert raised.value.fact == f"CSV has no form for column `c` of `z`, which is of type {type_}"
    assert raised.value.detail and raised.value.hint


@pytest.mark.parametrize(
    "name", ["../up", "a/b", "a\\b", "it's", 'say "x"', "tick`", "a.b", "union#1", " a", "x" * 129]
)
@pytest.mark.parametrize("what", ["STREAM", "VIEW", "INDEX"])
def test_hostile_names_of_relations_are_refused(name: str, what: str) -> None:
    driver = Driver()
    driver.sql(SOURCES)
    quoted = "`" + name.replace("`", "``") + "`"
    rest = {"STREAM": "(k INT)", "VIEW": "AS SELECT k FROM a", "INDEX": "ON a (k)"}[what]
    with pytest.raises(InvalidSql) as raised:
        driver.sql(f"CREATE {what} {quoted} {rest}")
    assert raised.value.fact.endswith("is not a name for a relation")
    assert raised.value.detail and raised.value.hint


def test_odd_names_of_columns_and_relations_work() -> None:
    driver = Driver(parallelism=2)
    columns = ["odd col", 'q"q', "it's", "x, y", "select", "../up", "a.b", "ünï", "`tick`"]
    listed = ", ".join("`" + column.replace("`", "``") + "` INT" for column in columns)
    driver.sql(f"CREATE CHANGELOG `big orders` ({listed}); CREATE CHANGELOG `Zwölf-2` ({listed})")
    for at, column in enumerate(columns):
        quoted = "`" + column.replace("`", "``") + "`"
        driver.sql(
            f"CREATE VIEW v{at} AS SELECT l.{quoted} FROM `big orders` l JOIN `Zwölf-2` r ON l.{quoted} = r.{quoted}"
        )
    driver.sql("CREATE VIEW whole AS SELECT DISTINCT * FROM `big orders`")
    row = {column: at for at, column in enumerate(columns)}
    driver.insert("big orders", row)
    driver.insert("Zwölf-2", row)
    changes = driver.step()
    assert changes["whole"] == [(row, 1)]
    for at, column in enumerate(columns):
        assert changes[f"v{at}"] == [({column: at}, 1)]
        driver.sql(f"EXPLAIN v{at}")
    driver.restart(parallelism=3)
    driver.delete("big orders", row)
    assert driver.step()["whole"] == [(row, -1)]


def test_a_view_may_not_have_a_column_with_a_reserved_name() -> None:
    driver = Driver()
    driver.sql(SOURCES)
    with pytest.raises(InvalidSql, match="column `__epoch` of `v` has a reserved name"):
        driver.sql("CREATE VIEW v AS SELECT k AS __epoch FROM a")


@pytest.mark.parametrize("word", ["STREAM", "TVR", "TABLE"])
def test_a_view_is_not_rendered(word: str) -> None:
    with pytest.raises(InvalidSql, match=rf"view `v` cannot be a {word}[\s\S]*SELECT {word} \* FROM v"):
        parse_statements(f"CREATE VIEW v AS SELECT {word} id FROM t")
    assert parse_statements("CREATE VIEW v AS SELECT stream FROM t")
