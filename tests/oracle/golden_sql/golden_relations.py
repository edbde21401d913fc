"""The relations that the queries of a golden file read: tables as changelogs with their rows, views as views.

A view or table that reads no other relation becomes a changelog, so that the queries are maintained and not only
evaluated: `play` inserts its rows in two epochs, with copies that the second epoch deletes.
"""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rejoinder.errors import RejoinderError, UnknownName, Unsupported
from rejoinder.sql.parse.dialect import SparkSql
from rejoinder.sql.types.spark_types import spark_name
from rejoinder.testing import Driver

ANSWER = "golden_answer"
_VIEW = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?(?:GLOBAL\s+)?(?:(?:TEMPORARY|TEMP)\s+)?VIEW\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<name>[\w`.]+)\s*(?P<columns>\([^()]*\))?\s*AS\s+(?P<query>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TABLE = re.compile(
    r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?P<name>[\w`.]+)\s*(?:\((?P<columns>.*?)\)\s*)?"
    r"(?:USING\s+\w+\s*)?(?:AS\s+(?P<query>.*))?",
    re.IGNORECASE | re.DOTALL,
)
_INSERT = re.compile(
    r"INSERT\s+INTO\s+(?:TABLE\s+)?(?P<name>[\w`.]+)\s*(?P<columns>\([\w`\s,]+\))?\s*"
    r"(?P<query>(?:VALUES|SELECT|WITH|\().*)",
    re.IGNORECASE | re.DOTALL,
)
_WRITE = re.compile(r"\b(?:INSERT\s+(?:INTO|OVERWRITE)|MERGE\s+INTO)\s+(?:TABLE\s+)?(?P<name>[\w`.]+)", re.IGNORECASE)
_DROP = re.compile(r"DROP\s+(?:TABLE|VIEW)\s+(?:IF\s+EXISTS\s+)?(?P<name>[\w`.]+)", re.IGNORECASE)
_NUMBERS = (
    "unique1", "unique2", "two", "four", "ten", "twenty", "hundred", "thousand", "twothousand", "fivethous",
    "tenthous", "odd", "even",
)  # fmt: skip
_TENK = ", ".join([*(f"{name} INT" for name in _NUMBERS), "stringu1 STRING, stringu2 STRING, string4 STRING"])


@dataclass(frozen=True)
class Relation:
    """A relation of a golden file: rows of a changelog, or the query of a view; or why it could not be made."""

    name: str
    columns: str = ""
    """The columns of a changelog as CREATE lists them."""
    rows: tuple[dict[str, Any], ...] = ()
    query: str = ""
    """The statement of a view."""
    reads: frozenset[str] = frozenset()
    refusal: RejoinderError | None = None


