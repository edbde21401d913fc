"""Write the texts of TPC-DS's queries and the columns of its tables, as DuckDB's extension has them, to a JSON file.

Runs in `.venv-tpcds`: the extension exists for another version of DuckDB than the one that Rejoinder uses.

    .venv-tpcds/bin/python tests/oracle/tpcds/export_tpcds.py build/tpcds.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb


def main(target: Path) -> None:
    """Load the extension, create the tables without rows, and write both."""
    import duckdb_extension_tpcds  # type: ignore[import-not-found]  # only in .venv-tpcds

    folder = Path(duckdb_extension_tpcds.__file__).parent
    connection = duckdb.connect()
    connection.execute(f"LOAD '{next(folder.rglob('*.duckdb_extension'))}'")
    connection.execute("CALL dsdgen(sf = 0)")
    queries = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1").fetchall()
    columns = connection.execute(
        "SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY 1, ordinal_position"
    ).fetchall()
    tables: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in columns:
        tables.setdefault(table, []).append((column, kind))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"queries": dict(queries), "tables": tables}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
