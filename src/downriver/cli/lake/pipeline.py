"""`downriver lake ingest`, `build`, `stream`, `query` and `status`."""

from __future__ import annotations

import re
import signal
import threading
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer
from rich.table import Table

from downriver import settings
from downriver.cli.output import JsonOption, err, escape, out, print_json
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.lake.runner import Lake, QueryAnswer
    from downriver.lake.stages import StageReport
    from downriver.lake.storage.tables import LakeVersion

_SOURCES = typer.Argument(
    metavar="SOURCE", help="Files of events, directories, URLs, or kafka://host/topic."
)


class LakeStatus(msgspec.Struct):
    """The content of a lake."""

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
    sources: Annotated[list[str] | None, _SOURCES] = None,
    from_store: Annotated[
        str | None,
        typer.Option("--from-store", metavar="STORE", help="Also ingest the log of this store."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    table_format: FormatOption = "parquet",
    json: JsonOption = False,
) -> None:
    """Add new events to the lake from files: JSON lines, arrays or single documents, plain or gzip.

    Records that cannot be read are stored in a quarantine table with the reason, and the exit code
    is then 1.
    """
    if not sources and from_store is None:
        raise InvalidRequestError(
            "SOURCE", "give files or directories, or a store with --from-store"
        )
    spark = SparkChoice(master, packages, table_format, conf=parse_conf(conf))
    stages = None if from_store else _ingest_few(lake, sources or [], spark, quiet=json)
    if stages is None:
        with open_lake(lake, spark, quiet=json, adds=True) as opened:
            stages = _ingest_sources(opened, sources or [])
            if from_store is not None:
                stages.append(_ingest_log(opened, from_store))
    if json:
        print_json(stages)
    if any(stage.rejected for stage in stages):
        raise typer.Exit(1)


def _ingest_few(
    location: str | None, sources: list[str], choice: SparkChoice, *, quiet: bool
) -> list[StageReport] | None:
    """Ingest files without starting Spark, if their new events are few. Else return None."""
    from downriver.lake.bronze.event_files import TOPIC
    from downriver.lake.bronze.few_events import ingest_few
    from downriver.lake.session import is_local
    from downriver.lake.stages import Stages
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import PARQUET

    if not is_local(choice.master) or choice.table_format != PARQUET:
        return None
    if any(source.startswith(TOPIC) for source in sources):
        return None
    stages = Stages(report=(lambda stage: None) if quiet else _show_stage)
    stage = ingest_few(Folder(lake_location(location)), sources, stages)
    return None if stage is None else [stage]


def _ingest_sources(lake: Lake, sources: list[str]) -> list[StageReport]:
    """Ingest all files in one batch, and each topic up to its current end."""
    from downriver.lake.bronze.event_files import TOPIC
    from downriver.lake.stream import StreamSchedule, run_stream

    files = [source for source in sources if not source.startswith(TOPIC)]
    stages = [lake.ingest(files)] if files else []
    for topic in sources:
        if topic.startswith(TOPIC):
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
        typer.Option("--as-of", metavar="TIME", help="Build only from the events up to this time."),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    table_format: FormatOption = "parquet",
    json: JsonOption = False,
) -> None:
    """Fold new events into facts, and build the silver and gold tables.

    With --as-of, the tables are built separately from the current ones. `lake query --at` and
    `lake diff` read them.
    """
    from downriver.lake.storage.tables import parse_time

    until = None if as_of is None else parse_time(as_of)
    with open_lake(
        lake, SparkChoice(master, packages, table_format, conf=parse_conf(conf)), quiet=json
    ) as opened:
        stages = opened.build(full=full) if until is None else opened.build_as_of(until)
    if json:
        print_json(stages)
    elif not stages:
        out.print("no new events since the last build")


def status(lake: LakeOption = None, json: JsonOption = False) -> None:
    """Show the version, batches and tables of the lake, without starting Spark."""
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import read_current_version

    folder = Folder(lake_location(lake))
    report = _status(folder.location, read_current_version(folder))
    if json:
        print_json(report)
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name in ("lake", "version", "made_at", "batches", "unfolded"):
        table.add_row(name.replace("_", " "), escape(str(getattr(report, name))))
    for name in ("events", "quarantined", "duplicates"):
        table.add_row(name, f"{getattr(report, name):,}")
    for name, rows in report.tables.items():
        table.add_row(name, f"{rows:,}")
    out.print(table)


def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL over the lake's tables.")],
    limit: LimitOption = 100,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="VERSION|TIME", help="Query this version, or the state at this time."
        ),
    ] = None,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    json: JsonOption = False,
) -> None:
    """Run a SQL query over the tables of the lake.

    A table is named by layer and name: gold_edges, silver_runs, bronze_quarantine."""
    from downriver.lake.runner import answer_query

    with open_lake(
        lake, SparkChoice(master, packages, conf=parse_conf(conf)), quiet=True
    ) as opened:
        answer = answer_query(opened.query(sql, at), limit)
    if json:
        print_json(answer)
        return
    show_answer(answer)


