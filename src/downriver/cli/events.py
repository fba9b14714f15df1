"""`downriver ingest`, `spool` and `run`: events from files, the spool and commands."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver import bootstrap, settings
from downriver.cli.output import (
    JsonOption,
    StoreOption,
    counted,
    err,
    escape,
    out,
    print_json,
    progress_bar,
)
from downriver.errors import InvalidRequestError
from downriver.openlineage.files import EventRecord, list_event_files, read_event_file, read_events
from downriver.sdk.delivery import open_sender, open_spool
from downriver.service import Lineage
from downriver.service.sql_facets import infer_datasets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.progress import Progress

    from downriver.openlineage import Event

_BATCH_EVENTS = 500
_BATCH_BYTES = 8 * 2**20
_PROBLEMS_SHOWN = 20


class UnreadableEvent(msgspec.Struct):
    """A line or document that could not be read as an event."""

    where: str
    reason: str


class StoredEvents(msgspec.Struct, kw_only=True):
    """How many events were stored, and which could not be read."""

    stored: int = 0
    duplicates: int = 0
    problems: list[UnreadableEvent] = msgspec.field(default_factory=list)


class IngestSummary(StoredEvents, kw_only=True):
    """The result of `downriver ingest`."""

    files: int


def ingest(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="Files of events, or directories that contain them. `-` reads standard input.",
        ),
    ],
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Store OpenLineage events from files.

    A file has JSON lines, a JSON array or one JSON document, and may be compressed with gzip.

    Lines that cannot be read are reported by file and line, and the other events are stored. The
    exit code is then 1.

    Examples:
      downriver ingest events.jsonl
    """
    paths = list_event_files(name for name in files if name != "-")
    summary = IngestSummary(files=len(paths) + ("-" in files))
    with Lineage.open(store) as lineage, progress_bar("bytes") as bar:
        for batch in _batches(_events(paths, "-" in files, bar, summary)):
            receipts = lineage.ingest(batch)
            infer_datasets(lineage.session, batch)
            repeated = sum(receipt.duplicate for receipt in receipts)
            summary.duplicates += repeated
            summary.stored += len(receipts) - repeated
    if json:
        print_json(summary)
    else:
        show_stored(summary, counted(summary.files, "file"))
    if summary.problems:
        raise typer.Exit(1)


def _events(
    paths: list[Path], stdin: bool, bar: Progress, summary: IngestSummary
) -> Iterator[Event]:
    task = bar.add_task("Reading", total=sum(path.stat().st_size for path in paths) or None)
    before = 0
    for path in paths:
        for record, position in read_event_file(path):
            bar.update(task, completed=before + position)
            yield from _readable(record, summary)
        before += path.stat().st_size
    if stdin:
        for record in read_events(sys.stdin.buffer, "-"):
            yield from _readable(record, summary)


def _readable(record: EventRecord, summary: IngestSummary) -> Iterator[Event]:
    if record.event is not None:
        yield record.event
    else:
        summary.problems.append(UnreadableEvent(record.where, record.problem or ""))


def _batches(events: Iterable[Event]) -> Iterator[list[Event]]:
    batch: list[Event] = []
    size = 0
    for event in events:
        batch.append(event)
        size += len(event.raw)
        if len(batch) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def show_stored(summary: StoredEvents, source: str) -> None:
    """Print how many events of a source were stored, and the first that could not be read."""
    for problem in summary.problems[:_PROBLEMS_SHOWN]:
        err.print(f"[red]{escape(problem.where)}[/]: {escape(problem.reason)}")
    more = len(summary.problems) - _PROBLEMS_SHOWN
    if more > 0:
        err.print(f"[red]… and {more} more[/]")
    noun = "event" if summary.stored == 1 else "events"
    parts = [f"[bold]{summary.stored}[/] {noun} stored"]
    if summary.duplicates:
        parts.append(f"{summary.duplicates} already stored")
    if summary.problems:
        parts.append(f"[red]{len(summary.problems)} could not be read[/]")
    out.print(f"{', '.join(parts)} ({escape(source)})")


ToOption = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="TARGET",
        help="Send to this server URL or store. Default: where tracked jobs send their events.",
    ),
]


def status(json: JsonOption = False) -> None:
    """Show how many events wait in the spool to be sent, and in which folder."""
    spool = open_spool()
    state = spool.state()
    if json:
        print_json({"folder": str(spool.folder), **state._asdict()})
        return
    out.print(f"{counted(state.events, 'event')} spooled in {spool.folder}, {state.size:,} bytes")
    if state.dropped:
        out.print(f"{state.dropped:,} events were dropped, because the spool was full")
    if state.rejected:
        out.print(f"{counted(state.rejected, 'event')} rejected by the server and kept:")
        for text, count in Counter(kept.reason for kept in spool.rejected()).most_common(
            _PROBLEMS_SHOWN
        ):
            out.print(f"  [red]{count:,}[/] × {escape(text)}")


def flush(
    to: ToOption = None,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Also send the events that the server rejected.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Send the spooled events. Those that cannot be sent stay in the spool.

    Events that the server rejects are kept apart; the exit code is then 1. They are sent again only
    with --rejected.
    """
    spool = open_spool()
    if rejected:
        spool.retry_rejected()
    rejected_before = spool.state().rejected
    with closing(open_sender(to)) as send:
        delivered = spool.drain(send)
    after = spool.state()
    refused = after.rejected - rejected_before
    if json:
        print_json({"sent": delivered - refused, "waiting": after.events, "rejected": refused})
    else:
        text = f"{counted(delivered - refused, 'event')} sent, {after.events:,} still spooled"
        out.print(f"{text}, [red]{refused:,} rejected[/]" if refused else text)
    if refused:
        raise typer.Exit(1)


def run(
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND", help="The command to run, such as spark-submit job.py."),
    ],
    job: Annotated[
        str | None,
        typer.Option(
            "--job",
            metavar="NAME",
            help="The name of the job. Default: the name of the Spark application.",
        ),
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="The namespace of the job. Default: that of the parent run, else spark.",
        ),
    ] = None,
) -> None:
    """Run a command and capture the lineage of every PySpark session that it starts."""
    program = shutil.which(command[0])
    if program is None:
        raise InvalidRequestError("command", f"no program named {command[0]!r}")
    folders = [str(Path(bootstrap.__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    if job:
        environment[settings.JOB.name] = job
    if namespace:
        environment[settings.NAMESPACE.name] = namespace
    sys.stdout.flush()
    os.execvpe(program, command, environment)  # noqa: S606
