"""`downriver import marquez`: events that another server has stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.capture.marquez import open_marquez
from downriver.cli.events import StoredEvents, UnreadableEvent, show_stored
from downriver.cli.output import JsonOption, StoreOption, print_json, progress_bar
from downriver.errors import InvalidEventError
from downriver.openlineage import parse_event
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.service.sql_facets import infer_datasets

if TYPE_CHECKING:
    from downriver.capture.marquez import MarquezPage
    from downriver.openlineage import Event


class ImportSummary(StoredEvents, kw_only=True):
    """The counts of an import of events from another server."""

    source: str
    since: str | None


def marquez(
    source: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="The http(s):// URL of Marquez, or the postgresql:// URL of its database.",
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
        typer.Option("--restart", help="Read all events again, not only new ones."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Import the events of a Marquez server. A second run continues where the first ended.

    An event is stored once. Events that cannot be read are reported, and the others are stored;
    the exit code is then 1.
    """
    origin = open_marquez(source, api_key)
    position = f"import:{origin.name}"
    with Lineage.open(store) as lineage:
        with lineage.store.reader() as reader:
            saved = None if restart else reader.findings.state(position)
        since = int(saved or 0)
        summary = ImportSummary(source=origin.name, since=render_time(since) if saved else None)
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
        first = f", from {summary.since} on" if summary.since else ""
        show_stored(summary, f"{summary.source}{first}")
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
