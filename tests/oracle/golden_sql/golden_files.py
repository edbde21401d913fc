"""Read Spark's golden files: the statements of a `.sql.out` file, each with the schema and rows that Spark gave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUBJECTS = (
    r"join|exists|subquer|in-subquery|window|qualify|group|having|pivot|aggregates_part|"
    r"except|intersect|union|cte|lateral|limit|order-by"
)
"""Which files are about joins, EXISTS, IN, subqueries, windows and grouping, by their paths."""
OTHER_SURFACES = (
    r"^(udf|udaf|udtf|nonansi|scripting|typeCoercion)/|recursion|legacy|sql-udf|time-window|nearest|asof|disabled"
)
"""Files about functions in Scala, other dialects of Spark, and joins that only a later Spark has (ASOF, NEAREST)."""

_ENTRY = re.compile(r"(?P<sql>.*?)\n-- !query schema\n(?P<schema>.*?)\n-- !query output\n(?P<output>.*)", re.DOTALL)
_SET = re.compile(r"SET\s+(?P<key>spark\.sql\.[\w.]+)\s*=\s*(?P<value>[^\n;]+)", re.IGNORECASE)
_DIALECT = re.compile(r"legacy|ansi|caseSensitive|groupBy|orderBy|quoted|CharVarchar|timestampType", re.IGNORECASE)
"""Settings that change what a query means."""
_QUERY = re.compile(r"(select|with|values|from|table|\()\b|\(", re.IGNORECASE)
_COMMENT = re.compile(r"^\s*(--[^\n]*\n|/\*.*?\*/)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """A statement, the schema of its answer as `struct<…>`, and the rows as lines."""

    file: str
    number: int
    """Its position in the file, from 1."""
    sql: str
    schema: str
    output: str

    @property
    def name(self) -> str:
        """Where it stands: `subquery/in-subquery/in-limit.sql 14`."""
        return f"{self.file} {self.number}"

    @property
    def is_query(self) -> bool:
        """Whether it is a query that Spark answered with rows, and not with an error."""
        return bool(_QUERY.match(_without_comments(self.sql))) and self.schema != "struct<>"


class Dialect:
    """Whether the settings that the statements of a file made so far leave the meaning of SQL as it is by default."""

    def __init__(self) -> None:
        self._changed: dict[str, str] = {}

    @property
    def is_default(self) -> bool:
        """Whether no setting has another value than at the start."""
        return not self._changed

    def apply(self, sql: str) -> None:
        """Execute SET and RESET. A second SET with another value is taken for the default."""
        text = _without_comments(sql)
        if text.upper().startswith("RESET"):
            self._changed.clear()
        elif (found := _SET.match(text)) and _DIALECT.search(found["key"]):
            value = found["value"].strip().lower()
            if self._changed.setdefault(found["key"], value) != value:
                del self._changed[found["key"]]


def golden_files(folder: Path, pattern: str | None) -> Iterator[tuple[str, list[Entry]]]:
    """Yield the files under `folder`/results whose path matches; None: all files on `SUBJECTS`."""
    results = folder / "results"
    for path in sorted(results.rglob("*.sql.out")):
        file = path.relative_to(results).as_posix().removesuffix(".out")
        chosen = re.search(SUBJECTS, file) and not re.search(OTHER_SURFACES, file)
        if re.search(pattern, file) if pattern else chosen:
            yield file, list(_entries(file, path.read_text(encoding="utf-8")))


def _entries(file: str, text: str) -> Iterator[Entry]:
    for number, part in enumerate(re.split(r"^-- !query\n", text, flags=re.MULTILINE)[1:], 1):
        found = _ENTRY.fullmatch(part)
        if found is None:
            raise ValueError(f"{file}: statement {number} has no schema or no output")
        output = found["output"].removesuffix("\n\n\n") if found["output"].endswith("\n\n\n") else found["output"]
        yield Entry(file, number, found["sql"], found["schema"], output.rstrip("\n"))


def _without_comments(sql: str) -> str:
    while comment := _COMMENT.match(sql):
        sql = sql[comment.end() :]
    return sql.strip()
