"""An admin creates and revokes keys in the UI, and reads the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from tests.openlineage import dataset, run_event
from tests.server import running_server
from tests.web.conftest import post
from tests.web.test_every_page import axe_violations
from tests.web.test_statements import open_with

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(built_ui: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server with the key of an admin."""
    store: Path = tmp_path_factory.mktemp("administration")
    with Lineage.open(str(store)) as lineage:
        admin = lineage.admin.create_key("ana", "admin")
    with running_server(store) as url:
        yield url, admin


def test_a_key_is_created_copied_used_and_revoked(
    server: tuple[str, str], open_page: OpenPage
) -> None:
    url, admin = server
    page = open_with(open_page, f"{url}/settings?tab=administration", admin)
    keys = page.get_by_role("region", name="Keys")
    keys.get_by_role("button", name="Create a key").press("Enter")
    page.keyboard.type("airflow")
    keys.get_by_label("Namespaces, or all if empty").fill("shop*, s3://lake")
    assert axe_violations(page) == []
    keys.get_by_role("button", name="Create").press("Enter")
    keys.get_by_text("it is not shown again").wait_for()
    keys.get_by_role("button", name="Copy the key").click()
    created = page.evaluate("navigator.clipboard.readText()")
    keys.get_by_role("button", name="Done").click()
    row = keys.get_by_role("row").filter(has_text="airflow")
    expect(row).to_contain_text("shop* s3://lake")
    expect(keys.get_by_text(created)).to_have_count(0)
    # The key of this browser cannot be revoked here: this could not be undone.
    expect(keys.get_by_role("button", name="Revoke ana")).to_have_count(0)

    event = run_event("load", outputs=[dataset("orders", namespace="s3://lake")])
    event["job"]["namespace"] = "shop"
    post(f"{url}/api/v1/lineage", event, created)

    row.get_by_role("button", name="Revoke airflow").press("Enter")
    expect(row.get_by_role("button", name="Revoke airflow for ever")).to_be_focused()
    page.keyboard.press("Enter")
    expect(row).to_contain_text("revoked")

    log = page.get_by_role("region", name="Audit log")
    expect(log.get_by_role("row").filter(has_text="airflow").first).to_be_visible()
    with page.expect_download() as download:
        log.get_by_role("button", name="CSV").click()
    assert "airflow" in download.value.path().read_text("utf-8")
    assert axe_violations(page) == []


def test_a_name_that_exists_is_refused_in_the_words_of_the_server(
    server: tuple[str, str], open_page: OpenPage
) -> None:
    url, admin = server
    address = f"{url}/settings?tab=administration"
    page = open_with(open_page, address, admin, expected="status of 40")
    keys = page.get_by_role("region", name="Keys")
    keys.get_by_role("button", name="Create a key").click()
    keys.get_by_label("Name", exact=True).fill("ana")
    keys.get_by_role("button", name="Create").click()
    expect(keys.get_by_role("alert")).to_contain_text("ana")
