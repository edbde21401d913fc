"""`rejoinder watch` and SUBSCRIBE on the command line: changes of committed epochs, until Ctrl-C."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Rejoinder


@pytest.fixture(autouse=True)
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives as soon as there is nothing more to read."""

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rejoinder.engine.queries.subscription.time.sleep", interrupt)


def test_it_prints_the_changes_from_an_epoch(rejoinder: Rejoinder, shop: str) -> None:
    result = rejoinder("watch", shop, "priced", "--from", "1")
    assert result.exit_code == 130
    assert result.stdout.startswith("epoch 1  priced: 2 retracted, 2 added\n")
    assert "−  1  tea  3.50" in result.stdout and "+  1  tea  4.25" in result.stdout
    assert "after epoch 0" in result.stderr


def test_subscribe_is_the_same_statement(rejoinder: Rejoinder, shop: str) -> None:
    watched = rejoinder("watch", shop, "priced", "--as-of", "1", "--where", "id = 2")
    subscribed = rejoinder("sql", shop, "SUBSCRIBE priced AS OF 1 WHERE id = 2")
    assert watched.stdout == subscribed.stdout != ""


def test_json_and_csv_have_a_row_per_change(rejoinder: Rejoinder, shop: str) -> None:
    lines = rejoinder("watch", shop, "priced", "--from", "0", "--where", "id = 2", "--format", "json").stdout
    assert len(lines.splitlines()) == 3 and '"_undo": true' in lines
    csv = rejoinder("watch", shop, "priced", "--from", "0", "--where", "id = 2", "--format", "csv").stdout.splitlines()
    assert len(csv) == 4 and csv[0] == "id,item,price,at,_epoch,_emit_time,_undo"


def test_bad_requests_are_refused(rejoinder: Rejoinder, shop: str) -> None:
    assert "there is no state" in rejoinder("watch", "nowhere", "priced").stderr
    assert "only a view can be followed" in rejoinder("watch", shop, "orders").stderr
    assert "a subscription has one start" in rejoinder("watch", shop, "priced", "--from", "1", "--as-of", "1").stderr
