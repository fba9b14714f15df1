"""`downriver mcp`: an MCP server on standard input and output."""

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
        bool, typer.Option("--allow-writes", help="Also offer the tools that register lineage.")
    ] = False,
    repo: Annotated[
        Path | None, typer.Option("--repo", help="Repository that suggest_fix writes patches for.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Serve the Model Context Protocol on standard input and output."""
    from downriver.agent.mcp_server import serve_stdio
    from downriver.agent.tools import ToolContext

    tracker = lineage(store, create=allow_writes)
    try:
        context = ToolContext(tracker, read_policy(None), repo or Path.cwd())
        asyncio.run(serve_stdio(context, allow_writes=allow_writes))
    finally:
        tracker.sync.close()
