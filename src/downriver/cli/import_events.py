"""`downriver import marquez`: events that another server has stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver.capture.marquez import open_marquez
from downriver.cli.events import UnreadableEvent
from downriver.cli.output import JsonOption, StoreOption, err, escape, out, print_json, progress_bar
from downriver.errors import InvalidEventError
from downriver.openlineage import parse_event
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.service.sql_facets import infer_datasets

if TYPE_CHECKING:
    from downriver.capture.marquez import MarquezPage
    from downriver.openlineage import Event

_PROBLEMS_SHOWN = 20


class ImportSummary(msgspec.Struct):
    """How many events of a source were stored, and which could not be read."""

    source: str
    since: str | None
    stored: int = 0
    duplicates: int = 0
    problems: list[UnreadableEvent] = msgspec.field(default_factory=list)


def marquez(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="The http(s):// URL of Marquez, or postgresql:// of its database."
        ),
    ],
    store: StoreOption = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            metavar="KEY",
            envvar="MARQUEZ_API_KEY",
            help="Send this key as a bearer token.",
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Read all events again, not only those after the last."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Store the events of a Marquez server. A second run continues where the last one ended.

    Events that are stored already are not stored twice. Events that cannot be read are reported,
    and the others are stored. The exit code is then 1.
    """
    origin = open_marquez(source, api_key)
    position = f"import:{origin.name}"
    with Lineage.open(store) as lineage:
        with lineage.store.reader() as reader:
            saved = None if restart else reader.findings.state(position)
        since = int(saved or 0)
        summary = ImportSummary(origin.name, render_time(since) if saved else None)
        with progress_bar("events") as bar:
            task = bar.add_task("Importing", total=origin.count(since))
            for page in origin.pages(since):
                events = _readable(page, summary)
                receipts = lineage.ingest(events)
                infer_datasets(lineage.session, events)
                repeated = sum(receipt.duplicate for receipt in receipts)
                summary.duplicates += repeated
                summary.stored += len(receipts) - repeated
                with lineage.store.ledger() as ledger:  # after the events are on disk
                    ledger.keep(position, str(page.last_at).encode())
                bar.advance(task, len(page.events))
    if json:
        print_json(summary)
    else:
        _show(summary)
    if summary.problems:
        raise typer.Exit(1)


def _readable(page: MarquezPage, summary: ImportSummary) -> list[Event]:
    events = []
    for raw in page.events:
        try:
            events.append(parse_event(raw))
        except InvalidEventError as exc:
            beginning = raw[:80].decode(errors="replace")
            summary.problems.append(UnreadableEvent(beginning, exc.message))
    return events


def _show(summary: ImportSummary) -> None:
    for problem in summary.problems[:_PROBLEMS_SHOWN]:
        err.print(f"[red]{escape(problem.where)}[/]: {escape(problem.reason)}")
    more = len(summary.problems) - _PROBLEMS_SHOWN
    if more > 0:
        err.print(f"[red]… and {more} more[/]")
    parts = [f"[bold]{summary.stored}[/] events stored"]
    if summary.duplicates:
        parts.append(f"{summary.duplicates} already stored")
    if summary.problems:
        parts.append(f"[red]{len(summary.problems)} could not be read[/]")
    since = f", from {summary.since} on" if summary.since else ""
    out.print(f"{', '.join(parts)} ({escape(summary.source)}{since})")
