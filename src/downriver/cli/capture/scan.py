"""`downriver capture scan`: lineage from source code, without running it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from downriver.cli.output import JsonOption, StoreOption, err, escape, out, print_json, progress_bar
from downriver.service import DEFAULT_NAMESPACE, Lineage

if TYPE_CHECKING:
    from downriver.capture.scan import ScanResult

_SHOWN = 20


def scan(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A repository, folder or file.")],
    dialect: Annotated[
        str | None,
        typer.Option(
            "--dialect", metavar="DIALECT", help="The SQL dialect. By default it is guessed."
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(
            "--namespace", metavar="NAMESPACE", help="The namespace of tables not in the catalog."
        ),
    ] = DEFAULT_NAMESPACE,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the lineage without storing it.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read SQL, PySpark, pandas, Airflow, notebooks, dbt and Feast files without running them.

    Code that cannot be read is reported by file and line, and the rest is stored. The exit code is
    then 1.
    """
    with Lineage.open(store) as lineage, progress_bar("files") as bar:
        task = bar.add_task("Reading", total=None)
        found = lineage.capture.scan(
            path,
            dialect=dialect,
            namespace=namespace,
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        print_json({**msgspec.to_builtins(found), "registered": not dry_run})
    else:
        _show(found, registered=not dry_run)
    if found.unread:
        raise typer.Exit(1)


def _show(found: ScanResult, *, registered: bool) -> None:
    for job in found.jobs:
        place = f"{job.path}:{job.line}"
        out.print(f"[bold]{escape(job.id.name)}[/] [dim]{job.kind.lower()} · {escape(place)}[/]")
        if job.inputs:
            out.print(f"  reads  {escape(', '.join(d.name for d in job.inputs))}")
        if job.outputs:
            out.print(f"  writes {escape(', '.join(d.name for d in job.outputs))}")
    spots = [(job.path, spot) for job in found.jobs for spot in job.spots]
    for path, spot in spots[:_SHOWN]:
        where = escape(f"{path}:{spot.line}")
        err.print(f"  [yellow]?[/] {where}: {escape(spot.kind)}: {escape(spot.message)}")
    if len(spots) > _SHOWN:
        err.print(f"  [yellow]?[/] … and {len(spots) - _SHOWN} more; --json lists them all")
    for unread in found.unread[:_SHOWN]:
        reason = f"{unread.reason.value.replace('_', ' ')}: {unread.detail}"
        err.print(f"[red]{escape(unread.location)}[/]: {escape(reason)}")
    out.print(_summary(found, len(spots), registered=registered))


def _summary(found: ScanResult, spots: int, *, registered: bool) -> str:
    kinds = Counter(job.integration.lower() for job in found.jobs)
    counted = ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items()))
    edges = len({edge for job in found.jobs for edge in job.edges})
    references = sum(len(job.references) for job in found.jobs)
    words = [
        f"{found.files} files",
        f"{len(found.jobs)} jobs ({counted})" if found.jobs else "no jobs",
        f"{edges} column edges",
        f"{references} references",
        f"{spots} blind spots",
        "registered" if registered else "not registered",
    ]
    return " · ".join(words)
