"""Running the application with uvicorn."""

from __future__ import annotations

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
    config = uvicorn.Config(
        build_app(lineage),
        host=host,
        port=port,
        access_log=False,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    threading.Thread(target=lineage.prepare, daemon=True).start()
    uvicorn.Server(config).run()
