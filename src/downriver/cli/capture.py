"""`downriver capture`: lineage from SQL files, dbt's target directory and source code."""

from __future__ import annotations

import codecs
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

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
from downriver.service import DBT_NAMESPACE, DEFAULT_NAMESPACE, Lineage
from downriver.service.capture import SqlCapture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.dbt import DbtCapture
    from downriver.capture.dbt.project import DbtBlindSpot
    from downriver.capture.scan import ScanResult
    from downriver.capture.sql import ColumnEdge, SqlLineage
    from downriver.openlineage.facets.custom import BlindSpotEntry


NamespaceOption = Annotated[
    str,
    typer.Option(
        "--namespace",
        metavar="NAMESPACE",
        help="The namespace of tables that are not in the catalog.",
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Show the lineage without storing it.")
]
DialectOption = Annotated[
    str | None,
    typer.Option("--dialect", metavar="DIALECT", help="The SQL dialect. By default it is guessed."),
]
_SHOWN = 20  # blind spots and unread files of a project


def sql(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="SQL files, or directories that contain them. `-` reads standard input.",
        ),
    ],
    dialect: DialectOption = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            metavar="FILE",
            help='Read schemas from a JSON file: {"table": ["column", ...]}.',
        ),
    ] = None,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", metavar="NAME", help="The name of the job. Default: the name of the file."
        ),
    ] = None,
    namespace: NamespaceOption = DEFAULT_NAMESPACE,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read table and column lineage from SQL files, show it and store it.

    Examples:
      downriver capture sql models --dialect snowflake
      downriver capture sql query.sql --dry-run
    """
    scripts = list(_scripts(files))
    if job is not None and len(scripts) > 1:
        raise InvalidRequestError("--job", f"names one job, but there are {len(scripts)} files")
    known = _read_schema(schema) if schema is not None else None
    captures: list[tuple[str, SqlCapture]] = []
    with Lineage.open(store) as lineage, progress_bar("files") as bar:
        task = bar.add_task("Reading", total=len(scripts))
        for script in scripts:
            capture = lineage.capture.sql(
                script.text,
                dialect=dialect,
                schema=known,
                job=job or script.job,
                namespace=namespace,
                path=script.path,
                dry_run=dry_run,
            )
            captures.append((script.path or "-", capture))
            bar.advance(task)
    if json:
        print_json([{"file": name, **msgspec.to_builtins(c)} for name, c in captures])
        return
    for name, capture in captures:
        _show_script(name, capture)


class _Script(NamedTuple):
    text: str
    path: str = ""
    job: str | None = None


def _scripts(names: list[str]) -> Iterator[_Script]:
    """Yield the scripts to read. The caller reads all of them before it stores any."""
    for name in names:
        path = Path(name)
        if name == "-":
            yield _Script(_decode(sys.stdin.buffer.read()))
        elif path.is_dir():
            yield from _scripts_in(path)
        else:
            yield _read_script(path, path.stem)


def _scripts_in(folder: Path) -> Iterator[_Script]:
    """Yield the scripts of a directory. Their jobs are named by their relative paths."""
    has_scripts = False
    for path in sorted(folder.rglob("*.sql")):
        place = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in place.parts):
            yield _read_script(path, place.with_suffix("").as_posix())
            has_scripts = True
    if not has_scripts:
        raise InvalidRequestError("FILE", f"{folder}: no .sql files in this directory")


def _read_script(path: Path, job: str) -> _Script:
    try:
        return _Script(_decode(path.read_bytes()), str(path), job)
    except FileNotFoundError as exc:
        raise InvalidRequestError("FILE", f"{path}: no such file or directory") from exc
    except OSError as exc:
        raise InvalidRequestError("FILE", f"{path}: {exc.strerror}") from exc


def _decode(content: bytes) -> str:
    """Return a script's text. Some Windows tools save SQL as UTF-16."""
    utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")


