"""The application as a uvicorn server."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING

import uvicorn

from downriver.http.app import build_app
from downriver.http.code_requests import answer_in_worker, load_graph, request_payload
from downriver.isolation import shared_workers

if TYPE_CHECKING:
    from downriver.service import Lineage


def serve(lineage: Lineage, host: str, port: int) -> None:
    """Serve one store until interrupted. Accepted events are on disk when this returns.

    Call `check_bind` first.
    """
    threading.Thread(target=warm_up, args=(lineage,), daemon=True).start()
    make_server(lineage, host, port).run()


def make_server(lineage: Lineage, host: str = "127.0.0.1", port: int = 0) -> uvicorn.Server:
    """Return a server of one store. Its caller runs it, possibly on sockets of its own."""
    config = uvicorn.Config(
        build_app(lineage),
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    return uvicorn.Server(config)


def warm_up(lineage: Lineage) -> None:
    """Load the graph and compile code now, so that the first requests need not wait."""
    lineage.session.prepare()
    payload = request_payload(lineage, load_graph, b"")
    if payload is not None:
        shared_workers().warm_up(answer_in_worker, payload)
    # The objects loaded so far stay alive. Exclude them from garbage collection, which would
    # otherwise pause requests for 50 ms and more.
    gc.collect()
    gc.freeze()
