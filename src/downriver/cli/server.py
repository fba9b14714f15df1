"""`downriver serve` and `downriver keys`: the HTTP server and its API keys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, err, escape, out, print_json
from downriver.openlineage.wire import render_time
from downriver.service import Lineage


def serve(
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", help="Listen on this address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="PORT", min=1, max=65535, help="Listen on this port.")
    ] = 5000,
    repo: Annotated[
        Path | None,
        typer.Option(
            "--repo",
            metavar="DIR",
            help="Read the source code of registered assets from this repository.",
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Start the HTTP server. Any OpenLineage client can send events to it.

    Without API keys the server accepts requests from this machine only.
    """
    from downriver.http import check_bind
    from downriver.http import serve as run

    with Lineage.open(store, repository=repo) as lineage:
        check_bind(host, port, keyed=lineage.admin.has_keys())
        err.print(
            f"[bold]downriver[/] on [cyan]http://{host}:{port}[/]"
            f" · store {escape(lineage.store.url)}"
            f"\nsend events:  OPENLINEAGE_URL=http://{host}:{port}  ·  stop with Ctrl-C"
        )
        run(lineage, host, port)


def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A name for the key, such as its user.")
    ],
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help="reader, writer or admin.")
    ] = "writer",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Create an API key and print it once.

    As soon as a store has a key, every request to its servers needs one.
    """
    with Lineage.open(store) as lineage:
        key = lineage.admin.create_key(name, role)
    if json:
        print_json({"name": name, "role": role, "key": key})
        return
    err.print(f"key for {escape(name)} ({role}); it is shown only now:")
    out.print(key)


def list_keys(store: StoreOption = None, json: JsonOption = False) -> None:
    """List the API keys with their roles, without the keys themselves."""
    with Lineage.open(store, create=False) as lineage:
        keys = lineage.admin.list_keys()
    if json:
        print_json(keys)
        return
    if not keys:
        out.print("no API keys: the server accepts requests from this machine only")
        return
    from rich.table import Table

    table = Table("name", "role", "created", "revoked", box=None, pad_edge=False)
    for key in keys:
        revoked = "" if key.revoked_at is None else render_time(key.revoked_at)
        table.add_row(escape(key.name), key.role, render_time(key.created_at), revoked)
    out.print(table)


def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the key.")],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Revoke an API key. Every server of this store rejects it within two seconds."""
    with Lineage.open(store, create=False) as lineage:
        lineage.admin.revoke_key(name)
    if json:
        print_json({"name": name, "revoked": True})
        return
    out.print(f"revoked {escape(name)}")
