"""Every page in light and dark: without console errors, clean for axe, and as a picture.

`make screenshots` runs this and keeps the pictures in docs/img/web.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = ROOT / "docs" / "img" / "web"
KEEP_PICTURES = os.environ.get("DOWNRIVER_UPDATE_DOCS") == "1"


class Shown(NamedTuple):
    """A page, and a text that it shows when its data is loaded."""

    name: str
    path: str
    text: str


DROP = quote('[["column_drop","order_total",""]]')
PAGES = (
    Shown("home", "/", "Most read"),
    Shown("lineage", "/lineage?entity=churn_features", "shown"),
    Shown("what-if", f"/change?entity=warehouse.raw.orders&changes={DROP}", "Blocked"),
    Shown("dataset", "/entity?id=marts.revenue", "marts.revenue"),
    Shown("job", "/entity?id=job:shop:sum_revenue", "sum_revenue"),
    Shown("column", "/entity?id=marts.revenue&column=revenue", "Column of"),
    Shown("run", "/run?id=sum_revenue-27", "column c.customer_id does not exist"),
    Shown("verdicts", "/verdicts", "agreed with finance"),
    Shown("trust", "/trust", "Coverage"),
    Shown("ask", "/ask", "Ask"),
    Shown("settings", "/settings", "Settings"),
    Shown("not-found", "/nope", "There is no such page"),
)
# Tabs of these pages are tested in one colour scheme: they have the colours of the pages.
PARTS = (
    Shown("history", "/entity?id=marts.revenue&tab=history", "Versions of the data"),
    Shown("evidence", "/entity?id=marts.revenue&tab=evidence", "No pack was made yet"),
    Shown("runs", "/entity?id=marts.revenue&tab=runs", "Rows written"),
    Shown("quality", "/entity?id=marts.revenue&tab=quality", "Findings of the monitor"),
    Shown("incident", "/entity?id=marts.revenue&tab=incident", "Possible causes"),
    Shown("code", "/entity?id=job:shop:sum_revenue&tab=code", "SQL"),
    Shown("certified", "/trust?tab=certified", "Reach of a tag"),
    Shown("checks", "/trust?tab=checks", "certified-upstream"),
    Shown("inventory", "/trust?tab=inventory", "Compare with a list of tables"),
    Shown("changes", "/trust?tab=changes", "What changed"),
    Shown("policy", "/settings?tab=policy", "breaking_consumers"),
    Shown("tags", "/settings?tab=tags", "certified"),
    Shown("integrations", "/settings?tab=integrations", "Airflow"),
    Shown("administration", "/settings?tab=administration", "Would be removed"),
)


def axe_violations(page: Page) -> list[str]:
    """Return what axe finds wrong on a page, one line for each element."""
    page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['id']}: {node['html'][:160]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shown", PAGES, ids=lambda shown: shown.name)
def test_a_page(web_server: str, open_page: Callable[..., Page], shown: Shown, scheme: str) -> None:
    expected = "404" if shown.name == "not-found" else None
    page = open_page(f"{web_server}{shown.path}", scheme=scheme, expected=expected)
    page.get_by_text(shown.text).first.wait_for()
    expect(page.locator("[data-loading]")).to_have_count(0)
    page.wait_for_timeout(400)  # transitions end
    assert axe_violations(page) == []
    if KEEP_PICTURES:
        PICTURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=PICTURES / f"{shown.name}-{scheme}.png")


def test_every_part_of_the_pages(web_server: str, open_page: Callable[..., Page]) -> None:
    page = open_page(web_server)
    violations = {}
    for shown in PARTS:
        page.goto(f"{web_server}{shown.path}")
        page.get_by_text(shown.text).first.wait_for()
        expect(page.locator("[data-loading]")).to_have_count(0)
        violations[shown.name] = axe_violations(page)
    assert violations == {shown.name: [] for shown in PARTS}


def test_every_page_fits_a_narrow_screen(web_server: str, open_page: Callable[..., Page]) -> None:
    page = open_page(web_server, expected="404")
    page.set_viewport_size({"width": 400, "height": 860})
    too_wide = {}
    for shown in (*PAGES, *PARTS):
        page.goto(f"{web_server}{shown.path}")
        page.get_by_text(shown.text).first.wait_for()
        expect(page.locator("[data-loading]")).to_have_count(0)
        too_wide[shown.name] = page.evaluate(
            "[document.documentElement, document.getElementById('main')]"
            ".map((one) => one.scrollWidth - one.clientWidth)"
        )
    assert too_wide == {shown.name: [0, 0] for shown in (*PAGES, *PARTS)}
