"""`downriver mcp`: the tools for a model's client, on standard input and output."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from downriver.cli.output import StoreOption
from downriver.impact import read_policy
from downriver.sdk import lineage


def mcp(
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="Offer the tools that register lineage too.")
    ] = False,
    repo: Annotated[
        Path | None, typer.Option("--repo", help="The code that suggest_fix writes patches for.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Serve the Model Context Protocol on standard input and output."""
    from downriver.agent.mcp_server import serve_stdio
    from downriver.agent.tools import ToolContext

    tracker = lineage(store, create=allow_writes)
    try:
        desk = ToolContext(tracker, read_policy(None), repo or Path.cwd())
        asyncio.run(serve_stdio(desk, allow_writes=allow_writes))
    finally:
        tracker.sync.close()
