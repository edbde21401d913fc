"""ALTER STREAM, TABLE and CHANGELOG: rows of the past keep their values when columns change."""

from __future__ import annotations

from pathlib import Path

import pytest

from rejoinder.errors import RejoinderError
from rejoinder.testing import Driver

SOURCES = """
CREATE STREAM o (id INT, a INT);
CREATE TABLE p (k INT, w INT, PRIMARY KEY (k));
CREATE CHANGELOG c (x INT, y INT) OPTIONS (op 'op');
"""
VIEWS = """
CREATE VIEW joined AS SELECT o.id, p.w FROM o JOIN p ON o.id = p.k;
CREATE VIEW sums AS SELECT x, sum(y) AS s FROM c GROUP BY x;
CREATE VIEW total AS SELECT sum(a) AS n FROM o;
"""


@pytest.fixture
def driver() -> Driver:
    driver = Driver(parallelism=3)
    driver.sql(SOURCES + VIEWS)
    driver.insert("o", *[{"id": i, "a": i % 3} for i in range(6)])
    driver.insert("p", *[{"k": i, "w": 2 * i} for i in range(6)])
    driver.insert("c", *[{"x": i % 2, "y": i} for i in range(6)])
    driver.step()
    return driver


def rows(driver: Driver, query: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in driver.sql(query)), key=repr)


def test_an_added_column_has_its_default_in_rows_of_the_past_and_no_file_is_written(driver: Driver) -> None:
    files, epoch = driver._engine.version.state.files(), driver.epoch
    driver.sql("ALTER STREAM o ADD COLUMN b STRING DEFAULT upper('x'); ALTER TABLE p ADD COLUMN z DOUBLE")
    assert driver.epoch == epoch
    assert driver._engine.version.state.files() == files
    driver.sql("CREATE VIEW more AS SELECT o.id, o.b, p.z FROM o JOIN p ON o.id = p.k WHERE o.id < 2")
    assert rows(driver, "SELECT * FROM more") == [(0, "X", None), (1, "X", None)]
    driver.insert("o", {"id": 0, "a": 1, "b": "y"})
    driver.insert("p", {"k": 0, "w": 1, "z": 1.5})
    driver.restart(parallelism=2)
    driver.insert("o", {"id": 0, "a": 1, "b": "y"})
    driver.insert("p", {"k": 0, "w": 1, "z": 1.5})
    driver.step()
    assert rows(driver, "SELECT * FROM more") == [(0, "X", 1.5), (0, "y", 1.5), (1, "X", None)]


def test_rows_of_a_changelog_with_a_new_column_can_be_deleted(driver: Driver) -> None:
    driver.sql("ALTER CHANGELOG c ADD COLUMN z INT DEFAULT 7")
    driver.delete("c", {"x": 1, "y": 5, "z": 7})
    assert driver.step()["sums"] == [({"x": 1, "s": 9}, -1), ({"x": 1, "s": 4}, 1)]
    driver.delete("c", {"x": 1, "y": 3, "z": None})
    with pytest.raises(RejoinderError, match="a deleted row does not exist"):
        driver.step()
    driver.sql("ALTER CHANGELOG c DROP COLUMN z PURGE")
    driver.delete("c", {"x": 1, "y": 3})
    driver.step()
    assert rows(driver, "SELECT * FROM c") == [(0, 0), (0, 2), (0, 4), (1, 1)]


def test_a_column_that_is_dropped_and_added_again_does_not_get_its_old_values_back(driver: Driver) -> None:
    driver.sql("ALTER TABLE p DROP COLUMN w PURGE; DROP VIEW joined; ALTER TABLE p ADD COLUMN w STRING")
    assert rows(driver, "SELECT k, w FROM p WHERE k < 2") == [(0, None), (1, None)]


def test_a_new_name_needs_views_of_that_name_and_keeps_rows(driver: Driver) -> None:
    with pytest.raises(RejoinderError, match="`total` does not fit the new definition of `o`"):
        driver.sql("ALTER STREAM o RENAME COLUMN a TO amount")
    driver.sql("CREATE INDEX by_k ON p (k)")
    epoch = driver.epoch
    driver.sql("""
        ALTER STREAM o RENAME COLUMN a TO amount;
        ALTER TABLE p RENAME COLUMN k TO key;
        CREATE OR REPLACE VIEW total AS SELECT sum(amount) AS n FROM o;
        CREATE OR REPLACE VIEW joined AS SELECT o.id, p.w FROM o JOIN p ON o.id = p.key
    """)
    assert driver.catalog.indexes[0].columns == ("key",)
    assert driver.epoch == epoch + 1
    assert driver._last_changes() == {"sums": [], "total": [], "joined": []}
    driver.insert("p", {"key": 1, "w": 0})
    assert driver.step()["joined"] == [({"id": 1, "w": 2}, -1), ({"id": 1, "w": 0}, 1)]


