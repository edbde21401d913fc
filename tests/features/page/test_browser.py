"""The page in a real browser: graph, keyboard, live changes, slider, queries, hostile names, many changes."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from rejoinder.testing import Driver
from rejoinder.web.access import Access
from tests.features.page.page_kit import HOSTILE_NAME, served, shop, step

pytestmark = pytest.mark.browser
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-zygote"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium() -> str | None:
    """Return the path of a Chromium: named by the environment, installed by `make browser`, or on the PATH."""
    own = Path(__file__).parents[3] / "build" / "browser" / "chromium"
    named = os.environ.get("REJOINDER_CHROMIUM") or (str(own) if own.exists() else None)
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = chromium()
    if path is None:
        pytest.skip("NO BROWSER: the page was not tested. `make browser` installs Chromium, or set REJOINDER_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu", "--no-zygote"]
        )
        yield started
        started.close()


class Shown:
    """The page of a flow in a browser. `complaints` are errors and dialogs that it must not have."""

    def __init__(self, driver: Driver, access: Access, page: Page) -> None:
        self.driver, self.access, self.page = driver, access, page
        self.complaints: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda line: self.complaints.append(line.text) if line.type == "error" else None)
        page.on("dialog", self._dismiss)
        page.goto(access.url)
        expect(page.locator("#live-state")).to_have_text("following", timeout=20_000)

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def move(self, slider: str, epoch: int) -> None:
        """Move a slider as a user does."""
        move = "(input, epoch) => { input.value = epoch; input.dispatchEvent(new Event('input', {bubbles: true})) }"
        self.page.locator(slider).evaluate(move, epoch)


@pytest.fixture
def shown(browser: Browser, tmp_path: Path) -> Iterator[Shown]:
    driver = shop(tmp_path)
    with served(tmp_path) as access:
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        shown = Shown(driver, access, context.new_page())
        yield shown
        context.close()
        assert shown.complaints == []


def test_the_graph_highlights_what_changes_reach(shown: Shown) -> None:
    page = shown.page
    assert page.url.endswith("/"), "the token does not stay in the address"
    page.locator('#graph .node[data-key="source:customers"]').click()
    expect(page.locator("#node h2")).to_contain_text("customers")
    lit = page.locator("#graph .node.lit")
    expect(page.locator('#graph .node[data-key="view:revenue"]')).to_have_class("node view lit")
    assert lit.count() < page.locator("#graph .node").count()
    page.locator('#graph .node[data-key="view:revenue"]').click()
    expect(page.locator("#node")).to_contain_text("arrangements")
    expect(page.locator('#graph .node[data-key="arrangement:orders[customer]"] .badge-text')).to_have_text("×2")


def test_the_keyboard_is_enough(shown: Shown) -> None:
    page = shown.page
    page.locator('#graph .node[data-key="source:orders"]').focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.dataset.key")
    assert focused.startswith(("arrangement:", "view:"))
    page.keyboard.press("Enter")
    expect(page.locator("#graph .node.picked")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#graph .node.picked")).to_have_count(0)
    page.locator("#sql").fill("SELECT country, total FROM revenue WHERE total > 10")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#answer tbody tr")).to_have_count(1)


def test_a_view_is_live_and_has_a_past(shown: Shown) -> None:
    page = shown.page
    page.locator('#views button[data-view="sales"]').click()
    expect(page.locator("#view .rows h3")).to_have_text("12 rows")
    step(shown.driver, 6)
    expect(page.locator("#view .rows h3")).to_have_text("14 rows", timeout=20_000)
    expect(page.locator("#view tr.added").first).to_contain_text("6")
    page.locator("#position").evaluate(
        "input => { input.value = 1; input.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    expect(page.locator("#view .rows h3")).to_have_text("4 rows")
    page.locator("#against").evaluate(
        "input => { input.value = 0; input.dispatchEvent(new Event('input', {bubbles: true})) }"
    )
    expect(page.locator("#view .changes h3")).to_have_text("From epoch 0 to 1: 2")
    page.locator("#live").click()
    expect(page.locator("#view .rows h3")).to_have_text("14 rows")


def test_hostile_names_are_text(shown: Shown) -> None:
    page = shown.page
    page.locator("#views button.link", has_text="<script>").first.click()
    expect(page.locator("#view h2")).to_contain_text(HOSTILE_NAME)
    expect(page.locator("#view tbody").first).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main script, main svg[onload]").count() == 0


def test_ten_thousand_changes_do_not_freeze_the_page(shown: Shown) -> None:
    page = shown.page
    page.locator('#views button[data-view="sales"]').click()
    expect(page.locator("#position")).to_have_value("5")
    for number in range(10_000):
        shown.driver.insert("orders", {"id": 1000 + number, "customer": 1, "amount": 1, "note": "n", "ts": None})
    thread = threading.Thread(target=shown.driver.step)
    thread.start()
    slowest = page.evaluate(
        """async () => {
             let last = performance.now(), slowest = 0;
             const until = last + 6000;
             while (last < until) {
               await new Promise((done) => setTimeout(done, 20));
               const now = performance.now();
               slowest = Math.max(slowest, now - last);
               last = now;
             }
             return slowest;
           }"""
    )
    thread.join()
    expect(page.locator("#view .rows h3")).to_contain_text("10,012 rows", timeout=20_000)
    assert page.locator("#view tbody tr").count() <= 400
    assert slowest < 1500, "the page answers while it gets the changes"


def test_a_narrow_window_does_not_scroll_sideways(shown: Shown) -> None:
    page = shown.page
    page.set_viewport_size({"width": 400, "height": 800})
    page.locator('#views button[data-view="revenue"]').click()
    expect(page.locator("#position")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_both_themes_and_the_size_of_the_page(shown: Shown) -> None:
    page = shown.page
    colours = set()
    for _ in range(2):
        page.locator("#theme").click()
        colours.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2
    loaded = page.evaluate(
        "performance.getEntriesByType('resource').reduce((all, each) => all + each.decodedBodySize, 0)"
    )
    assert loaded < 300_000
