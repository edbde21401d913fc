"""Products of inputs: refused at planning where they are too large already, and before the commit where they get so."""

from __future__ import annotations

import pytest

from rejoinder.errors import LimitReached, Unsupported
from tests.kit import flow

SOURCES = "CREATE STREAM a (k INT); CREATE STREAM b (k INT)"


def test_a_product_that_is_too_large_already_is_refused_at_planning() -> None:
    driver = flow(f"{SOURCES}; CREATE INDEX ak ON a (k); CREATE INDEX bk ON b (k)", max_pairs=50)
    driver.insert("a", *({"k": n} for n in range(10)))
    driver.insert("b", *({"k": n} for n in range(10)))
    driver.step()
    with pytest.raises(Unsupported, match=r"`v` would pair every row of `.` with every row of `.`") as raised:
        driver.sql("CREATE VIEW v AS SELECT a.k AS a, b.k AS b FROM a CROSS JOIN b")
    assert "10 × 10" in str(raised.value.detail) and "max_pairs" in str(raised.value.hint)
    driver.sql("CREATE VIEW v AS SELECT a.k FROM a JOIN b ON a.k = b.k")
    driver.sql("CREATE VIEW w AS SELECT a.k FROM a WHERE EXISTS (SELECT 1 FROM b)")


def test_a_product_of_rows_that_no_arrangement_counts_is_refused_when_it_is_filled() -> None:
    driver = flow(SOURCES, max_pairs=50)
    driver.insert("a", *({"k": n} for n in range(10)))
    driver.insert("b", *({"k": n} for n in range(10)))
    driver.step()
    with pytest.raises(LimitReached, match="`v` pairs 100 rows in one step, and the limit is 50"):
        driver.sql("CREATE VIEW v AS SELECT a.k AS a, b.k AS b FROM a CROSS JOIN b")
    assert driver.catalog.find("v") is None


def test_a_product_that_gets_too_large_fails_the_epoch_before_the_commit() -> None:
    driver = flow(SOURCES, max_pairs=50)
    driver.sql("CREATE VIEW v AS SELECT a.k AS a, b.k AS b FROM a CROSS JOIN b")
    driver.insert("a", *({"k": n} for n in range(5)))
    driver.insert("b", *({"k": n} for n in range(5)))
    assert len(driver.step()["v"]) == 25
    driver.insert("a", *({"k": n} for n in range(20)))
    with pytest.raises(LimitReached, match="`v` pairs 100 rows in one step, and the limit is 50") as raised:
        driver.step()
    assert "no condition links them" in str(raised.value.detail)
    assert driver.epoch == 0 and len(driver.table("v")) == 25


def test_a_key_that_meets_too_many_rows_is_named() -> None:
    driver = flow(SOURCES, max_pairs=50)
    driver.sql("CREATE VIEW v AS SELECT a.k FROM a JOIN b ON a.k = b.k")
    driver.insert("a", *[{"k": 7}] * 10, {"k": 1})
    driver.insert("b", *[{"k": 7}] * 10, {"k": 1})
    with pytest.raises(LimitReached) as raised:
        driver.step()
    assert "one row matches 10 rows with the same key" in str(raised.value.detail)
    assert raised.value.values == "key 7"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k, count(*) AS n FROM a JOIN b ON a.k = b.k GROUP BY a.k",
        "SELECT a.k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k <> a.k)",
    ],
)
def test_the_view_is_named_not_a_relation_of_ours(query: str) -> None:
    driver = flow(SOURCES, max_pairs=50)
    driver.sql(f"CREATE VIEW v AS {query}")
    driver.insert("a", *[{"k": 7}] * 10)
    driver.insert("b", *[{"k": key} for key in (None, 7)] * 10)
    with pytest.raises(LimitReached, match="`v` pairs"):
        driver.step()


def test_not_in_makes_no_product() -> None:
    driver = flow(SOURCES.replace("STREAM", "CHANGELOG"), max_pairs=50)
    driver.sql("CREATE VIEW v AS SELECT a.k FROM a WHERE k NOT IN (SELECT k FROM b)")
    driver.insert("a", *({"k": key} for key in (None, *range(20))))
    driver.insert("b", *({"k": key} for key in (None, *range(19))))
    driver.step()
    assert driver.table("v") == []
    driver.delete("b", {"k": None})
    driver.step()
    assert driver.table("v") == [{"k": 19}]
