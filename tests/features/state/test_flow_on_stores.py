"""The same flow on memory, local disk and S3: same result, restart included, other parallelism after it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from rejoinder.store.objects.object_store import ObjectStore, Option
from rejoinder.testing import Driver


def test_a_flow_survives_a_restart_on_every_store(store: ObjectStore, s3_options: dict[str, Option]) -> None:
    options: dict[str, Any] = dict(s3_options) if store.url.startswith("s3") else {}
    driver = Driver(store=store.url, parallelism=2, **options)
    driver.sql("CREATE CHANGELOG a (k BIGINT, x STRING)")
    driver.sql("CREATE TABLE b (k BIGINT, y DOUBLE, PRIMARY KEY (k))")
    driver.sql("CREATE VIEW v AS SELECT a.k, x, y FROM a JOIN b USING (k)")
    rng = random.Random(5)
    rows: Counter[tuple[int, str]] = Counter()
    table: dict[int, float] = {}
    for epoch in range(12):
        for _ in range(6):
            row = (rng.randrange(5), rng.choice("uvw"))
            if rows[row] and rng.random() < 0.4:
                rows[row] -= 1
                driver.delete("a", {"k": row[0], "x": row[1]})
            else:
                rows[row] += 1
                driver.insert("a", {"k": row[0], "x": row[1]})
        key = rng.randrange(5)
        table[key] = float(epoch)
        driver.insert("b", {"k": key, "y": float(epoch)})
        driver.step()
        if epoch % 5 == 4:
            driver.restart(parallelism=rng.choice([1, 3, 7]))
        expected = sorted((k, x, table[k]) for (k, x), n in rows.items() if k in table for _ in range(n))
        assert sorted((row["k"], row["x"], row["y"]) for row in driver.table("v")) == expected
