"""`downriver lake diff`, `compact`, `expire`, `clean`, `publish`, `export` and `views`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.lake.pipeline import (
    ConfOption,
    LakeOption,
    LimitOption,
    MasterOption,
    PackagesOption,
    SparkChoice,
    lake_location,
    open_lake,
    parse_conf,
    show_answer,
)
from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json, progress_bar
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from downriver.lake.exports import ExportedFile

_POINT = "A version, or a time such as 2026-01-31T12:00:00Z."


def diff(
    before: Annotated[str, typer.Argument(metavar="BEFORE", help=_POINT)],
    after: Annotated[str, typer.Argument(metavar="AFTER", help=_POINT)],
    limit: LimitOption = 100,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """List the edges that were added, removed or became stale between two versions or times."""
    from downriver.lake.runner import answer_query

    with open_lake(
        lake, SparkChoice(master, packages, conf=parse_conf(conf)), quiet=True
    ) as opened:
        frames = opened.diff(before, after)
        answers = {name: answer_query(frame, limit) for name, frame in frames.items()}
    if json:
        print_json(answers)
        return
    for name, answer in answers.items():
        out.print(f"[bold]{name.replace('_', ' ')}[/]")
        show_answer(answer)


def compact(
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Merge small bronze files into a few large ones, and the runs of each table into one."""
    with open_lake(
        lake, SparkChoice(master, packages, conf=parse_conf(conf)), quiet=json
    ) as opened:
        stage = opened.compact()
    if json:
        print_json(stage)


def expire(
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="TIME",
            help="Remove the events before this time, such as 2026-01-31.",
        ),
    ],
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Remove the raw events before a time. The tables built from them stay.

    Afterwards `lake build` rejects --full and --as-of, which need all events. `lake clean` deletes
    the files as soon as no version uses them.
    """
    from downriver.lake.storage.tables import parse_time

    moment = parse_time(before, end=False)
    with open_lake(
        lake, SparkChoice(master, packages, conf=parse_conf(conf)), quiet=json
    ) as opened:
        stage = opened.expire(moment)
    if json:
        print_json(stage)


def clean(
    keep: Annotated[
        int, typer.Option("--keep", metavar="N", min=1, help="Keep the last N versions.")
    ] = 10,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Remove old versions, and files left by interrupted processes."""
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import clean_versions

    report = clean_versions(Folder(lake_location(lake)), keep)
    if json:
        print_json(report)
    else:
        out.print(f"{len(report.versions)} versions and {len(report.folders)} folders removed")
        for kept in report.kept:
            out.print(f"kept {escape(kept.folder)}: {escape(kept.reason)}")


def publish(store: StoreOption = None, lake: LakeOption = None, json: JsonOption = False) -> None:
    """Append the events of the lake to a store. Events that the store already has are skipped."""
    from downriver.lake.bronze.store_log import publish as publish_to
    from downriver.lake.storage.files import Folder
    from downriver.service import Lineage

    folder = Folder(lake_location(lake))
    with Lineage.open(store) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Publishing", total=None)
        report = publish_to(
            folder,
            lineage.store,
            lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        print_json(report)
    else:
        out.print(f"[bold]{report.events:,}[/] events published, {report.duplicates:,} duplicates")


def export(
    neo4j: Annotated[
        str | None,
        typer.Option(
            "--neo4j",
            metavar="DIR",
            help="Write CSV files for Neo4j's bulk importer to this folder.",
        ),
    ] = None,
    parquet: Annotated[
        str | None,
        typer.Option(
            "--parquet", metavar="DIR", help="Write the silver and gold tables to this folder."
        ),
    ] = None,
    openlineage: Annotated[
        str | None,
        typer.Option(
            "--openlineage",
            metavar="FILE",
            help="Write all events to this file. With the suffix .gz it is compressed.",
        ),
    ] = None,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Export the graph for Neo4j, the tables as Parquet, or the events."""
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
        raise InvalidRequestError(
            "--neo4j", "give at least one of --neo4j, --parquet, --openlineage"
        )
    if json:
        print_json(written)
        return
    for file in written:
        out.print(f"{file.path}  [dim]{file.rows:,}[/]")


def views(
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print a Grafana dashboard for the views instead.")
    ] = False,
    trino: Annotated[
        str | None,
        typer.Option(
            "--trino",
            metavar="URL",
            help="Print SQL for Trino instead. URL is the folder that `lake export --parquet` "
            "wrote, as Trino reads it.",
        ),
    ] = None,
    schema: Annotated[
        str,
        typer.Option(
            "--schema", metavar="CATALOG.SCHEMA", help="Where Trino creates the tables and views."
        ),
    ] = "hive.lineage",
    lake: LakeOption = None,
) -> None:
    """Print SQL that creates a DuckDB view for each table."""
    from downriver.lake.duckdb_views import render_dashboard, render_views
    from downriver.lake.storage.files import Folder
    from downriver.lake.trino_views import render_trino

    if dashboard:
        text = render_dashboard()
    elif trino is not None:
        text = render_trino(trino, schema)
    else:
        text = render_views(Folder(lake_location(lake)))
    typer.echo(text, nl=False)
