"""The script that asks the queries of TPC-DS, on a query of our own: values of the data are constants of the query."""

from __future__ import annotations

import pytest

from tests.oracle.tpcds.tpcds_data import Database
from tests.oracle.tpcds.tpcds_flow import Play

TABLES = {
    "store_sales": [
        ("ss_sold_date_sk", "INTEGER"),
        ("ss_item_sk", "INTEGER"),
        ("ss_ticket_number", "INTEGER"),
        ("ss_net_profit", "DECIMAL(7,2)"),
    ],
    "item": [("i_item_sk", "INTEGER"), ("i_color", "VARCHAR"), ("i_current_price", "DECIMAL(7,2)")],
    "date_dim": [("d_date_sk", "INTEGER"), ("d_date", "DATE"), ("d_year", "INTEGER"), ("d_moy", "INTEGER")],
}
QUERY = """
SELECT i_color, d_moy, count(*) AS n, sum(ss_net_profit) AS profit FROM store_sales, item, date_dim
WHERE ss_item_sk = i_item_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2001 AND d_moy BETWEEN 4 AND 5
  AND i_color IN ('olive', 'plum') GROUP BY i_color, d_moy ORDER BY 1, 2 LIMIT 100
"""


def test_a_view_equals_duckdb_after_each_epoch() -> None:
    play = Play(1, TABLES, QUERY)
    assert min(play.epoch() for _ in range(3)) > 0


def test_a_wrong_answer_is_noticed() -> None:
    play = Play(1, TABLES, QUERY)
    play.epoch()
    play.query = QUERY.replace("2001", "2000")
    with pytest.raises(AssertionError, match="DuckDB"):
        play.epoch()


def test_most_values_are_constants_of_the_query() -> None:
    database = Database(1, TABLES, QUERY)
    list(database.load())
    colors = [row["i_color"] for row in database.tables["item"].values()]
    assert {"olive", "plum"} <= set(colors)
    assert sum(row["d_year"] == 2001 for row in database.tables["date_dim"].values()) > 8
