"""Shared by the commands of the lake: their options, the Spark session, tables of rows."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.table import Table

from downriver import settings
from downriver.cli.output import err, escape, out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.pipeline import StageReport
    from downriver.lake.runner import Lake, QueryAnswer

LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="WHERE",
        help="Directory or URL of the lake; default DOWNRIVER_LAKE, then .downriver/lake.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option("--master", metavar="URL", help="Spark master; default: local."),
]
PackagesOption = Annotated[
    str | None,
    typer.Option(
        "--packages",
        metavar="COORDINATES",
        help="Maven packages to add to Spark, separated by commas.",
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", min=1, help="Maximum number of rows.")]
FormatOption = Annotated[
    str,
    typer.Option("--format", metavar="FORMAT", help="Format of new tables: parquet or delta."),
]


class SparkChoice(NamedTuple):
    """The Spark master, extra packages, and the format of new tables."""

    master: str | None = None
    packages: str | None = None
    table_format: str = "parquet"


@contextmanager
def open_lake(location: str | None, choice: SparkChoice, *, quiet: bool) -> Iterator[Lake]:
    """Open the lake on a Spark session, and show its stages."""
    from downriver.lake.session import running_session
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import DELTA
    from downriver.lake.storage.versions import read_current_version

    formats = {choice.table_format} | read_current_version(
        Folder(lake_location(location)), create=True
    ).formats
    session = running_session(choice.master, choice.packages, delta=DELTA in formats)
    with err.status("Starting Spark") as spinner, session as spark:
        from downriver.lake.runner import Lake

        yield Lake(
            lake_location(location),
            spark,
            begin=lambda stage: spinner.update(f"Building {stage}"),
            report=(lambda stage: None) if quiet else _show_stage,
            table_format=choice.table_format,
        )
        spinner.update("Stopping Spark")


def lake_location(lake: str | None) -> str:
    """Return the location of the lake: the option, or the setting."""
    return lake or settings.read_text(settings.LAKE)


def _show_stage(stage: StageReport) -> None:
    parts: list[Any] = [f"{stage.rows_in:,} in", f"{stage.rows_out:,} out"]
    if stage.duplicates:
        parts.append(f"{stage.duplicates:,} duplicates")
    if stage.rejected:
        parts.append(f"[red]{stage.rejected:,} rejected[/]")
    out.print(f"[bold]{stage.stage:<8}[/] {', '.join(parts)} [dim]({stage.seconds:.1f} s)[/]")


def show_answer(answer: QueryAnswer) -> None:
    """Show rows in a table."""
    table = Table(*map(escape, answer.columns), box=None, pad_edge=False)
    for row in answer.rows:
        table.add_row(*(escape("" if value is None else str(value)) for value in row))
    out.print(table)
    if answer.more:
        out.print("[dim]… more rows; raise --limit to show them[/]")
