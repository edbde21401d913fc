"""Orders with exchange rates, on Spark: each order at its rate on arrival, and the last orders at current rates.

A row of a stream is joined with a table as it is when the row arrives. A join of two tables, here of the last order of
each customer with the rates, is kept up to date. Run it, with Java 17 or 21: python examples/orders_with_rates.py
"""

from __future__ import annotations

import tempfile

import rejoinder as rj


def main(flow: rj.Flow) -> None:
    """Define, run twice, and show what there is."""
    flow.sql("CREATE STREAM orders (id BIGINT, customer STRING, currency STRING, amount BIGINT)")
    flow.sql("CREATE TABLE rates (currency STRING, rate DOUBLE, PRIMARY KEY (currency))")
    orders, rates = rj.Stream.of(flow, "orders"), rj.Table.of(flow, "rates")

    orders.left_join(rates, select=["id", "orders.currency", "amount * rate AS euros"]).to("booked")
    last = orders.to_table("customer")
    last.join(rates, on={"currency": "currency"}, select=["customer", "amount * rate AS euros"]).to("worth_now")

    flow.insert("rates", [{"currency": "GBP", "rate": 1.25}])
    flow.insert("orders", [{"id": 1, "customer": "ada", "currency": "GBP", "amount": 100}])
    flow.run()
    flow.insert("rates", [{"currency": "GBP", "rate": 1.5}, {"currency": "USD", "rate": 0.5}])
    flow.insert("orders", [{"id": 2, "customer": "bea", "currency": "USD", "amount": 40}])
    flow.run()

    for view in ("booked", "worth_now"):
        print(view, sorted(tuple(row.values()) for row in flow.arrow(view).to_pylist()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(rj.Flow(folder))
