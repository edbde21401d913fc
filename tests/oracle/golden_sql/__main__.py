"""Ask Spark's golden queries as views: how many are planned, how many are right, and why the others are refused.

    python -m tests.oracle.golden_sql ../spark/sql/core/src/test/resources/sql-tests [--files REGEX] [--show]

The folder is that of Spark's repository, with `results`; `test-data` is read beside it. Nothing of it is copied.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from rejoinder.errors import EvaluationError, PlanningError, RejoinderError
from rejoinder.testing import Driver
from tests.oracle.golden_sql.golden_files import Dialect, Entry, golden_files
from tests.oracle.golden_sql.golden_relations import ANSWER, Relation, Relations, planned, play
from tests.oracle.golden_sql.golden_text import row_text, same_rows, schema_text

KNOWN = Path(__file__).with_name("known_differences.yaml")


@dataclass
class Score:
    """What became of the queries."""

    queries: int = 0
    planned: int = 0
    right: int = 0
    undefined: list[str] = field(default_factory=list)
    """Queries of `known_differences.yaml` whose rows differ."""
    other_schema: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    refusals: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def ask(self, entry: Entry, relations: Relations, known: dict[str, str], *, show: bool) -> None:
        """Plan the query of an entry, run it under changes and compare the rows."""
        self.queries += 1
        try:
            needed = relations.needed_by(entry.sql)
            driver, columns = _planned(entry, needed)
        except RejoinderError as refusal:
            self.refusals[_reason(refusal)].append(entry.name)
            if show:
                print(f"refused  {entry.name}: {refusal}\n{entry.sql}\n", flush=True)
            return
        self.planned += 1
        try:
            try:
                play(driver, needed, is_changing=True)
            except EvaluationError:  # perhaps because of the copies, which Spark's query never saw
                driver = planned(needed, entry.sql, columns)
                play(driver, needed)
        except RejoinderError as failure:
            self._differs(entry, known, f"{type(failure).__name__}: {failure}")
            return
        schema = driver.catalog.get(ANSWER).schema
        rows = [row_text(row, schema) for row in driver.table(ANSWER)]
        if not same_rows(rows, entry.output):
            ours, theirs = "\n".join(sorted(rows)), entry.output
            self._differs(entry, known, f"ours:\n{ours[:1500]}\nSpark's:\n{theirs[:1500]}")
            return
        self.right += 1
        if not columns and schema_text(schema) != entry.schema:
            self.other_schema.append(entry.name)
            print(f"schema   {entry.name}\n  ours:    {schema_text(schema)}\n  Spark's: {entry.schema}", flush=True)

    def _differs(self, entry: Entry, known: dict[str, str], detail: str) -> None:
        if entry.name in known:
            self.undefined.append(entry.name)
        else:
            self.wrong.append(entry.name)
            print(f"WRONG    {entry.name}\n{entry.sql}\n{detail}\n", flush=True)

    def line(self, name: str) -> str:
        """Return the counts as one line."""
        return (
            f"{name:55} {self.queries:5} queries {self.planned:5} planned {self.right:5} right "
            f"{len(self.undefined):3} undefined by Spark {len(self.wrong):3} wrong"
        )


def main() -> int:
    """Print the score of each file, the total, and the reasons of refusal by count. Returns 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="sql/core/src/test/resources/sql-tests of Spark's repository")
    parser.add_argument("--files", help="a regular expression; default: joins, subqueries, windows, grouping")
    parser.add_argument("--show", action="store_true", help="print each refused query")
    options = parser.parse_args()
    known: dict[str, str] = yaml.safe_load(KNOWN.read_text(encoding="utf-8")) or {}
    total, files = Score(), 0
    for name, entries in golden_files(options.folder, options.files):
        started, score = time.process_time(), Score()
        relations, dialect = Relations.shared(options.folder), Dialect()
        score.refusals = total.refusals
        for entry in entries:
            dialect.apply(entry.sql)
            if not entry.is_query:
                relations.apply(entry.sql)
            elif dialect.is_default:
                score.ask(entry, relations, known, show=options.show)
        files += 1
        print(f"{score.line(name)} {time.process_time() - started:6.1f} s", flush=True)
        total.queries, total.planned, total.right = (
            total.queries + score.queries, total.planned + score.planned, total.right + score.right
        )  # fmt: skip
        total.undefined += score.undefined
        total.wrong += score.wrong
        total.other_schema += score.other_schema
    print(f"\n{total.line(f'{files} files')} {len(total.other_schema)} with other names or types\n")
    for reason, names in sorted(total.refusals.items(), key=lambda item: -len(item[1])):
        files_of = Counter(name.rsplit(" ", 1)[0] for name in names)
        print(f"{len(names):5}  {reason}   ({', '.join(f'{f} {n}' for f, n in files_of.most_common(3))})")
    return 1 if total.wrong else 0


def _planned(entry: Entry, needed: list[Relation]) -> tuple[Driver, str]:
    """Plan a query, with a list of column names only if a view needs one: a view has no two columns of one name."""
    try:
        return planned(needed, entry.sql), ""
    except PlanningError as refusal:
        if not re.search("appears twice in view|needs a name", refusal.fact):
            raise
    columns = f"({', '.join(f'c{place}' for place in range(_width(entry)))})"
    return planned(needed, entry.sql, columns), columns


def _width(entry: Entry) -> int:
    """Return the number of columns of an answer: of its first row, or of `struct<a:int,b:decimal(10,2)>`."""
    if entry.output:
        return entry.output.split("\n")[0].count("\t") + 1
    return len(re.findall(r"(?:^|,)[^,:]*:", entry.schema.removeprefix("struct<")))


def _reason(refusal: RejoinderError) -> str:
    """Return the fact of a refusal without the names of this query."""
    kind = "" if isinstance(refusal, PlanningError) else f"{type(refusal).__name__}: "
    return kind + re.sub(r"`[^`]*`", "`…`", refusal.fact)[:150]


if __name__ == "__main__":
    sys.exit(main())
