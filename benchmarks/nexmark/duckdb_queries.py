"""Nexmark's queries as DuckDB writes them, over the rows that have arrived."""

from __future__ import annotations

import re
from pathlib import Path

QUERIES = Path(__file__).with_name("queries")
NAMES = tuple(f"q{number}" for number in range(23))

MACROS = r"""
CREATE MACRO date_format(t, pattern) AS strftime(t, CASE pattern WHEN 'HH:mm' THEN '%H:%M' ELSE '%Y-%m-%d' END);
"""

_HOPS = """
  SELECT auction, COUNT(*) AS num, window_start, window_start + INTERVAL 10 SECONDS AS window_end
  FROM (
    SELECT auction, time_bucket(INTERVAL 2 SECONDS, dateTime) - i * INTERVAL 2 SECONDS AS window_start
    FROM bid, range(5) hops(i)
  )
  GROUP BY ALL
"""
_TUMBLED = "SELECT *, time_bucket(INTERVAL 10 SECONDS, dateTime) AS window_start FROM"

_OTHERS = {
    "q5": f"""
        WITH counts AS ({_HOPS})
        SELECT c.auction, c.num FROM counts c
        JOIN (SELECT MAX(num) AS most, window_start FROM counts GROUP BY window_start) m
          ON c.window_start = m.window_start AND c.num >= m.most
    """,
    "q7": f"""
        SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra FROM bid b
        JOIN (SELECT MAX(price) AS most, window_start FROM ({_TUMBLED} bid) GROUP BY window_start) m
          ON b.price = m.most
        WHERE b.dateTime BETWEEN m.window_start AND m.window_start + INTERVAL 10 SECONDS
    """,
    "q8": f"""
        SELECT p.id, p.name, p.window_start
        FROM (SELECT DISTINCT id, name, window_start FROM ({_TUMBLED} person)) p
        JOIN (SELECT DISTINCT seller, window_start FROM ({_TUMBLED} auction)) a
          ON p.id = a.seller AND p.window_start = a.window_start
    """,
    "q11": """
        SELECT bidder, COUNT(*) AS bid_count, MIN(dateTime), MAX(dateTime) + INTERVAL 10 SECONDS
        FROM (
          SELECT *, SUM(COALESCE(begins, 0)) OVER (PARTITION BY bidder ORDER BY dateTime) AS session
          FROM (
            SELECT *, (dateTime > LAG(dateTime) OVER bids + INTERVAL 10 SECONDS)::INT AS begins
            FROM bid WINDOW bids AS (PARTITION BY bidder ORDER BY dateTime)
          )
        )
        GROUP BY bidder, session
    """,
    "q12": """
        SELECT bidder, COUNT(*), window_start, window_start + INTERVAL 10 SECONDS
        FROM (SELECT *, time_bucket(INTERVAL 10 SECONDS, arrived) AS window_start FROM bid)
        GROUP BY bidder, window_start
    """,
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.dateTime, s.value
        FROM bid b JOIN side_input s ON b.auction % 10000 = s.key
    """,
}


def view(name: str) -> str:
    """The statement that creates the view."""
    return (QUERIES / f"{name}.sql").read_text(encoding="utf-8")


def select(name: str) -> str:
    """The query of the view."""
    return re.sub(r"(?s).*?CREATE VIEW \w+ AS\s", "", view(name), count=1).rstrip().rstrip(";")


def truth(name: str) -> str:
    """The query in DuckDB's dialect: that of the view, unless it needs another spelling."""
    return _OTHERS.get(name) or select(name)
