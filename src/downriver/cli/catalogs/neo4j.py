"""`downriver export neo4j`: a copy of the whole graph in Neo4j."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.graph import neo4j_driver
from downriver.cli.output import JsonOption, StoreOption, err, escape, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.service.views.graph_sync import SyncedGraph


def neo4j(
    uri: Annotated[
        str, typer.Argument(metavar="URI", help="The database: bolt://HOST:PORT or neo4j://HOST.")
    ],
    follow: Annotated[
        bool, typer.Option("--follow", help="Keep running, and copy changes as they arrive.")
    ] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=0.1,
            help="With --follow: check for new events every SECONDS seconds.",
        ),
    ] = 2.0,
    database: Annotated[
        str | None,
        typer.Option(
            "--database", metavar="NAME", help="Write to this database instead of the default one."
        ),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Copy the whole graph again, not only the changes.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Copy the graph to Neo4j. Later runs copy only the changes.

    The environment variables NEO4J_USERNAME and NEO4J_PASSWORD have the user and the password.
    """
    with Lineage.open(store, create=False) as lineage, neo4j_driver(uri) as driver:
        sync = lineage.export.sync_to(f"{uri}/{database or ''}")
        _show(sync.write_changes(driver, database, restart=restart), json=json)
        while follow:
            time.sleep(interval)
            written = sync.write_changes(driver, database)
            if written.nodes or written.deleted:
                _show(written, json=json)


def _show(written: SyncedGraph, *, json: bool) -> None:
    if json:
        print_json(written)
        return
    deleted = f", deleted {written.deleted}" if written.deleted else ""
    err.print(
        f"wrote {written.nodes} nodes and {written.edges} edges{deleted} to"
        f" {escape(written.target)}, up to event {written.head}"
    )
