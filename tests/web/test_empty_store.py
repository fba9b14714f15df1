"""On an empty store the start page shows how to send the first event, and updates itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset, run_event
from tests.server import running_server
from tests.web.conftest import post

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow


def test_the_first_event_fills_the_start_page(
    tmp_path: Path, built_ui: None, open_page: Callable[..., Page]
) -> None:
    with running_server(tmp_path / "store") as url:
        page = open_page(url)
        page.get_by_text("Send the first event").wait_for()
        event = run_event("load", outputs=[dataset("orders")], inputs=[dataset("raw_orders")])
        post(f"{url}/api/v1/lineage", event)
        page.get_by_text("raw_orders").first.wait_for()
        page.context.close()  # before its server ends
