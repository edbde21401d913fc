"""Customers, their accounts and their countries: tables joined by key and by other columns.

A change of either side changes the result in the same epoch.
Run it: python examples/customers_and_accounts.py
"""

from __future__ import annotations

import rejoinder as rj
from rejoinder.testing import Driver

driver = Driver()
driver.sql("CREATE TABLE customers (id BIGINT, name STRING, country STRING, PRIMARY KEY (id))")
driver.sql("CREATE TABLE accounts (customer BIGINT, balance BIGINT, PRIMARY KEY (customer))")
driver.sql("CREATE TABLE countries (code STRING, currency STRING, PRIMARY KEY (code))")
customers, accounts, countries = (rj.Table.of(driver, name) for name in ("customers", "accounts", "countries"))

known = customers.outer_join(accounts)  # by the keys of both
known.left_join(countries, on={"upper(country)": "code"}).to("overview")  # by what is in the row
customers.left_join(accounts).group_by("country").aggregate("count(*) AS customers", "sum(balance) AS total").to(
    "totals"
)

driver.insert("customers", {"id": 1, "name": "Ada", "country": "uk"}, {"id": 2, "name": "Bea", "country": "pt"})
driver.insert("accounts", {"customer": 1, "balance": 70}, {"customer": 3, "balance": 5})
driver.insert("countries", {"code": "UK", "currency": "GBP"}, {"code": "PT", "currency": "EUR"})
driver.step()
print(driver.table("overview"))

driver.insert("customers", {"id": 1, "name": "Ada", "country": "pt"})
driver.delete("accounts", {"customer": 3})
for row, diff in driver.step()["totals"]:
    print("+" if diff > 0 else "−", row)
