"""A real server with real lineage, and the system's Chromium on its pages."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
from tests.conftest import NO_BROWSER
from tests.server import running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
CHURN_EVENTS = Path(__file__).parent / "churn_events.jsonl"
RENAME = "alter table warehouse.analytics.stg_orders rename column order_total to amount"
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def built_ui() -> None:
    """The UI is built from the sources of this checkout."""
    runpy.run_path(str(ROOT / "web" / "build.py"))["build"]()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium. Without one, its tests are skipped; in CI they fail.

    One for each file: while Playwright runs, its event loop is that of the whole process, and
    tests of other files could not run theirs.
    """
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if chromium is None:
        reason = f"{NO_BROWSER}: install Chromium with the system's package manager"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=chromium, args=["--disable-dev-shm-usage"]
        )
        yield running
        running.close()


def downriver(*arguments: str, folder: Path = ROOT) -> None:
    """Run a command of Downriver; its failure fails the test."""
    done = subprocess.run(
        [sys.executable, "-m", "downriver", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that holds the churn, shop and orders pipelines and four weeks of drift."""
    store = tmp_path_factory.mktemp("web") / "store"
    history = store.parent / "history.jsonl"
    script = [sys.executable, str(EXAMPLES / "drift" / "history.py")]
    history.write_bytes(subprocess.run(script, capture_output=True, check=True).stdout)
    files = (CHURN_EVENTS, EXAMPLES / "shop" / "events.jsonl", history)
    downriver("ingest", *map(str, files), "--store", str(store))
    orders = EXAMPLES / "orders"
    downriver("capture", "scan", ".", "--store", str(store), folder=orders)
    downriver("capture", "dbt", "target", "--store", str(store), folder=orders)
    return store


@pytest.fixture(scope="session")
def web_server(pipelines: Path, built_ui: None) -> Iterator[str]:
    """The URL of a server on the store of all pipelines. The gate has decided there already."""
    with running_server(pipelines, repo=EXAMPLES / "orders") as url:
        post(f"{url}/v1/gate", {"ddl": RENAME})
        waiver = {"rule": "*", "reason": "agreed with finance", "author": "ana"}
        waived = {"ddl": RENAME, "policy": {"waivers": [{**waiver, "expires": "2199-01-01"}]}}
        post(f"{url}/v1/gate", waived)
        yield url


def post(url: str, body: object, key: str = "") -> None:
    """Send JSON to a server; a refusal fails the test."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, timeout=60).close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages that fail the test if the browser reports an error."""
    problems: list[str] = []
    with ExitStack() as stack:

        def open_one(url: str, *, scheme: str = "light", expected: str | None = None) -> Page:
            """Open a URL; messages that contain `expected` are no failure."""
            context = browser.new_context(
                viewport={"width": 1440, "height": 900},
                color_scheme="dark" if scheme == "dark" else "light",
                permissions=["clipboard-read", "clipboard-write"],
            )
            stack.callback(context.close)
            page = context.new_page()

            def report(text: str) -> None:
                if expected is None or expected not in text:
                    problems.append(text)

            def on_message(message: ConsoleMessage) -> None:
                if message.type in {"error", "warning"}:
                    report(f"{message.text} ({message.location.get('url')})")

            page.on("console", on_message)
            page.on("pageerror", lambda error: report(str(error)))
            page.goto(url)
            return page

        yield open_one
    assert problems == []
