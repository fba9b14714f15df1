"""`downriver lake publish`, `export` and `views`: the lake for others. None starts Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.lake.spark import LakeOption, lake_location
from downriver.cli.output import JsonOption, StoreOption, out, print_json, progress_bar
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from downriver.lake.exports import ExportedFile


def publish(store: StoreOption = None, lake: LakeOption = None, json: JsonOption = False) -> None:
    """Append the lake's events to a store, in bulk; what it holds already is recognised."""
    from downriver.lake.bronze.store_log import publish as publish_to
    from downriver.lake.storage.files import Folder
    from downriver.service import Lineage

    folder = Folder(lake_location(lake))
    with Lineage.open(store) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Publishing", total=None)
        found = publish_to(
            folder, lineage.store, lambda done, of: bar.update(task, completed=done, total=of)
        )
    if json:
        print_json(found)
    else:
        out.print(f"[bold]{found.events:,}[/] events published, {found.duplicates:,} already there")


def export(
    neo4j: Annotated[
        str | None, typer.Option("--neo4j", metavar="DIR", help="CSV files for its bulk importer.")
    ] = None,
    parquet: Annotated[
        str | None, typer.Option("--parquet", metavar="DIR", help="Silver and gold tables.")
    ] = None,
    openlineage: Annotated[
        str | None, typer.Option("--openlineage", metavar="FILE", help="Events; .gz packs them.")
    ] = None,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Write the lake for others: its graph for Neo4j, its tables as Parquet, its events."""
    from downriver.lake.exports import export_neo4j, export_openlineage, export_parquet
    from downriver.lake.storage.files import Folder

    folder = Folder(lake_location(lake))
    written: list[ExportedFile] = []
    for target, write in (
        (neo4j, export_neo4j),
        (parquet, export_parquet),
        (openlineage, export_openlineage),
    ):
        if target is not None:
            written += write(folder, target)
    if not written:
        raise InvalidRequestError("--neo4j", "say what to write: --neo4j, --parquet, --openlineage")
    if json:
        print_json(written)
        return
    for file in written:
        out.print(f"{file.path}  [dim]{file.rows:,}[/]")


def views(
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print the Grafana dashboard that asks them.")
    ] = False,
    lake: LakeOption = None,
) -> None:
    """Print SQL that makes a view of each table, for DuckDB and what connects to it."""
    from downriver.lake.duckdb_views import render_dashboard, render_views
    from downriver.lake.storage.files import Folder

    text = render_dashboard() if dashboard else render_views(Folder(lake_location(lake)))
    typer.echo(text, nl=False)
