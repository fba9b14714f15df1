"""`downriver lake`: lineage at any scale, on Spark."""

from __future__ import annotations

import re
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from downriver import settings
from downriver.cli.output import JsonOption, StoreOption, err, out, print_json, progress_bar
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.query import QueryAnswer
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
        list[str] | None,
        typer.Argument(metavar="SRC…", help="Files or directories of events, or URLs."),
    ] = None,
    from_store: Annotated[
        str | None,
        typer.Option("--from-store", metavar="WHERE", help="Take in the log of this store."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    json: JsonOption = False,
) -> None:
    """Take the events of files into the lake: JSON lines, arrays, gzip; only what is new.

    What cannot be read is set aside in a table, with the reason. Exit code 1 when there was any.
    """
    if not sources and from_store is None:
        raise InvalidRequestError("SRC", "name files or directories, or a store by --from-store")
    with _opened(lake, master, quiet=json) as opened:
        stages = [opened.ingest(sources)] if sources else []
        if from_store is not None:
            stages.append(_ingest_log(opened, from_store))
    if json:
        print_json(stages)
    if any(stage.rejected for stage in stages):
        raise typer.Exit(1)


def _ingest_log(lake: Lake, location: str) -> StageReport:
    from downriver.service import Lineage

    with Lineage.open(location, create=False) as lineage:
        return lake.ingest_log(lineage.store)


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
    _show_answer(answer)


def _show_answer(answer: QueryAnswer) -> None:
    table = Table(*map(escape, answer.columns), box=None, pad_edge=False)
    for row in answer.rows:
        table.add_row(*(escape("" if value is None else str(value)) for value in row))
    out.print(table)
    if answer.more:
        out.print("[dim]… and more; --limit shows them[/]")


@app.command("stream")
def stream(
    sources: Annotated[
        list[str], typer.Argument(metavar="SRC…", help="Files or directories of events, or URLs.")
    ],
    trigger: Annotated[
        str, typer.Option("--trigger", metavar="TIME", help="How often: 30s, 5m, 1h.")
    ] = "30s",
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=1, help="Stop after so many; default never.")
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
) -> None:
    """Take in what is new and build, again and again. Ctrl-C stops it after the round it is in.

    Each round commits or leaves no trace, so a restart loses and doubles nothing.
    """
    interval = _parse_interval(trigger)
    with _opened(lake, master, quiet=False) as opened, _until_interrupted() as stopped:
        done = 0
        while not stopped.is_set() and done != rounds:
            if done:
                stopped.wait(interval)
            opened.ingest(sources)
            opened.build()
            done += 1


@app.command("publish")
def publish(store: StoreOption = None, lake: LakeOption = None, json: JsonOption = False) -> None:
    """Append the lake's events to a store, in bulk; what it holds already is recognised."""
    from downriver.lake.places import Folder
    from downriver.lake.publish import publish as publish_to
    from downriver.service import Lineage

    folder = Folder(_place(lake))
    with Lineage.open(store) as lineage, progress_bar("events") as bar:
        task = bar.add_task("Publishing", total=None)
        found = publish_to(
            folder, lineage.store, lambda done, of: bar.update(task, completed=done, total=of)
        )
    if json:
        print_json(found)
    else:
        out.print(f"[bold]{found.events:,}[/] events published, {found.duplicates:,} already there")


@app.command("diff")
def diff(
    before: Annotated[int, typer.Argument(metavar="A", help="The earlier version.")],
    after: Annotated[int, typer.Argument(metavar="B", help="The later version.")],
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many rows at most.")] = 100,
    lake: LakeOption = None,
    master: MasterOption = None,
    json: JsonOption = False,
) -> None:
    """Say which edges came, went, or went stale between two versions."""
    from downriver.lake.query import answer_query

    with _opened(lake, master, quiet=True) as opened:
        frames = opened.diff(before, after)
        answers = {name: answer_query(frame, limit) for name, frame in frames.items()}
    if json:
        print_json(answers)
        return
    for name, answer in answers.items():
        out.print(f"[bold]{name.replace('_', ' ')}[/]")
        _show_answer(answer)


@app.command("clean")
def clean(
    keep: Annotated[int, typer.Option("--keep", min=1, help="How many versions to keep.")] = 10,
    lake: LakeOption = None,
    json: JsonOption = False,
) -> None:
    """Remove all but the last versions, and what interrupted processes left behind."""
    from downriver.lake.places import Folder
    from downriver.lake.retention import clean as clean_folder

    found = clean_folder(Folder(_place(lake)), keep)
    if json:
        print_json(found)
    else:
        out.print(f"{len(found.versions)} versions and {len(found.folders)} folders removed")


def _parse_interval(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6})(s|m|h)", text)
    if match is None:
        raise InvalidRequestError("--trigger", f"{text!r} is not a time such as 30s, 5m or 1h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Turn Ctrl-C and SIGTERM into an event, so that a round is finished and not cut."""
    stopped = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopped.set()) for number in signals]
    try:
        yield stopped
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


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
