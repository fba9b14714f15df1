"""Tags, owners and descriptions that users set in the UI, with a key that may write."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.openlineage import DATABASE, dataset, run_event
from tests.server import running_server
from tests.web.conftest import post
from tests.web.test_every_page import axe_violations

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow

ORDERS = f"/entity?id={quote(f'dataset:{DATABASE}:orders')}"


@pytest.fixture(scope="module")
def server(
    built_ui: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str, str]]:
    """A server with a dataset, a writer's key and a reader's key."""
    store: Path = tmp_path_factory.mktemp("statements")
    with Lineage.open(str(store)) as lineage:
        writer = lineage.admin.create_key("ana", "writer")
        reader = lineage.admin.create_key("ben", "reader")
    orders = dataset("orders", {"schema": {"fields": [{"name": "email", "type": "text"}]}})
    with running_server(store) as url:
        post(f"{url}/api/v1/lineage", run_event("load", outputs=[orders]), writer)
        yield url, writer, reader


def open_with(open_page: OpenPage, url: str, key: str, *, expected: str = "401") -> Page:
    page = open_page(url, expected=expected)
    page.get_by_label("Access key").fill(key)
    page.get_by_label("Access key").press("Enter")
    page.get_by_role("heading", level=1).wait_for()
    return page


def test_a_writer_states_tags_owners_and_a_description_by_keyboard(
    server: tuple[str, str, str], open_page: OpenPage
) -> None:
    url, writer, _ = server
    page = open_with(open_page, f"{url}{ORDERS}", writer)
    tags = page.get_by_role("group", name="Tags of orders")
    tags.get_by_role("button", name="Add a tag").press("Enter")
    page.keyboard.type("domain=sales")
    page.keyboard.press("Enter")
    expect(tags.get_by_text("domain:sales", exact=True)).to_be_visible()
    expect(tags.get_by_role("status")).to_have_text("The tag domain=sales is set.")
    expect(tags.get_by_role("button", name="Add a tag")).to_be_focused()
    page.get_by_role("button", name="Add owners").press("Enter")
    page.keyboard.type("finance, data")
    assert axe_violations(page) == []
    page.keyboard.press("Enter")
    expect(page.get_by_text("finance, data")).to_be_visible()
    page.get_by_role("button", name="Add description").press("Enter")
    page.keyboard.type("One row for each order.")
    page.get_by_role("button", name="Save").press("Enter")
    expect(page.get_by_text("One row for each order.")).to_be_visible()
    tags.get_by_role("button", name="Remove the tag domain:sales").press("Enter")
    expect(tags.get_by_text("domain:sales", exact=True)).to_have_count(0)


def test_a_column_has_tags_of_its_own(server: tuple[str, str, str], open_page: OpenPage) -> None:
    url, writer, _ = server
    page = open_with(open_page, f"{url}{ORDERS}&column=email", writer)
    tags = page.get_by_role("group", name="Tags of email")
    tags.get_by_role("button", name="Add a tag").click()
    page.keyboard.press("Escape")
    tags.get_by_role("button", name="Add a tag").click()
    page.get_by_label("New tag").fill("pii")
    page.keyboard.press("Enter")
    expect(tags.get_by_text("pii", exact=True)).to_be_visible()
    page.get_by_role("link", name="orders").click()
    row = page.get_by_role("row").filter(has_text="email")
    expect(row.get_by_text("pii", exact=True)).to_be_visible()


def test_a_reader_sees_no_way_to_write(server: tuple[str, str, str], open_page: OpenPage) -> None:
    url, _, reader = server
    page = open_with(open_page, f"{url}{ORDERS}&tab=evidence", reader)
    page.get_by_text("A writer's key can make one.").wait_for()
    for name in ("Add", "Edit", "Remove", "Make and download"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def test_an_evidence_pack_is_a_signed_file(
    server: tuple[str, str, str], open_page: OpenPage
) -> None:
    url, writer, _ = server
    page = open_with(open_page, f"{url}{ORDERS}&tab=evidence", writer)
    with page.expect_download() as download:
        page.get_by_role("button", name="Make and download").press("Enter")
    assert download.value.suggested_filename.startswith("evidence-")
    packs = page.get_by_role("region", name="Recorded packs")
    expect(packs.get_by_role("row")).to_have_count(2)