def _read_schema(path: Path) -> dict[str, list[str]]:
    try:
        content = msgspec.json.decode(path.read_bytes(), type=dict[str, list[str] | dict[str, str]])
    except OSError as exc:
        raise InvalidRequestError("--schema", f"{path}: {exc.strerror}") from exc
    except msgspec.DecodeError as exc:
        raise InvalidRequestError("--schema", f"{path}: {exc}") from exc
    return {table: list(columns) for table, columns in content.items()}


def _show_script(name: str, capture: SqlCapture) -> None:
    lineage = capture.lineage
    guessed = " (guessed)" if lineage.dialect_guessed else ""
    dialect = f"{lineage.dialect or 'generic'}{guessed}"
    statements = counted(len(lineage.statements), "statement")
    out.print(f"[bold]{escape(name)}[/] [dim]{statements} · {dialect}[/]")
    if lineage.column_edges or lineage.dataset_edges:
        out.print("\n".join(_edge_lines(lineage)))
    for spot in lineage.blind_spots:
        place = f"line {spot.line}" + (f", column {spot.column}" if spot.column else "")
        err.print(f"  [yellow]?[/] {place}: {escape(spot.kind)}: {escape(spot.message)}")
    written = ", ".join(lineage.outputs) or "nothing"
    done = "registered as" if capture.registered else "not registered:"
    out.print(f"  writes {escape(written)} · {done} {escape(capture.job)}")


def _edge_lines(lineage: SqlLineage) -> Iterator[str]:
    """Yield the edges in aligned columns. Names are never cut."""
    rows = [
        (_target(edge), str(edge.source), _how(edge))
        for edge in [*lineage.column_edges, *lineage.dataset_edges]
    ]
    widths = [max(len(row[at]) for row in rows) for at in (0, 1)]
    for target, source, how in sorted(rows):
        left, right = escape(target.ljust(widths[0])), escape(source.ljust(widths[1]))
        yield f"  {left} [dim]←[/] {right} {how}"


def _target(edge: ColumnEdge) -> str:
    return edge.target.column if not edge.target.table else str(edge.target)


def _how(edge: ColumnEdge) -> str:
    words = [f"[magenta]{edge.subtype}[/]" if edge.type == "DIRECT" else f"[dim]{edge.subtype}[/]"]
    if edge.masking:
        words.append("masked")
    if edge.resolution != "exact":
        words.append(f"[yellow]{edge.resolution}[/]")
    return " ".join(words)


