"""The frame around the pages: it loads, it navigates, and an unknown address says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def test_every_page_of_the_navigation_opens(
    web_server: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(web_server)
    for title in ("Lineage", "What if", "Verdicts", "Trust", "Ask", "Settings", "Home"):
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=title).click()
        expect(page).to_have_title(f"{title} · Downriver")
        page.get_by_role("heading", level=1).first.wait_for()


def test_an_unknown_address_says_so(web_server: str, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{web_server}/no/such/page", expected="404")
    page.get_by_role("heading", level=1, name="There is no such page").wait_for()
    expect(page).to_have_title("Not found · Downriver")
    page.get_by_role("button", name="Search everything").click()
    page.get_by_role("combobox", name="Search").wait_for()
