"""`downriver import glue` and `unity`: lineage from files that other catalogs export."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.capture.catalogs import parse_glue, parse_unity, render_export
from downriver.cli.events import StoredEvents, UnreadableEvent, show_stored
from downriver.cli.output import JsonOption, StoreOption, counted, print_json
from downriver.errors import InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.capture.catalogs import CatalogExport

_BATCH = 500


class CatalogImport(StoredEvents, kw_only=True):
    """The result of the import of a file of another catalog."""

    file: str
    tables: int
    jobs: int


def glue(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The JSON output of `aws glue get-tables`.")
    ],
    region: Annotated[
        str,
        typer.Option(
            "--region",
            metavar="REGION",
            help="The AWS region. It is part of the tables' namespace.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the tables of the AWS Glue Data Catalog: columns, owners and tags.

    The S3 location of a table becomes a second name of the table. Jobs that write files there are
    therefore connected with the table.
    """
    _import(parse_glue(_text(file), str(file), region), file, store, json=json)


def unity(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Rows of system.access.column_lineage or table_lineage, as CSV or JSON.",
        ),
    ],
    workspace: Annotated[
        str,
        typer.Option(
            "--workspace",
            metavar="HOST",
            help="The host of the workspace. It is part of the tables' namespace.",
        ),
    ] = "",
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Import the lineage of Unity Catalog: jobs, notebooks, tables and columns."""
    _import(parse_unity(_text(file), str(file), workspace), file, store, json=json)


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{file}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise InvalidRequestError("FILE", f"{file}: not text in UTF-8") from exc


def _import(export: CatalogExport, file: Path, store: str | None, *, json: bool) -> None:
    summary = CatalogImport(file=str(file), tables=len(export.tables), jobs=len(export.jobs))
    summary.problems = [UnreadableEvent(where, reason) for where, reason in export.unread]
    at = int(file.stat().st_mtime * 1_000_000)  # the same file gives the same events again
    events = list(render_export(export, at))
    with Lineage.open(store) as lineage:
        for start in range(0, len(events), _BATCH):
            receipts = lineage.ingest(events[start : start + _BATCH])
            repeated = sum(receipt.duplicate for receipt in receipts)
            summary.duplicates += repeated
            summary.stored += len(receipts) - repeated
    if json:
        print_json(summary)
    else:
        found = f"{counted(summary.tables, 'table')}, {counted(summary.jobs, 'job')}"
        show_stored(summary, f"{found} of {file}")
    if summary.problems:
        raise typer.Exit(1)
