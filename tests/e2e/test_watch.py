"""A monitor that is killed, with a channel that does not respond, loses and repeats nothing."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import encode, run_event
from tests.server import free_port
from tests.unit.govern.scenario import output, rows, schema
from tests.webhook import running_hook

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CONFIG = "watch: {every: 0.2s, channels: [{type: webhook, url: '${HOOK}'}]}\n"


def days_of_events() -> list[bytes]:
    """Return events of twelve days. On the last one rows are missing and a column is new."""
    now = dt.datetime.now(dt.timezone.utc)
    events = []
    for ago in range(12, -1, -1):
        columns = {"id": "int"} if ago else {"id": "int", "extra": "text"}
        table = output("t", schema(**columns), rows(5000 if ago else 7))
        at = (now - dt.timedelta(days=ago, minutes=1)).isoformat()
        events.append(encode(run_event("load", f"r{ago}", at=at, outputs=[table])))
    return events


def start(folder: Path, port: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "downriver", "watch", "--store", "store"],
        cwd=folder,
        env={**os.environ, "HOOK": f"http://127.0.0.1:{port}/alerts"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_monitor_killed_while_its_channel_fails_sends_every_alert_once(tmp_path: Path) -> None:
    (tmp_path / "downriver.yml").write_text(CONFIG)
    port = free_port()
    with Lineage.open(str(tmp_path / "store")) as lineage:
        lineage.ingest(days_of_events())
        first = start(tmp_path, port)
        try:
            wait_for(lambda: any(w.attempts for w in lineage.govern.waiting_alerts()), 60)
        finally:
            first.kill()
            first.wait(20)
        assert lineage.govern.findings().total == 2
        with running_hook(port) as hook:
            second = start(tmp_path, port)
            try:
                wait_for(lambda: hook.posts, 90)
                wait_for(lambda: not lineage.govern.waiting_alerts(), 30)
                time.sleep(1.0)  # a few more looks
            finally:
                second.terminate()
                assert second.wait(20) == 0
    told = [alert["finding"]["kind"] for _, body in hook.posts for alert in body["alerts"]]
    assert sorted(told) == ["column_added", "row_count_shift"]