def run_stream(
    sources: Annotated[list[str], _SOURCES],
    trigger: Annotated[
        str,
        typer.Option(
            "--trigger", metavar="PERIOD", help="Ingest this often, such as 30s, 5m or 1h."
        ),
    ] = "30s",
    build_every: Annotated[
        str,
        typer.Option("--build-every", metavar="PERIOD", help="Build at most this often."),
    ] = "0s",
    once: Annotated[
        bool, typer.Option("--once", help="Ingest everything available, build, and stop.")
    ] = False,
    lake: LakeOption = None,
    master: MasterOption = None,
    packages: PackagesOption = None,
    conf: ConfOption = None,
    table_format: FormatOption = "parquet",
) -> None:
    """Add events and build tables continuously. Ctrl-C stops after the current batch.

    Progress is stored in the lake: after a restart or a crash, no event is lost or counted twice.
    """
    every = _parse_interval("--trigger", trigger)
    building = _parse_interval("--build-every", build_every)
    choice = SparkChoice(master, packages, table_format, conf=parse_conf(conf))
    with open_lake(lake, choice, quiet=False, adds=True) as opened, _until_interrupted() as stopped:
        from downriver.lake.stream import StreamSchedule, run_stream

        run_stream(opened, sources, StreamSchedule(every, building, once), stopped, build=True)


def _parse_interval(option: str, text: str) -> int:
    match = re.fullmatch(r"(\d{1,6})(s|m|h)", text)
    if match is None:
        raise InvalidRequestError(option, f"{text!r} is not a duration such as 30s, 5m or 1h")
    return int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Set an event on Ctrl-C and SIGTERM, so that the current batch is completed."""
    stopped = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: stopped.set()) for number in signals]
    try:
        yield stopped
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _status(location: str, snapshot: LakeVersion) -> LakeStatus:
    return LakeStatus(
        lake=location,
        version=snapshot.version,
        made_at=snapshot.made_at,
        batches=len(snapshot.batches),
        unfolded=len(snapshot.unfolded),
        events=sum(batch.events for batch in snapshot.batches),
        quarantined=sum(batch.quarantined for batch in snapshot.batches),
        duplicates=sum(batch.duplicates for batch in snapshot.batches),
        tables={name: stored.rows for name, stored in sorted(snapshot.tables.items())},
    )


LakeOption = Annotated[
    str | None,
    typer.Option(
        "--lake",
        metavar="LAKE",
        help="The directory or URL of the lake. Default: DOWNRIVER_LAKE, or .downriver/lake.",
    ),
]
MasterOption = Annotated[
    str | None,
    typer.Option(
        "--master", metavar="URL", help="The Spark master. Default: all cores of this machine."
    ),
]
PackagesOption = Annotated[
    str | None,
    typer.Option(
        "--packages",
        metavar="COORDINATES",
        help="Add these Maven packages to Spark, separated by commas.",
    ),
]
ConfOption = Annotated[
    list[str] | None,
    typer.Option(
        "--conf",
        metavar="KEY=VALUE",
        help="A setting of Spark, such as spark.driver.memory=8g. May be repeated.",
    ),
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="Show at most N rows.")
]
FormatOption = Annotated[
    str,
    typer.Option("--format", metavar="FORMAT", help="The format of new tables: parquet or delta."),
]


class SparkChoice(NamedTuple):
    """The Spark master, extra packages and settings, and the format of new tables."""

    master: str | None = None
    packages: str | None = None
    table_format: str = "parquet"
    conf: Mapping[str, str] = MappingProxyType({})


def parse_conf(options: list[str] | None) -> dict[str, str]:
    """Parse the settings of `--conf`."""
    pairs = [option.partition("=") for option in options or ()]
    for key, equals, _ in pairs:
        if not (key.startswith("spark.") and equals):
            raise InvalidRequestError(
                "--conf", f"{key!r} is not a setting such as spark.executor.memory=4g"
            )
    return {key: value for key, _, value in pairs}


@contextmanager
def open_lake(
    location: str | None, choice: SparkChoice, *, quiet: bool, adds: bool = False
) -> Iterator[Lake]:
    """Open the lake on a Spark session, and show its stages.

    With `adds`, an unknown number of events will be added.
    """
    from downriver.lake.session import is_little_work, running_session
    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import DELTA, read_current_version

    version = read_current_version(Folder(lake_location(location)), create=True)
    session = running_session(
        choice.master,
        choice.packages,
        delta=DELTA in {choice.table_format, *version.formats},
        short=not adds and is_little_work(version),
        conf=choice.conf,
    )
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
