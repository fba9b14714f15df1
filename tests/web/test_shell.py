"""The frame around the pages: loading, navigation, and the page for an unknown address."""

from __future__ import annotations

import re
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


def test_a_server_that_is_away_is_reported_until_it_is_back(
    web_server: str, open_page: Callable[..., Page]
) -> None:
    page = open_page("about:blank", expected="ERR_INTERNET_DISCONNECTED")
    with page.expect_response(re.compile(r"/assets/verdicts-.*\.js")):  # loaded ahead of its use
        page.goto(f"{web_server}/settings")
    page.get_by_text("answering").wait_for()
    away = page.get_by_text("The server cannot be reached. What you see may be old.")
    expect(away).to_have_count(0)
    page.context.set_offline(True)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Verdicts").click()
    away.wait_for()
    page.context.set_offline(False)
    page.get_by_text("Recorded verdicts").wait_for()
    expect(away).to_have_count(0)
    page.get_by_text("agreed with finance").wait_for()


def test_an_unknown_address_shows_the_not_found_page(
    web_server: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{web_server}/no/such/page", expected="404")
    page.get_by_role("heading", level=1, name="There is no such page").wait_for()
    expect(page).to_have_title("Not found · Downriver")
    page.get_by_role("button", name="Search everything").click()
    page.get_by_role("combobox", name="Search").wait_for()
