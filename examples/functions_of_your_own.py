"""Functions in Python, declared by name: scalar, table and aggregate.

The functions are in `shop_functions.py`: a worker imports them by name, and the state never contains code. This example
needs no Spark; `rejoinder.Flow` has the same calls.
"""

from __future__ import annotations

from decimal import Decimal

import shop_functions

from rejoinder.testing import Driver


def main() -> None:
    """Declare the functions, and print the views before and after an order is cancelled."""
    driver = Driver(functions=["shop_functions"], check_functions=True)
    driver.sql("CREATE TABLE orders (id INT, item STRING, amount DECIMAL(10, 2), country STRING, PRIMARY KEY (id))")
    driver.udf.register("tax", shop_functions.tax, "DECIMAL(10, 2)", arguments="amount DECIMAL(10, 2), country STRING")
    driver.udaf.register("spread", shop_functions.Spread, "DECIMAL(10, 2)", arguments="amount DECIMAL(10, 2)")
    driver.sql("""
        CREATE FUNCTION words (text STRING) RETURNS TABLE (word STRING) LANGUAGE PYTHON AS 'shop_functions:words';
        CREATE VIEW taxed AS SELECT id, amount + tax(amount, country) AS total FROM orders;
        CREATE VIEW found AS SELECT word, count(*) AS orders FROM orders, LATERAL words(item) GROUP BY word;
        CREATE VIEW spreads AS SELECT country, spread(amount) AS spread FROM orders GROUP BY country;
    """)
    for number, (item, amount, country) in enumerate(
        [("green tea", "4.00", "PT"), ("black tea", "10.50", "PT"), ("tea cup", "7.00", "UK")], 1
    ):
        driver.insert("orders", {"id": number, "item": item, "amount": Decimal(amount), "country": country})
    driver.step()
    for query in ("SELECT * FROM taxed ORDER BY id", "SELECT * FROM found ORDER BY word"):
        print(driver.sql(query))
    print(driver.sql("SELECT * FROM spreads ORDER BY country"))
    driver.delete("orders", {"id": 2})
    driver.step()
    print(driver.sql("SELECT * FROM spreads ORDER BY country"))


if __name__ == "__main__":
    main()
