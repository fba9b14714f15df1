"""Every name is data: markup in names, texts and code is shown as text and never runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from tests.server import running_server
from tests.web.conftest import post

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.slow

MARKUP = "<img src=x onerror='window.ran=1'>"
RUN = "0198c0de-0000-7000-8000-000000000001"


def hostile(field: str) -> str:
    """Return a name that runs a script if a page takes it for markup."""
    return f"{field}{MARKUP}"


def hostile_event() -> dict[str, Any]:
    facets = {
        "schema": {"fields": [{"name": hostile("column"), "type": hostile("type")}]},
        "documentation": {"description": hostile("description")},
        "ownership": {"owners": [{"name": hostile("owner"), "type": hostile("role")}]},
        "tags": {"tags": [{"key": hostile("tag"), "value": hostile("value")}]},
    }
    source = {"namespace": "db", "name": hostile("source"), "field": hostile("column")}
    how = {"type": "DIRECT", "subtype": "TRANSFORMATION", "description": hostile("expression")}
    lineage = {hostile("column"): {"inputFields": [{**source, "transformations": [how]}]}}
    return {
        "eventType": "FAIL",
        "eventTime": "2026-03-02T02:00:00Z",
        "producer": f"https://example.org/{hostile('producer')}",
        "run": {
            "runId": RUN,
            "facets": {"errorMessage": {"message": hostile("error"), "stackTrace": MARKUP}},
        },
        "job": {
            "namespace": hostile("namespace"),
            "name": hostile("job"),
            "facets": {
                "sql": {"query": f"select '{MARKUP}' from t"},
                "sourceCodeLocation": {"url": f"javascript:window.ran=1//{MARKUP}"},
            },
        },
        "inputs": [{"namespace": "db", "name": hostile("source"), "facets": facets}],
        "outputs": [
            {
                "namespace": "db",
                "name": hostile("table"),
                "facets": {**facets, "columnLineage": {"fields": lineage}},
            }
        ],
    }


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, built_ui: None) -> Iterator[str]:
    store: Path = tmp_path_factory.mktemp("hostile")
    with running_server(store) as running:
        post(f"{running}/api/v1/lineage", hostile_event())
        yield running


TABLE = quote(f"dataset:db:{hostile('table')}")
JOB = quote(f"job:{hostile('namespace')}:{hostile('job')}")


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/", hostile("error")),
        (f"/lineage?entity={TABLE}&panel=table", hostile("table")),
        (f"/change?entity={TABLE}", hostile("table")),
        (f"/entity?id={TABLE}", hostile("column")),
        (f"/entity?id={JOB}", hostile("job")),
        (f"/run?id={RUN}", hostile("error")),
        ("/trust", hostile("table")),
        (f"/lineage?entity={quote(MARKUP)}", MARKUP),
    ],
    ids=["home", "lineage", "what if", "dataset", "job", "run", "trust", "an error"],
)
def test_markup_stays_text(url: str, open_page: Callable[..., Page], path: str, shown: str) -> None:
    page = open_page(f"{url}{path}", expected="404")
    page.get_by_text(shown).first.wait_for()
    assert page.evaluate("window.ran") is None
    assert page.locator("img[src='x']").count() == 0
    assert page.locator("a[href^='javascript:' i]").count() == 0


def test_a_search_shows_markup_as_text(url: str, open_page: Callable[..., Page]) -> None:
    page = open_page(url)
    page.get_by_role("main").get_by_role("button", name="Search").click()
    page.keyboard.type("table")
    page.get_by_role("option").first.wait_for()
    assert page.evaluate("window.ran") is None
    assert page.locator("img[src='x']").count() == 0
