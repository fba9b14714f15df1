"""`downriver lake`: lineage at any scale, on Spark."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from downriver import settings
from downriver.cli.output import JsonOption, err, out, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.runner import Lake, StageReport
    from downriver.lake.snapshots import Snapshot

app = typer.Typer(help="Lineage at any scale, on Spark.", no_args_is_help=True)

LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="WHERE",
        help="A directory or URL; default DOWNRIVER_LAKE, .downriver/lake.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="The Spark master; default this machine."),
]


class LakeStatus(msgspec.Struct):
    """What a lake holds."""

    lake: str
    version: int
    made_at: str
    batches: int
    unfolded: int
    events: int
    quarantined: int
    duplicates: int
    tables: dict[str, int]


@app.command("ingest")
def ingest(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC…", help="Files or directories of events, or URLs.")
    ],
    lake: LakeOption = None,
    master: MasterOption = None,
    json: JsonOption = False,
) -> None:
    """Take the events of files into the lake: JSON lines, arrays, gzip; only what is new.

    What cannot be read is set aside in a table, with the reason. Exit code 1 when there was any.
    """
    with _opened(lake, master, quiet=json) as opened:
        stage = opened.ingest(sources)
    if json:
        print_json(stage)
    if stage.rejected:
        raise typer.Exit(1)


@app.command("build")
def build(
    full: Annotated[
        bool, typer.Option("--full", help="Fold every event again, not only new ones.")
    ] = False,
    lake: LakeOption = None,
    master: MasterOption = None,
    json: JsonOption = False,
) -> None:
    """Fold new events into the facts, and make the silver and gold tables from them."""
    with _opened(lake, master, quiet=json) as opened:
        stages = opened.build(full=full)
    if json:
        print_json(stages)
    elif not stages:
        out.print("nothing new since the last build")


@app.command("status")
def status(lake: LakeOption = None, json: JsonOption = False) -> None:
    """Say what the lake holds. Starts no Spark."""
    from downriver.lake.places import Folder
    from downriver.lake.snapshots import read_current

    folder = Folder(_place(lake))
    found = _status(folder.place, read_current(folder))
    if json:
        print_json(found)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name in ("lake", "version", "made_at", "batches", "unfolded"):
        table.add_row(name.replace("_", " "), escape(str(getattr(found, name))))
    for name in ("events", "quarantined", "duplicates"):
        table.add_row(name, f"{getattr(found, name):,}")
    for name, rows in found.tables.items():
        table.add_row(name, f"{rows:,}")
    out.print(table)


@app.command("query")
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL over the lake's tables.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many rows at most.")] = 100,
    lake: LakeOption = None,
    master: MasterOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a query. Tables go by layer and name: gold_edges, silver_runs, bronze_quarantine."""
    from downriver.lake.query import answer_query

    with _opened(lake, master, quiet=json) as opened:
        answer = answer_query(opened.query(sql), limit)
    if json:
        print_json(answer)
        return
    table = Table(*map(escape, answer.columns), box=None, pad_edge=False)
    for row in answer.rows:
        table.add_row(*(escape("" if value is None else str(value)) for value in row))
    out.print(table)
    if answer.more:
        out.print("[dim]… and more; --limit shows them[/]")


def _status(place: str, snapshot: Snapshot) -> LakeStatus:
    return LakeStatus(
        lake=place,
        version=snapshot.version,
        made_at=snapshot.made_at,
        batches=len(snapshot.batches),
        unfolded=len(snapshot.unfolded),
        events=sum(batch.events for batch in snapshot.batches),
        quarantined=sum(batch.quarantined for batch in snapshot.batches),
        duplicates=sum(batch.duplicates for batch in snapshot.batches),
        tables={name: stored.rows for name, stored in sorted(snapshot.tables.items())},
    )


@contextmanager
def _opened(place: str | None, master: str | None, *, quiet: bool) -> Iterator[Lake]:
    """Open the lake on a running Spark, showing each stage as it goes."""
    from downriver.lake.session import running_session

    with err.status("Starting Spark") as spinner, running_session(master) as spark:
        from downriver.lake.runner import Lake

        yield Lake(
            _place(place),
            spark,
            begin=lambda stage: spinner.update(f"Making {stage}"),
            report=(lambda stage: None) if quiet else _show_stage,
        )
        spinner.update("Stopping Spark")


def _place(lake: str | None) -> str:
    return lake or settings.read_text(settings.LAKE)


def _show_stage(stage: StageReport) -> None:
    parts: list[Any] = [f"{stage.rows_in:,} in", f"{stage.rows_out:,} out"]
    if stage.duplicates:
        parts.append(f"{stage.duplicates:,} already there")
    if stage.rejected:
        parts.append(f"[red]{stage.rejected:,} rejected[/]")
    out.print(f"[bold]{stage.stage:<8}[/] {', '.join(parts)} [dim]({stage.seconds:.1f} s)[/]")
