"""`downriver serve`: the HTTP server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from downriver.cli.output import StoreOption, err
from downriver.service import Lineage


def serve(
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port.")] = 5000,
    repo: Annotated[
        Path | None,
        typer.Option("--repo", help="A repository in which the code of assets is found."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Start the server: point any OpenLineage client at it."""
    from downriver.http import check_bind
    from downriver.http import serve as run

    with Lineage.open(store, repository=repo) as lineage:
        check_bind(host, port, keyed=lineage.has_keys())
        err.print(
            f"[bold]downriver[/] on [cyan]http://{host}:{port}[/]"
            f" · store {escape(lineage.store.url)}"
            f"\nsend events:  OPENLINEAGE_URL=http://{host}:{port}  ·  stop with Ctrl-C"
        )
        run(lineage, host, port)
