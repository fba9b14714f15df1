"""`downriver lake`: lineage at any scale, on Spark."""

from __future__ import annotations

import re
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.table import Table

from downriver.cli.lake.spark import (
    FormatOption,
    LakeOption,
    LimitOption,
    MasterOption,
    PackagesOption,
    SparkChoice,
    lake_location,
    open_lake,
    show_answer,
)
from downriver.cli.output import JsonOption, escape, out, print_json
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.pipeline import StageReport
    from downriver.lake.runner import Lake
    from downriver.lake.storage.versions import LakeVersion


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


def ingest(
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SRC…", help="Files or directories of events, URLs, or kafka://host/topic."
        ),
    ] = None,
    from_store: Annotated[
        str | None,
        typer.Option("--from-store", metavar="WHERE", help="Take in the log of this store."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    table_format: FormatOption = "parquet",
    json: JsonOption = False,
) -> None:
    """Take the events of files into the lake: JSON lines, arrays, gzip; only what is new.

    What cannot be read is set aside in a table, with the reason. Exit code 1 when there was any.
    """
    if not sources and from_store is None:
        raise InvalidRequestError("SRC", "name files or directories, or a store by --from-store")
    spark = SparkChoice(master, packages, table_format)
    with open_lake(lake, spark, quiet=json) as opened:
        stages = _ingest_sources(opened, sources or [])
        if from_store is not None:
            stages.append(_ingest_log(opened, from_store))
    if json:
        print_json(stages)
    if any(stage.rejected for stage in stages):
        raise typer.Exit(1)


def _ingest_sources(lake: Lake, sources: list[str]) -> list[StageReport]:
    """Take in files together, and each topic up to where it ends now."""
    from downriver.lake.bronze.kafka import SCHEME
    from downriver.lake.stream import StreamSchedule, run_stream

    files = [source for source in sources if not source.startswith(SCHEME)]
    stages = [lake.ingest(files)] if files else []
    for topic in sources:
        if topic.startswith(SCHEME):
            once = StreamSchedule(once=True)
            stages.append(run_stream(lake, [topic], once, threading.Event(), build=False))
    return stages


def _ingest_log(lake: Lake, location: str) -> StageReport:
    from downriver.service import Lineage

    with Lineage.open(location, create=False) as lineage:
        return lake.ingest_log(lineage.store)


def build(
    full: Annotated[
        bool, typer.Option("--full", help="Fold every event again, not only new ones.")
    ] = False,
    as_of: Annotated[
        str | None,
        typer.Option("--as-of", metavar="T", help="Of the events up to this time, beside."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    table_format: FormatOption = "parquet",
    json: JsonOption = False,
) -> None:
    """Fold new events into the facts, and make the silver and gold tables from them.

    With --as-of, tables of the events up to a time are made, which leaves the current ones alone;
    `lake query --at` and `lake diff` answer from them.
    """
    from downriver.lake.storage.versions import parse_time

    until = None if as_of is None else parse_time(as_of)
    with open_lake(lake, SparkChoice(master, packages, table_format), quiet=json) as opened:
        stages = opened.build(full=full) if until is None else opened.build_as_of(until)
    if json:
        print_json(stages)
    elif not stages:
        out.print("nothing new since the last build")


def status(lake: LakeOption = None, json: JsonOption = False) -> None:
    """Say what the lake holds. Starts no Spark."""
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.versions import read_current_version

    folder = Folder(lake_location(lake))
    found = _status(folder.location, read_current_version(folder))
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


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL over the lake's tables.")],
    limit: LimitOption = 100,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="POINT", help="Of this version, or as of this time."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    json: JsonOption = False,
) -> None:
    """Answer a query. Tables go by layer and name: gold_edges, silver_runs, bronze_quarantine."""
    from downriver.lake.runner import answer_query

    with open_lake(lake, SparkChoice(master, packages), quiet=True) as opened:
        answer = answer_query(opened.query(sql, at), limit)
    if json:
        print_json(answer)
        return
    show_answer(answer)


def run_stream(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SRC…", help="Files or directories of events, URLs, or kafka://host/topic."
        ),
    ],
    trigger: Annotated[
        str, typer.Option("--trigger", metavar="TIME", help="How often: 30s, 5m, 1h.")
    ] = "30s",
    build_every: Annotated[
        str, typer.Option("--build-every", metavar="TIME", help="Build at most this often.")
    ] = "0s",
    once: Annotated[
        bool, typer.Option("--once", help="Take in all there is, build, and stop.")
    ] = False,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    table_format: FormatOption = "parquet",
) -> None:
    """Take in what comes and build, again and again. Ctrl-C stops it after the batch it is in.

    Where it stands is kept in the lake, so a restart, after a crash too, loses and doubles nothing.
    """
    every = _parse_interval("--trigger", trigger)
    building = _parse_interval("--build-every", build_every)
    choice = SparkChoice(master, packages, table_format)
    with open_lake(lake, choice, quiet=False) as opened, _until_interrupted() as stopped:
        from downriver.lake.stream import StreamSchedule, run_stream

        run_stream(opened, sources, StreamSchedule(every, building, once), stopped, build=True)


def _parse_interval(option: str, text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})(s|m|h)", text)
    if match is None:
        raise InvalidRequestError(option, f"{text!r} is not a time such as 30s, 5m or 1h")
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


def _status(place: str, snapshot: LakeVersion) -> LakeStatus:
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
