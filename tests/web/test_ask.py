"""The Ask page: the steps of an answer, its links, and the graph that it is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.web.test_every_page import axe_violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow
PATIENCE = 120_000  # the first question loads the agent


def ask(page: Page, question: str) -> None:
    page.get_by_role("textbox", name="Question").fill(question)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Stop")).to_have_count(0, timeout=PATIENCE)


def test_an_answer_has_its_steps_links_and_graph(
    web_server: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{web_server}/ask")
    ask(page, "What breaks if I drop warehouse.raw.orders.order_total?")
    expect(page.get_by_text("analyze_impact")).to_be_visible()
    expect(page.get_by_text("Blocked", exact=True)).to_be_visible()
    graph = page.get_by_role("region", name="Graph of the answer")
    expect(graph.get_by_text("9 of 9 shown")).to_be_visible(timeout=PATIENCE)
    assert axe_violations(page) == []
    page.get_by_role("link", name="warehouse.analytics.fct_orders", exact=True).first.click()
    page.get_by_role("heading", level=1, name="warehouse.analytics.fct_orders").wait_for()


def test_a_diagram_in_an_answer_can_be_copied(
    web_server: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(f"{web_server}/ask")
    ask(page, "Draw a Mermaid diagram of marts.revenue, upstream")
    page.get_by_role("button", name=re.compile("^Copy")).click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("flowchart LR")
