"""Running the application with uvicorn."""

from __future__ import annotations

import gc
import threading
from typing import TYPE_CHECKING

import uvicorn

from downriver.http.app import build_app

if TYPE_CHECKING:
    from downriver.service import Lineage


def serve(lineage: Lineage, host: str, port: int) -> None:
    """Serve one store until interrupted; what was accepted is written before this returns.

    `check_bind` says beforehand whether it may listen there.
    """
    threading.Thread(target=warm_up, args=(lineage,), daemon=True).start()
    make_server(lineage, host, port).run()


def make_server(lineage: Lineage, host: str = "127.0.0.1", port: int = 0) -> uvicorn.Server:
    """Return a server of one store, to be run here or on sockets that it is given."""
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
    """Do beforehand what requests would wait for."""
    lineage.prepare()
    # What is loaded by now stays. To look for garbage in all of it again and again keeps requests
    # waiting, for 50 ms and more.
    gc.collect()
    gc.freeze()
