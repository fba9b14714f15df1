"""From the search to a verdict and a patch, by keyboard where people use it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow

STG_ORDERS = "dataset:postgres://orders:warehouse.analytics.stg_orders"


def test_search_open_propose_a_rename_and_copy_the_patch(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(web_server)
    page.get_by_text("Most read").wait_for()
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search")
    box.fill("kind:dataset stg_orders")
    option = page.get_by_role("option").filter(has_text="stg_orders").first
    option.wait_for()
    assert option.locator("mark").first.inner_text() == "stg_orders"
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="stg_orders").wait_for()
    page.get_by_role("main").get_by_role("link", name="What if").first.click()

    page.get_by_label("Change", exact=True).select_option("column_rename")
    column = page.get_by_label("Column", exact=True)
    column.fill("order_total")
    page.get_by_label("New name").fill("amount")
    verdict = page.get_by_role("region", name="Verdict")
    verdict.get_by_role("heading", name="Blocked").wait_for()
    assert "fct_orders" in page.get_by_role("region", name="Consumers").inner_text()
    assert (
        "breaking_consumers" in page.get_by_role("region", name="Rules of the policy").inner_text()
    )

    verdict.get_by_role("button", name="Copy as PR comment").click()
    page.get_by_text("Copied").first.wait_for()
    comment = page.evaluate("navigator.clipboard.readText()")
    assert "BLOCKED" in comment
    assert "downriver-gate" in comment

    how = page.get_by_role("region", name="How to make this change")
    how.get_by_text("fct_orders.sql").first.wait_for()
    how.get_by_role("button", name="Copy patch").click()
    how.get_by_text("Copied").wait_for()
    assert "+++ b/models" in page.evaluate("navigator.clipboard.readText()")
    how.get_by_role("tab", name="Plan").click()
    how.get_by_text("contract").first.wait_for()


def tab_to(page: Page, target: Locator, most: int = 80) -> None:
    """Press Tab until an element has the focus."""
    target.wait_for()
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.evaluate("(element) => element === document.activeElement"):
            return
    pytest.fail(f"Tab does not reach {target}")


def test_from_the_search_to_the_copied_patch_by_keyboard_alone(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(web_server)
    page.get_by_text("Most read").wait_for()
    page.keyboard.press("/")
    page.keyboard.type("kind:dataset stg_orders")
    page.get_by_role("option").filter(has_text="stg_orders").first.wait_for()
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_role("main").get_by_role("link", name="Lineage").first)
    page.keyboard.press("Enter")
    card = page.locator(f'[data-node="{STG_ORDERS}"]')
    tab_to(page, card.get_by_role("button", name="6 columns"))
    page.keyboard.press("Enter")
    tab_to(page, card.get_by_role("button", name="Column order_total"))
    page.keyboard.press("Enter")
    page.get_by_text("column edges up and down").wait_for()
    tab_to(page, page.get_by_role("link", name="What if order_total changes"))
    page.keyboard.press("Enter")
    tab_to(page, page.get_by_label("New name"))
    page.keyboard.type("amount")
    page.get_by_role("heading", name="Blocked").wait_for()
    tab_to(page, page.get_by_role("button", name="Copy patch"), 200)
    page.keyboard.press("Enter")
    page.get_by_text("Copied").wait_for()
    assert "+++ b/models" in page.evaluate("navigator.clipboard.readText()")


def test_the_address_holds_the_proposal(web_server: str, open_page: OpenPage) -> None:
    page = open_page(f"{web_server}/change?entity={STG_ORDERS}&column=order_total")
    page.get_by_label("New name").fill("amount")
    page.get_by_role("button", name="Add a change").click()
    page.get_by_role("heading", name="Blocked").wait_for()
    address = page.url
    assert "amount" in parse_qs(urlsplit(address).query)["changes"][0]
    again = open_page(address)
    again.get_by_role("heading", name="Blocked").wait_for()
    assert again.get_by_label("New name").first.input_value() == "amount"
    assert again.get_by_role("group", name="Change 2").count() == 1


def test_the_verdict_follows_the_migration_as_it_is_typed(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(f"{web_server}/change")
    page.get_by_role("button", name="DDL").click()
    migration = page.get_by_label("Migration")
    migration.fill(f"alter table {STG_ORDERS.rsplit(':', 1)[1]} add column note text")
    page.get_by_role("heading", name="Approved").wait_for()
    migration.fill(f"drop table {STG_ORDERS.rsplit(':', 1)[1]}")
    page.get_by_role("heading", name="Blocked").wait_for()


def test_a_dataset_that_does_not_exist_offers_others(web_server: str, open_page: OpenPage) -> None:
    page = open_page(f"{web_server}/change?entity=stg_ordres", expected="404")
    page.get_by_text("Did you mean").first.wait_for()
