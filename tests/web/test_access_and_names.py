"""A key is asked for, and names that contain markup stay text on every page."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror=window.attacked=1>"


def test_a_server_with_keys_asks_for_one(
    built_ui: None, open_page: OpenPage, tmp_path: Path
) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        key = lineage.admin.create_key("ana", "reader")
    with running_server(tmp_path) as url:
        page = open_page(f"{url}/settings", expected="401")
        page.get_by_role("heading", name="This server asks for a key").wait_for()
        page.get_by_label("Access key").fill("wrong")
        page.get_by_role("button", name="Open").click()
        page.get_by_text("does not accept this key").wait_for()
        page.get_by_label("Access key").fill(key)
        page.get_by_role("button", name="Open").click()
        page.get_by_role("heading", name="Settings").wait_for()
        page.get_by_text("with the role reader").wait_for()
        assert page.get_by_role("region", name="Keys").count() == 0


def hostile_event() -> dict[str, object]:
    """Return an event with markup in every field that a page shows."""
    facet = {"_producer": "https://example.com", "_schemaURL": "https://example.com/schema"}
    return {
        "eventType": "FAIL",
        "eventTime": "2026-01-02T03:04:05Z",
        "producer": f"https://example.com/{MARKUP}",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {
            "runId": "0192a5c0-0000-7000-8000-000000000001",
            "facets": {
                "errorMessage": {**facet, "message": f"failed {MARKUP}", "programmingLanguage": "x"}
            },
        },
        "job": {
            "namespace": f"jobs{MARKUP}",
            "name": f"job {MARKUP}",
            "facets": {
                "sql": {**facet, "query": f"select '{MARKUP}' as total from t"},
                "documentation": {**facet, "description": f"job does {MARKUP}"},
                "ownership": {**facet, "owners": [{"name": f"owner {MARKUP}"}]},
            },
        },
        "inputs": [dataset("raw")],
        "outputs": [dataset("out")],
    }


def dataset(name: str) -> dict[str, object]:
    facet = {"_producer": "https://example.com", "_schemaURL": "https://example.com/schema"}
    column = {"name": f"col {MARKUP}", "type": f"text {MARKUP}", "description": f"has {MARKUP}"}
    return {
        "namespace": f"db{MARKUP}",
        "name": f"{name} {MARKUP}",
        "facets": {
            "schema": {**facet, "fields": [column]},
            "documentation": {**facet, "description": f"dataset {MARKUP}"},
            "ownership": {**facet, "owners": [{"name": f"owner {MARKUP}"}]},
            "tags": {**facet, "tags": [{"key": f"tag{MARKUP}", "value": "true", "source": "x"}]},
        },
    }


def test_markup_in_names_stays_text(built_ui: None, open_page: OpenPage, tmp_path: Path) -> None:
    with running_server(tmp_path) as url:
        request = urllib.request.Request(
            f"{url}/api/v1/lineage",
            json.dumps(hostile_event()).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()
        entity = quote(f"dataset:db{MARKUP}:out {MARKUP}", safe="")
        job = quote(f"job:jobs{MARKUP}:job {MARKUP}", safe="")
        column = quote(f"col {MARKUP}", safe="")
        tabs = [f"/entity?id={entity}&tab={tab}" for tab in ("schema", "runs", "code", "raw")]
        drop = quote(json.dumps([["column_drop", f"col {MARKUP}", ""]]), safe="")
        shown = [
            *tabs,
            f"/entity?id={entity}&column={column}",
            f"/entity?id={job}&tab=code",
            f"/change?entity={entity}&changes={drop}",
            "/run?id=0192a5c0-0000-7000-8000-000000000001",
            "/",
            "/trust",
        ]
        for path in shown:
            page = open_page(f"{url}{path}")
            page.get_by_text(MARKUP).first.wait_for()
            page.wait_for_timeout(300)
            assert page.evaluate("window.attacked === undefined"), path
            assert page.locator("img[src=x]").count() == 0, path
        page.keyboard.press("/")
        page.get_by_role("combobox", name="Search").fill("onerror")
        page.get_by_role("option").first.wait_for()
        assert page.evaluate("window.attacked === undefined")


def test_an_empty_store_fills_by_itself(
    built_ui: None, open_page: OpenPage, tmp_path: Path
) -> None:
    with running_server(tmp_path) as url:
        page = open_page(url)
        page.get_by_role("heading", name="Send the first event").wait_for()
        assert page.get_by_text("spark-submit").count() == 1
        request = urllib.request.Request(
            f"{url}/api/v1/lineage",
            json.dumps(hostile_event()).encode(),
            {"Content-Type": "application/json"},
        )
        urllib.request.urlopen(request, timeout=10).close()
        page.get_by_text("Most read").wait_for()
