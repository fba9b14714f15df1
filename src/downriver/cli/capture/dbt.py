"""`downriver capture dbt`: lineage from the target directory of dbt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from downriver.cli.output import JsonOption, StoreOption, err, escape, out, print_json, progress_bar
from downriver.service import DBT_NAMESPACE, Lineage

if TYPE_CHECKING:
    from downriver.capture.dbt import DbtCapture

_SPOTS_SHOWN = 20


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
            help="The OpenLineage namespace of the tables, such as postgres://host:5432.",
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
            help="The dbt project, read for line numbers. By default the parent of TARGET_DIR.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the lineage without storing it.")
    ] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Read models, sources, tests, exposures and metrics with column lineage. dbt is not needed."""
    with Lineage.open(store) as lineage, progress_bar("models") as bar:
        task = bar.add_task("Reading", total=None)
        found = lineage.capture.dbt(
            target,
            namespace=namespace,
            job_namespace=job_namespace,
            project_dir=project_dir or _project_of(target),
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if json:
        print_json(_as_json(found, registered=not dry_run))
    else:
        _show(found, registered=not dry_run)


def _project_of(target: Path) -> Path:
    folder = target if target.is_dir() else target.parent
    return folder.resolve().parent


def _as_json(found: DbtCapture, *, registered: bool) -> dict[str, Any]:
    summary: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(found, events=[]))
    summary["events"] = len(found.events)
    return {**summary, "registered": registered}


def _show(found: DbtCapture, *, registered: bool) -> None:
    version = f"dbt {found.dbt_version}" if found.dbt_version else "dbt"
    out.print(
        f"[bold]{escape(found.project)}[/] [dim]{escape(version)} · manifest "
        f"v{found.manifest_version} · {escape(found.adapter or 'adapter unknown')}[/]"
    )
    counted = ", ".join(
        f"{number} {_counted(kind, number)}" for kind, number in found.counts.items()
    )
    out.print(f"  {counted or 'nothing'}")
    for spot in found.blind_spots[:_SPOTS_SHOWN]:
        where = f"{spot.path}:{spot.line}"
        err.print(f"  [yellow]?[/] {escape(where)}: {escape(spot.kind)}: {escape(spot.message)}")
    more = len(found.blind_spots) - _SPOTS_SHOWN
    if more > 0:
        err.print(f"  [yellow]?[/] … and {more} more; --json lists them all")
    done = "registered" if registered else "not registered"
    out.print(
        f"  {found.column_edges} column edges · {len(found.blind_spots)} blind spots · "
        f"{len(found.events)} events {done} · tables in {escape(found.namespace)}"
    )


def _counted(kind: str, number: int) -> str:
    words = kind.replace("_", " ")
    if number != 1:
        return words
    return words[:-3] + "y" if words.endswith("ries") else words.removesuffix("s")
