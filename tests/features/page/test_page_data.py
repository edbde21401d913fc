"""What the page shows of a flow: the graph, sizes, watermarks, a view at any epoch, and metrics."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rejoinder.errors import InvalidSql, NotCommitted, StateDeleted, UnknownName, Unsupported
from rejoinder.store.objects.object_store import open_store
from rejoinder.web.flow_status import FlowStatus, status_of
from rejoinder.web.metrics import metrics_text
from rejoinder.web.panels.node_panel import node_panel
from rejoinder.web.panels.page import page
from rejoinder.web.panels.query_panel import query_panel
from rejoinder.web.panels.row_panels import view_panel
from rejoinder.web.panels.status_panels import panels
from rejoinder.web.state_reader import StateReader
from rejoinder.web.view_history import view_at
from tests.features.page.page_kit import HOSTILE, HOSTILE_NAME, RTL, shop, step


def reader_of(folder: Path) -> StateReader:
    return StateReader(open_store(str(folder / "state")))


def status(reader: StateReader) -> FlowStatus:
    return reader.read(lambda engine: status_of(engine, reader.oldest_retained()))


def test_views_share_an_arrangement_in_the_graph(tmp_path: Path) -> None:
    shop(tmp_path)
    graph = status(reader_of(tmp_path)).graph
    shared = graph.nodes["arrangement:orders[customer]"]
    assert shared.is_shared and set(shared.users) == {"sales", "revenue"}
    assert ("source:orders", shared.key) in graph.edges and (shared.key, "view:sales") in graph.edges
    assert ("view:revenue", "sink:files") in graph.edges
    assert ("source:orders", f"view:{HOSTILE_NAME}") in graph.edges, "a view without state is fed by its source"
    assert ("source:orders", "view:sales") not in graph.edges, "its arrangement is between them"
    fed = graph.before(["view:sales"]).nodes
    assert "view:sales" in fed and "source:customers" in fed and "view:revenue" not in fed


def test_figures_of_the_status(tmp_path: Path) -> None:
    shop(tmp_path)
    shown = status(reader_of(tmp_path))
    views = {view.name: view for view in shown.views}
    assert shown.epoch == 5 and len(shown.entries) == 6
    assert shown.stored["customers[id]"].rows == 2
    assert views["per_minute"].late == 2 and views["per_minute"].pending > 0
    assert views["per_minute"].blocked_by == "orders.ts"
    assert views["sales"].changes == (2, 2, 2, 2, 2, 2)
    assert [mark.blocks for mark in shown.watermarks] == [("per_minute",)]
    assert shown.sinks[0].behind == 0


def test_the_reader_follows_commits_and_plans_once(tmp_path: Path) -> None:
    driver, reader = shop(tmp_path), reader_of(tmp_path)
    first, plan = status(reader), reader.read(lambda engine: engine.version.plan)
    step(driver, 6)
    assert status(reader).epoch == first.epoch + 1
    assert reader.read(lambda engine: engine.version.plan) is plan
    driver.sql("CREATE VIEW more AS SELECT id FROM orders")
    assert "view:more" in status(reader).graph.nodes


def test_a_view_at_every_epoch_of_its_history(tmp_path: Path) -> None:
    driver, reader = shop(tmp_path), reader_of(tmp_path)
    for epoch in range(6):
        shown = reader.read(partial(view_at, name="sales", epoch=epoch, against=None))
        assert shown.total == 2 * (epoch + 1) and shown.epoch == epoch
    difference = reader.read(lambda engine: view_at(engine, "revenue", 5, 2))
    assert {(c.diff, c.values) for c in difference.changes} == {
        (-1, ("UK", 3)),
        (1, ("UK", 15)),
        (-1, (RTL, 3)),
        (1, (RTL, 6)),
    }
    assert len(list(driver.table("sales"))) == 12


def test_bad_positions_and_names(tmp_path: Path) -> None:
    shop(tmp_path)
    reader = reader_of(tmp_path)
    with pytest.raises(NotCommitted, match="epoch 99 is not committed"):
        reader.read(lambda engine: view_at(engine, "sales", 99, None))
    with pytest.raises(UnknownName, match="no view `nothing`"):
        reader.read(lambda engine: view_at(engine, "nothing", None, None))
    with pytest.raises(InvalidSql, match="later"):
        reader.read(lambda engine: view_at(engine, "sales", 1, 3))
    with pytest.raises(UnknownName, match="is not there"):
        reader.read(lambda engine: node_panel(engine, status(reader), "view:dropped"))


def test_a_state_that_is_not_there_or_deleted(tmp_path: Path) -> None:
    with pytest.raises(NotCommitted, match="no state"):
        reader_of(tmp_path).refresh()
    shop(tmp_path)
    reader = reader_of(tmp_path)
    reader.refresh()
    for file in sorted((tmp_path / "state").rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    with pytest.raises(StateDeleted):
        reader.refresh()


def test_all_panels_are_harmless(tmp_path: Path) -> None:
    shop(tmp_path)
    reader = reader_of(tmp_path)
    shown = status(reader)
    parts = [page(panels(shown))]
    parts += [reader.read(partial(node_panel, status=shown, key=key)) for key in shown.graph.nodes]
    for name in ("sales", HOSTILE_NAME, "per_minute.late"):
        parts.append(view_panel(reader.read(partial(view_at, name=name, epoch=None, against=None)), {}))
    for text in parts:
        assert "<script>" not in text.replace('<script src="/static/page.js" defer></script>', "")
        assert "\u202e" not in text and " style=" not in text and " onclick" not in text
        assert "x" * 500 not in text
    assert "&lt;script&gt;" in parts[0]


def test_the_query_box_reads_only(tmp_path: Path) -> None:
    shop(tmp_path)
    reader = reader_of(tmp_path)
    answer = reader.read(lambda engine: query_panel(engine, "SELECT country, total FROM revenue WHERE total > 10"))
    assert "1 row" in answer and "15" in answer
    explained = reader.read(lambda engine: query_panel(engine, "EXPLAIN SELECT country FROM customers"))
    assert "<svg" in explained and "arrangements" in explained
    assert "per_minute" in reader.read(lambda engine: query_panel(engine, "SHOW WATERMARKS"))
    caused = reader.read(partial(query_panel, statement="WHY revenue WHERE country = 'UK'"))
    assert "orders" in caused and "customers" in caused
    missing = reader.read(partial(query_panel, statement="WHY NOT revenue WHERE country = 'FR'"))
    assert "customers" in missing and "FR" in missing
    for statement in ("DROP VIEW sales", "CREATE VIEW x AS SELECT 1 AS a"):
        with pytest.raises(Unsupported, match="only reads"):
            reader.read(partial(query_panel, statement=statement))
    with pytest.raises(InvalidSql, match="2 statements"):
        reader.read(lambda engine: query_panel(engine, "SHOW VIEWS; SHOW SINKS"))


def test_metrics_are_read_by_prometheus(tmp_path: Path) -> None:
    shop(tmp_path)
    families = {
        family.name: family for family in text_string_to_metric_families(metrics_text(status(reader_of(tmp_path))))
    }
    value = {name: {tuple(s.labels.values()): s.value for s in family.samples} for name, family in families.items()}
    assert value["rejoinder_epoch"] == {(): 5.0}
    assert value["rejoinder_epoch_rows_in"] == {("orders",): 2.0}
    assert value["rejoinder_arrangement_rows"][("customers[id]",)] == 2.0
    assert value["rejoinder_late_rows"][("per_minute",)] == 2.0
    assert value["rejoinder_late_rows"][(HOSTILE_NAME,)] == 0.0
    assert set(value["rejoinder_epoch_duration_seconds"]) >= {("rounds",), ("emission",), ("commit",)}
    assert value["rejoinder_sink_epochs_behind"] == {("files",): 0.0}
    assert ("orders", "ts", "0") in value["rejoinder_watermark_delay_seconds"]


def test_one_log_line_per_epoch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="rejoinder.epoch"):
        shop(tmp_path, 2)
    lines = [record.getMessage() for record in caplog.records if record.name == "rejoinder.epoch"]
    assert [line.split(":")[0] for line in lines] == ["epoch 0", "epoch 1"]
    progress = [record.__dict__["progress"] for record in caplog.records if record.name == "rejoinder.epoch"]
    assert progress[1]["rows_in"] == {"orders": 2} and json.loads(json.dumps(progress[1]))["epoch"] == 1
    assert HOSTILE not in caplog.text, "values of rows are not logged"