def test_a_wider_type_keeps_values_and_lookups(driver: Driver) -> None:
    files = driver._engine.version.state.files()
    with pytest.raises(RejoinderError, match="view `joined` reads `o`, which is altered, and its columns would change"):
        driver.sql("ALTER STREAM o ALTER COLUMN id TYPE BIGINT")
    driver.sql("ALTER STREAM o ALTER COLUMN id TYPE BIGINT CASCADE; ALTER TABLE p ALTER COLUMN k TYPE BIGINT")
    driver.insert("p", {"k": 2**40, "w": 1}, {"k": 2, "w": 9})
    driver.insert("o", {"id": 2**40, "a": 0})
    changes = driver.step()["joined"]
    assert changes == [({"id": 2, "w": 4}, -1), ({"id": 2, "w": 9}, 1), ({"id": 2**40, "w": 1}, 1)]
    kept = files & driver._engine.version.state.files()
    assert len(kept) >= len(files) - 6  # the difference of `joined` starts a new history


def test_views_with_a_star_follow_with_cascade(driver: Driver) -> None:
    driver.sql("CREATE VIEW everything AS SELECT * FROM o; CREATE VIEW above AS SELECT id FROM everything")
    with pytest.raises(RejoinderError, match="view `everything` reads `o`, which is altered"):
        driver.sql("ALTER STREAM o ADD COLUMN b INT")
    assert "b" not in driver.catalog.get("o").schema.names
    driver.sql("ALTER STREAM o ADD COLUMN b INT DEFAULT 1 CASCADE")
    assert rows(driver, "SELECT * FROM everything WHERE id = 3") == [(3, 0, 1)]
    assert len(rows(driver, "SELECT * FROM above")) == 6


def test_a_new_delay_concerns_later_rows() -> None:
    driver = Driver()
    driver.sql("""
        CREATE STREAM s (t INT, WATERMARK t DELAY OF 5) OPTIONS (idle_after '1 hour');
        CREATE VIEW counts AS SELECT t, count(*) AS n FROM s GROUP BY t EMIT FINAL
    """)
    driver.insert("s", {"t": 1}, {"t": 20})
    driver.step()
    assert driver.sql("SHOW WATERMARKS")[0]["watermark"] == 15
    driver.sql("ALTER STREAM s SET WATERMARK t DELAY OF 50; ALTER STREAM s SET OPTIONS (idle_after '2 hours')")
    driver.insert("s", {"t": 40})
    driver.step()
    assert driver.sql("SHOW WATERMARKS")[0]["watermark"] == 15  # it never falls
    driver.sql("""
        ALTER STREAM s RENAME COLUMN t TO at;
        CREATE OR REPLACE VIEW counts AS SELECT at AS t, count(*) AS n FROM s GROUP BY at EMIT FINAL
    """)
    driver.insert("s", {"at": 100})
    driver.step()
    assert driver.sql("SHOW WATERMARKS")[0]["watermark"] == 50
    assert driver.catalog.sources[0].options["idle_after"] == str(2 * 3600 * 10**6)


def test_files_that_were_read_are_read_again_by_their_definition(tmp_path: Path) -> None:
    driver = Driver(parallelism=2)
    driver.sql(
        f"CREATE STREAM f (id INT, a INT) USING json OPTIONS (path '{tmp_path}'); CREATE VIEW v AS SELECT id FROM f"
    )
    # A value of `b` was not declared when this file was read. It does not fit the type that is declared later.
    (tmp_path / "1.json").write_text('{"id": 1, "a": 10, "b": "text"}')
    driver.step()
    driver.sql("ALTER STREAM f ADD COLUMN b INT DEFAULT 5")
    (tmp_path / "2.json").write_text('{"id": 2, "a": 20, "b": 6}')
    driver.step()
    driver.sql("ALTER STREAM f RENAME COLUMN a TO amount; ALTER STREAM f ALTER COLUMN amount TYPE BIGINT")
    driver.restart(parallelism=3)
    (tmp_path / "3.json").write_text('{"id": 3, "amount": 30, "b": 7}')
    driver.step()
    driver.sql("CREATE VIEW w AS SELECT id, amount, b FROM f")
    assert rows(driver, "SELECT * FROM w") == [(1, 10, 5), (2, 20, 6), (3, 30, 7)]
    driver.sql("DROP VIEW v; DROP VIEW w")  # no view reads it: it will be read from its start again
    (tmp_path / "1.json").unlink()
    driver.sql("CREATE VIEW u AS SELECT id, amount FROM f")
    driver.step()
    assert rows(driver, "SELECT * FROM u") == [(2, None), (3, 30)]


