"""`downriver serve` and `downriver keys`: the HTTP server and its API keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from downriver.cli.output import JsonOption, StoreOption, err, out, print_json
from downriver.openlineage.wire import render_time
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


app = typer.Typer(help="API keys of the server.", no_args_is_help=True)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Who or what the key is for.")],
    role: Annotated[str, typer.Option("--role", help="reader, writer or admin.")] = "writer",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make an API key and print it, once. From the first key on, every request needs one."""
    with Lineage.open(store) as lineage:
        key = lineage.create_key(name, role)
    if json:
        print_json({"name": name, "role": role, "key": key})
        return
    err.print(f"key for {escape(name)} ({role}); it is shown only now:")
    out.print(key)


@app.command("list")
def list_keys(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the API keys, without the keys themselves."""
    with Lineage.open(store, create=False) as lineage:
        keys = lineage.list_keys()
    if json:
        print_json(keys)
        return
    table = Table("name", "role", "created", "revoked", box=None, pad_edge=False)
    for key in keys:
        revoked = "" if key.revoked_at is None else render_time(key.revoked_at)
        table.add_row(escape(key.name), key.role, render_time(key.created_at), revoked)
    out.print(table if keys else "no keys: the server answers its own machine only")


@app.command("revoke")
def revoke(
    name: Annotated[str, typer.Argument(help="The key to revoke.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Make an API key worthless, within seconds, on every server of this store."""
    with Lineage.open(store, create=False) as lineage:
        lineage.revoke_key(name)
    if json:
        print_json({"name": name, "revoked": True})
        return
    out.print(f"revoked {escape(name)}")
