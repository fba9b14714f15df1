"""`downriver serve --open` opens the web UI once the server answers."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path

from tests.server import running_server


def test_the_browser_is_given_the_address_of_a_server_that_answers(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{opened}.part" && mv "{opened}.part" "{opened}"\n')
    browser.chmod(0o755)
    with running_server(tmp_path / "store", "--open", BROWSER=str(browser)) as url:
        deadline = time.monotonic() + 20
        while not opened.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert opened.read_text().strip() == url
        urllib.request.urlopen(f"{opened.read_text().strip()}/healthz", timeout=10).close()