def dbt(
    target: Annotated[
        Path,
        typer.Argument(
            metavar="TARGET_DIR", help="The target directory of dbt, or a manifest.json file."
        ),
    ],
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            metavar="NAMESPACE",
            help="The namespace of the tables, such as postgres://host:5432. Default: that of "
            "known tables with the same names, else ADAPTER://PROJECT.",
        ),
    ] = None,
    job_namespace: Annotated[
        str,
        typer.Option("--job-namespace", metavar="NAMESPACE", help="The namespace of the jobs."),
    ] = DBT_NAMESPACE,
    project_dir: Annotated[
        Path | None,
        typer.Option(
            "--project-dir",
            metavar="DIR",
            help="The dbt project, which has the line numbers. Default: the parent of TARGET_DIR.",
        ),
    ] = None,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read models, sources, tests, exposures and metrics from dbt's target directory.

    dbt does not have to be installed.

    Examples:
      downriver capture dbt target --namespace snowflake://ORGANISATION-ACCOUNT
    """
    with Lineage.open(store) as lineage, progress_bar("models") as bar:
        task = bar.add_task("Reading", total=None)
        capture = lineage.capture.dbt(
            target,
            namespace=namespace,
            job_namespace=job_namespace,
            project_dir=project_dir or _project_of(target),
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    show_dbt(capture, registered=not dry_run, json=json)


def show_dbt(capture: DbtCapture, *, registered: bool, json: bool) -> None:
    """Print what was read from a dbt project."""
    if json:
        print_json(_as_json(capture, registered=registered))
    else:
        _show_project(capture, registered=registered)


def _project_of(target: Path) -> Path:
    folder = target if target.is_dir() else target.parent
    return folder.resolve().parent


def _as_json(capture: DbtCapture, *, registered: bool) -> dict[str, Any]:
    summary: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(capture, events=[]))
    summary["events"] = len(capture.events)
    return {**summary, "registered": registered}


def _show_project(capture: DbtCapture, *, registered: bool) -> None:
    version = f"dbt {capture.dbt_version}" if capture.dbt_version else "dbt"
    out.print(
        f"[bold]{escape(capture.project)}[/] [dim]{escape(version)} · manifest "
        f"v{capture.manifest_version} · {escape(capture.adapter or 'adapter unknown')}[/]"
    )
    resources = ", ".join(
        f"{number} {_render_kind(kind, number)}" for kind, number in capture.counts.items()
    )
    out.print(f"  {resources or 'nothing'}")
    _show_spots([(f"{spot.path}:{spot.line}", spot) for spot in capture.blind_spots])
    done = "registered" if registered else "not registered"
    out.print(
        f"  {counted(capture.column_edges, 'column edge')} · "
        f"{counted(len(capture.blind_spots), 'blind spot')} · "
        f"{counted(len(capture.events), 'event')} {done} · tables in {escape(capture.namespace)}"
    )


def _render_kind(kind: str, number: int) -> str:
    words = kind.replace("_", " ")
    if number != 1:
        return words
    return words[:-3] + "y" if words.endswith("ries") else words.removesuffix("s")


def scan(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A repository, folder or file.")],
    dialect: DialectOption = None,
    namespace: NamespaceOption = DEFAULT_NAMESPACE,
    dry_run: DryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read SQL, PySpark, pandas, Airflow, notebooks, dbt and Feast files without running them.

    Code that cannot be read is reported by file and line, and the rest is stored. The exit code is
    then 1.

    Examples:
      downriver capture scan .
      downriver capture scan dags --dry-run
    """
    with Lineage.open(store) as lineage, progress_bar("files") as bar:
        task = bar.add_task("Reading", total=None)
        result = lineage.capture.scan(
            path,
            dialect=dialect,
            namespace=namespace,
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        print_json({**msgspec.to_builtins(result), "registered": not dry_run})
    else:
        _show_scan(result, registered=not dry_run)
    if result.unread:
        raise typer.Exit(1)


def _show_scan(result: ScanResult, *, registered: bool) -> None:
    for job in result.jobs:
        place = f"{job.path}:{job.line}"
        out.print(f"[bold]{escape(job.id.name)}[/] [dim]{job.kind.lower()} · {escape(place)}[/]")
        if job.inputs:
            out.print(f"  reads  {escape(', '.join(d.name for d in job.inputs))}")
        if job.outputs:
            out.print(f"  writes {escape(', '.join(d.name for d in job.outputs))}")
    spots = [(f"{job.path}:{spot.line}", spot) for job in result.jobs for spot in job.spots]
    _show_spots(spots)
    for unread in result.unread[:_SHOWN]:
        reason = f"{unread.reason.value.replace('_', ' ')}: {unread.detail}"
        err.print(f"[red]{escape(unread.location)}[/]: {escape(reason)}")
    out.print(_summary(result, len(spots), registered=registered))


def _show_spots(spots: Sequence[tuple[str, BlindSpotEntry | DbtBlindSpot]]) -> None:
    """Show the first blind spots, each with its place in a file."""
    for place, spot in spots[:_SHOWN]:
        err.print(f"  [yellow]?[/] {escape(place)}: {escape(spot.kind)}: {escape(spot.message)}")
    if len(spots) > _SHOWN:
        err.print(f"  [yellow]?[/] … and {len(spots) - _SHOWN} more; --json lists them all")


def _summary(result: ScanResult, spots: int, *, registered: bool) -> str:
    kinds = Counter(job.integration.lower() for job in result.jobs)
    by_kind = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    edges = len({edge for job in result.jobs for edge in job.edges})
    references = sum(len(job.references) for job in result.jobs)
    words = [
        counted(result.files, "file"),
        f"{counted(len(result.jobs), 'job')} ({by_kind})" if result.jobs else "no jobs",
        counted(edges, "column edge"),
        counted(references, "reference"),
        counted(spots, "blind spot"),
        "registered" if registered else "not registered",
    ]
    return " · ".join(words)