@dataclass
class Relations:
    """All relations that exist at a statement of a file."""

    known: dict[str, Relation] = field(default_factory=dict)

    @staticmethod
    def shared(folder: Path) -> Relations:
        """Return the tables that every file may read, from `test-data` beside the folder of golden files."""
        relations = Relations()
        letters = [{"key": i, "value": str(i)} for i in range(1, 101)]
        relations.known["testdata"] = Relation("testdata", "key INT, value STRING", tuple(letters))
        data = folder.parent / "test-data" / "postgresql"
        for name, file, columns in (
            ("aggtest", "agg", "a INT, b FLOAT"),
            ("onek", "onek", _TENK),
            ("tenk1", "tenk", _TENK),
        ):
            relations.known[name] = Relation(name, columns, tuple(_data(data / f"{file}.data", columns)))
        return relations

    def apply(self, sql: str) -> None:
        """Execute a statement that defines, fills or drops a relation; any other is ignored."""
        text = re.sub(r"^\s*(--[^\n]*\n\s*)*", "", sql).strip()
        if found := _VIEW.fullmatch(text):
            self._define(_plain(found["name"]), found["columns"] or "", found["query"])
        elif found := _TABLE.fullmatch(text):
            name = _plain(found["name"])
            if found["query"]:
                self._define(name, "", found["query"])
            elif found["columns"]:
                self.known[name] = Relation(name, found["columns"])
        elif (found := _INSERT.fullmatch(text)) and _plain(found["name"]) in self.known:
            self._insert(self.known[_plain(found["name"])], found["columns"] or "", found["query"])
        elif found := _DROP.match(text):
            self.known.pop(_plain(found["name"]), None)
        elif (found := _WRITE.search(text)) and _plain(found["name"]) in self.known:
            refusal = Unsupported("the relation is filled by a statement that this script does not read")
            self.known[_plain(found["name"])] = Relation(_plain(found["name"]), refusal=refusal)

    def _define(self, name: str, columns: str, query: str) -> None:
        statement = f"CREATE VIEW {name} {columns} AS {query}"
        reads = self.read_by(query) - {name}
        if reads:
            self.known[name] = Relation(name, query=statement, reads=reads)
            return
        try:
            driver = planned([], query, columns)
            play(driver, [])
            kinds = ", ".join(f"`{f.name}` {spark_name(f.type)}" for f in driver.catalog.get(ANSWER).schema)
            self.known[name] = Relation(name, kinds, tuple(map(dict, driver.table(ANSWER))))
        except RejoinderError as refusal:
            self.known[name] = Relation(name, refusal=refusal)

    def _insert(self, into: Relation, columns: str, query: str) -> None:
        if into.refusal:
            return
        kinds = dict(_columns(into.columns))
        query = _with_typed_nulls(query, list(kinds.values()))
        names = [_plain(name) for name in columns.strip("() ").split(",")] if columns else list(kinds)
        items = ", ".join(f"CAST(`{n}` AS {kinds[n]}) AS `{n}`" for n in names)
        listed = ", ".join(f"`{n}`" for n in names)
        try:
            needed = self.needed_by(query)
            driver = planned(needed, f"SELECT {items} FROM ({query}) AS s ({listed})")
            play(driver, needed)
            rows = [dict.fromkeys(kinds) | dict(row) for row in driver.table(ANSWER)]
            self.known[into.name] = replace(into, rows=(*into.rows, *rows))
        except RejoinderError as refusal:
            self.known[into.name] = replace(into, refusal=refusal)

    def read_by(self, query: str) -> frozenset[str]:
        """Return the relations whose names occur in a query."""
        try:
            tree = sqlglot.parse_one(query, read=SparkSql)
        except SqlglotError:
            return frozenset(name for name in self.known if re.search(rf"\b{name}\b", query, re.IGNORECASE))
        return frozenset(table.name.lower() for table in tree.find_all(exp.Table)) & self.known.keys()

    def needed_by(self, query: str) -> list[Relation]:
        """Return the relations that a query needs, those that others read first. Raises why one could not be made."""
        needed: dict[str, Relation] = {}

        def add(name: str) -> None:
            relation = self.known[name]
            if relation.refusal is not None:
                raise relation.refusal
            for read in sorted(relation.reads):
                if read not in self.known:
                    raise UnknownName(f"there is no relation `{read}`")
                if read not in needed:
                    add(read)
            needed[name] = relation

        for name in sorted(self.read_by(query)):
            add(name)
        return list(needed.values())


def planned(relations: Iterable[Relation], query: str, columns: str = "") -> Driver:
    """Return a flow with the query as a view. Raises a `RejoinderError` if it is refused."""
    driver = Driver()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        statements = [r.query or f"CREATE CHANGELOG {r.name} ({r.columns})" for r in relations]
        driver.sql(";\n".join([*statements, f"CREATE VIEW {ANSWER} {columns} AS {query}"]))
    return driver


def play(driver: Driver, relations: Iterable[Relation], *, is_changing: bool = False) -> None:
    """Insert the rows: in one epoch; or in two, of which the second deletes copies that the first inserted."""
    filled = [relation for relation in relations if not relation.query]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for relation in filled:
            first = (*relation.rows[::2], *relation.rows[:3], *relation.rows[-1:])
            driver.insert(relation.name, *(first if is_changing else relation.rows))
        driver.step()
        for relation in filled if is_changing else ():
            driver.insert(relation.name, *relation.rows[1::2])
            driver.delete(relation.name, *relation.rows[:3], *relation.rows[-1:])
        driver.step()


def _with_typed_nulls(query: str, kinds: list[str]) -> str:
    """VALUES whose NULLs have the types of the columns: a column of NULLs alone has none."""
    if not query.upper().startswith("VALUES"):
        return query
    tree = sqlglot.parse_one(query, read=SparkSql)
    for row in tree.find_all(exp.Tuple):
        for value, kind in zip(row.expressions, kinds, strict=False):
            if isinstance(value, exp.Null):
                value.replace(exp.cast(exp.null(), kind, dialect="spark"))
    return tree.sql(dialect="spark")


def _data(path: Path, columns: str) -> Iterable[dict[str, Any]]:
    types = {"INT": int, "FLOAT": float, "STRING": str}
    kinds = [(name, types[kind]) for name, kind in _columns(columns)]
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.reader(file, delimiter="\t"):
            yield {name: kind(value) for (name, kind), value in zip(kinds, line, strict=True)}


def _columns(text: str) -> list[tuple[str, str]]:
    """Return names and types of a list of columns."""
    schema = sqlglot.parse_one(f"CREATE TABLE t ({text})", read=SparkSql).this
    return [(c.name, c.args["kind"].sql(dialect="spark")) for c in schema.expressions if isinstance(c, exp.ColumnDef)]


def _plain(name: str) -> str:
    return name.strip().strip("`").lower().removeprefix("global_temp.").removeprefix("default.")
