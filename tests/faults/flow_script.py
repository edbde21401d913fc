"""A flow to be killed: run as a program on a state folder and a data folder; running it again goes on where it was."""

from __future__ import annotations

import sys

import rejoinder as rj

SOURCES = {
    "a": "CREATE CHANGELOG IF NOT EXISTS a (k BIGINT, x BIGINT, op BIGINT) USING parquet OPTIONS ({}, diff 'op')",
    "b": "CREATE TABLE IF NOT EXISTS b (k BIGINT, y STRING, PRIMARY KEY (k)) USING json OPTIONS ({})",
    "c": "CREATE STREAM IF NOT EXISTS c (y STRING, z BIGINT) USING csv OPTIONS ({}, header 'true')",
}
FIRST = "CREATE VIEW IF NOT EXISTS pairs AS SELECT a.k, x, y FROM a JOIN b ON a.k = b.k"
LATER = "CREATE VIEW IF NOT EXISTS triples AS SELECT DISTINCT a.k, y, z FROM a JOIN b USING (k) JOIN c USING (y)"


def main(state: str, data: str) -> None:
    """Run what is there with one view, then with a second one that brings a new source."""
    flow = rj.Flow(state, parallelism=2)
    for name in ("a", "b"):
        flow.sql(SOURCES[name].format(f"path '{data}/{name}', maxFilesPerTrigger '1'"))
    flow.sql(FIRST)
    flow.run()
    flow.sql(SOURCES["c"].format(f"path '{data}/c', maxFilesPerTrigger '1'"))
    flow.sql(LATER)
    flow.run()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
