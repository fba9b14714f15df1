"""A server with keys asks for one, and refuses a wrong one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow


def test_a_server_with_keys_asks_for_one(
    built_ui: None, open_page: OpenPage, tmp_path: Path
) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        key = lineage.admin.create_key("ana", "reader")
    with running_server(tmp_path) as url:
        page = open_page(f"{url}/settings", expected="401")
        page.get_by_role("heading", name="This server needs a key").wait_for()
        page.get_by_label("Access key").fill("wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("does not accept this key").wait_for()
        page.get_by_label("Access key").fill(key)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="Settings").wait_for()
        page.get_by_text("with the role reader").wait_for()
        assert page.get_by_role("region", name="Keys").count() == 0
        page.context.close()
