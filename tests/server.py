"""A real server in a separate process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver import Lineage
    from downriver.isolation import WorkerPool


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running_server(
    store: Path | str, *options: str, repo: Path | None = None, **settings: str
) -> Iterator[str]:
    """Start `downriver serve` on a store and yield its URL."""
    port = free_port()
    command = [sys.executable, "-m", "downriver", "serve", "--port", str(port)]
    where = ["--store", str(store), *([] if repo is None else ["--repo", str(repo)])]
    process = subprocess.Popen(
        [*command, *where, *options],
        env={**os.environ, **settings},
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_up(url, process)
        yield url
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def serving(lineage: Lineage, workers: WorkerPool | None = None) -> Iterator[str]:
    """Serve a store from a thread of this process and yield its URL.

    It starts faster than a process.
    """
    import uvicorn

    from downriver.http.app import build_app

    port = free_port()
    config = uvicorn.Config(
        build_app(lineage, workers), port=port, log_level="critical", lifespan="off"
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)


def wait_until_up(url: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/healthz", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"the server did not come up (exit code {process.poll()})")
