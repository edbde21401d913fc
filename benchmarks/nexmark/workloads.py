"""Nexmark's queries as workloads of the comparison: the tables of each, and the columns whose sum is its checksum.

Standard library only, because the engines' own environments have nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from benchmarks.nexmark.duckdb_queries import QUERIES, select, truth

INPUTS = "N"
"""The folder of the events, which all these workloads read."""


@dataclass(frozen=True)
class NexmarkQuery:
    """A query of Nexmark.

    The checked columns do not depend on which of several equal rows comes first in an ORDER BY: Flink gets the
    queries as they are published, which leave that open, the others get queries that determine every row.
    """

    name: str
    tables: tuple[str, ...]
    checked: tuple[str, ...]

    def checksum(self) -> str:
        """The SQL of the checksum: times count as milliseconds, averages as the integers that Flink returns."""
        return " + ".join(
            f"sum(epoch_ms({c}))" if c == "dateTime" else f"sum(floor({c})::BIGINT)" for c in self.checked
        )

    def answer(self) -> str:
        """The query that counts and sums up the rows in DuckDB."""
        return f"SELECT count(*), {self.checksum()} FROM ({truth(self.name)})"

    def view(self) -> tuple[dict[str, str], str]:
        """The declarations of the tables and the query for Rejoinder."""
        sources = (QUERIES / "sources.sql").read_text(encoding="utf-8")
        declarations = {match[2]: match[1] for match in re.finditer(r"(CREATE STREAM (\w+) [^;]+)", sources)}
        return {table: declarations[table] for table in self.tables}, select(self.name)


WORKLOADS = {
    "N3": NexmarkQuery("q3", ("auction", "person"), ("id",)),
    "N4": NexmarkQuery("q4", ("auction", "bid"), ("category", "final")),
    "N5": NexmarkQuery("q5", ("bid",), ("auction", "num")),
    "N7": NexmarkQuery("q7", ("bid",), ("auction", "price")),
    "N8": NexmarkQuery("q8", ("person", "auction"), ("id",)),
    "N9": NexmarkQuery("q9", ("auction", "bid"), ("id", "price")),
    "N11": NexmarkQuery("q11", ("bid",), ("bidder", "bid_count")),
    "N18": NexmarkQuery("q18", ("bid",), ("auction", "dateTime")),
    "N19": NexmarkQuery("q19", ("bid",), ("price", "place")),
    "N20": NexmarkQuery("q20", ("auction", "bid"), ("auction", "price")),
}
