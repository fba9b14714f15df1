"""The collector in a separate process: the events that it acknowledges and rejects."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest
from tests.server import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with running_server(tmp_path / "store") as url:
        yield url


def test_an_acknowledged_event_is_visible_to_another_process_at_once(
    server: str, tmp_path: Path
) -> None:
    body = (
        b'{"eventTime": "2026-01-01T00:00:00Z", "run": {"runId": "r"}, "job": {"namespace": "n",'
        b' "name": "j"}, "inputs": [{"namespace": "n", "name": "fresh"}]}'
    )
    urllib.request.urlopen(f"{server}/api/v1/lineage", data=body).close()
    asked = [
        sys.executable,
        "-m",
        "downriver",
        "trace",
        "fresh",
        "--store",
        str(tmp_path / "store"),
    ]
    assert "complete" in subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def test_a_request_for_another_host_name_is_refused(server: str) -> None:
    request = urllib.request.Request(f"{server}/v1/status", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 401
    refused.value.close()