def test_another_path_is_read_from_now_on(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    driver = Driver()
    driver.sql(f"CREATE STREAM f (id INT) USING csv OPTIONS (path '{tmp_path}/old'); CREATE VIEW v AS SELECT id FROM f")
    (tmp_path / "old" / "1.csv").write_text("1\n")
    driver.step()
    driver.sql(f"ALTER STREAM f SET OPTIONS (path '{tmp_path}/new', header 'true')")
    (tmp_path / "new" / "2.csv").write_text("id\n2\n")
    assert driver.step()["v"] == [({"id": 2}, 1)]
    driver.sql("CREATE VIEW w AS SELECT id + 1 AS n FROM f")
    assert rows(driver, "SELECT * FROM w") == [(2,), (3,)]


@pytest.mark.parametrize(
    ("statement", "fact"),
    [
        ("ALTER STREAM p ADD COLUMN z INT", "`p` is a table, not a stream"),
        ("ALTER STREAM joined ADD COLUMN z INT", "`joined` is a view, not a source"),
        ("ALTER STREAM nothing ADD COLUMN z INT", "there is no relation `nothing`"),
        ("ALTER STREAM o ADD COLUMN A INT", "`o` has a column `A` already"),
        ("ALTER STREAM o ADD COLUMN z INT DEFAULT 'x'", "the default of column `z` is not a value of its type"),
        ("ALTER STREAM o ADD COLUMN z INT DEFAULT a", "there is no column `a`"),
        ("ALTER STREAM o ADD COLUMN z NUMBERS", "`NUMBERS` is not a type"),
        ("ALTER STREAM o ADD COLUMN __hash INT", "column `__hash` of `o` has a reserved name"),
        ("ALTER STREAM o ADD COLUMN z", "column `z` has no type"),
        ("ALTER TABLE p DROP COLUMN k PURGE", "column `k` of `p` cannot be dropped: its primary key needs it"),
        ("ALTER STREAM o DROP COLUMN b", "`o` has no column `b`"),
        ("ALTER STREAM o DROP COLUMN a", "dropping column `a` of `o` would lose its values in the rows that were read"),
        ("ALTER STREAM o DROP COLUMN a PURGE", "`total` does not fit the new definition of `o`"),
        ("ALTER STREAM o RENAME COLUMN a TO id", "`o` has a column `id` already"),
        ("ALTER STREAM o RENAME a TO b", "`o` cannot be altered by `RENAME`"),
        ("ALTER STREAM o ALTER COLUMN a TYPE SMALLINT", "the type of column `a` of `o` cannot become smallint"),
        ("ALTER STREAM o SET WATERMARK a DELAY OF 5", "`o` has no watermark of `a`"),
        ("ALTER STREAM o SET OPTIONS (path 'x')", "option `path` of `o` cannot be altered"),
        ("ALTER CHANGELOG c SET OPTIONS (op 'other')", "option `op` of `c` cannot be altered"),
        ("ALTER STREAM o MODIFY COLUMN a", "`o` cannot be altered by `MODIFY`"),
    ],
)
def test_what_cannot_be_altered_names_the_reason(driver: Driver, statement: str, fact: str) -> None:
    before = driver.catalog
    with pytest.raises(RejoinderError) as refused:
        driver.sql(statement)
    assert refused.value.fact == fact
    assert refused.value.detail and refused.value.hint
    assert driver.catalog == before


def test_a_sink_that_cannot_follow_refuses(driver: Driver, tmp_path: Path) -> None:
    driver.sql(f"CREATE VIEW s AS SELECT * FROM o; CREATE SINK out FROM s USING json OPTIONS (path '{tmp_path}')")
    with pytest.raises(RejoinderError, match="sink `out` reads `s`, whose columns would change"):
        driver.sql("ALTER STREAM o ADD COLUMN b INT CASCADE")


def test_expired_rows_of_a_view_that_needs_the_new_column_are_told() -> None:
    driver = Driver()
    driver.sql("""
        CREATE STREAM s (k INT, t INT, WATERMARK t DELAY OF 0) USING kafka
          OPTIONS (topic 's', bootstrap 'h:1', format 'json');
        CREATE STREAM r (k INT, t INT, WATERMARK t DELAY OF 0) USING kafka
          OPTIONS (topic 'r', bootstrap 'h:1', format 'json');
        CREATE VIEW near AS SELECT s.k, r.t FROM s JOIN r ON s.k = r.k AND r.t BETWEEN s.t AND s.t + 5
    """)
    for time in (1, 100):
        driver.insert("s", {"k": 1, "t": time})
        driver.insert("r", {"k": 1, "t": time})
        driver.step()
    driver.sql("ALTER STREAM s ADD COLUMN note STRING DEFAULT 'old'")
    driver.insert("r", {"k": 1, "t": 103})
    assert driver.step()["near"] == [({"k": 1, "t": 103}, 1)]
    with pytest.raises(RejoinderError) as refused:
        driver.sql("CREATE OR REPLACE VIEW near AS SELECT s.k, r.t, s.note FROM s JOIN r ON s.k = r.k AND r.t >= s.t")
    assert refused.value.code == "RJ107"
