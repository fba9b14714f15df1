"""`downriver versions`: the versions of a dataset, the runs that wrote and read each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.systems.versions import DatasetVersion, DatasetVersions, VersionReader


def versions(
    entity: Annotated[str, typer.Argument(metavar="DATASET", help="The dataset or model.")],
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="Show only this version."),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(
            "--before",
            metavar="TIME",
            help="Print the last good version before this time, such as the start of an incident.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N versions.")
    ] = 20,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of a dataset or model: the job that wrote each, and what read it."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.versions(entity, version=version, before=before, limit=limit)
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: DatasetVersions) -> None:
    out.print(f"[bold]{escape(found.dataset)}[/]")
    for version in found.versions:
        out.print("\n".join(_lines(version)))
    if found.omitted_count:
        out.print(f"… and {found.omitted_count} older versions; --limit shows more")
    if not found.versions:
        out.print("  no version is known: no event contained a version facet of this dataset")
    if found.rollback_to is not None:
        when = f" before {found.before}" if found.before else ""
        out.print(f"last good version{when}: [bold]{escape(found.rollback_to)}[/]")
    elif found.before is not None:
        out.print(f"no good version before {found.before} is known")


def _lines(version: DatasetVersion) -> Iterator[str]:
    details = [] if version.rows is None else [f"{version.rows} row{'s'[: version.rows != 1]}"]
    details += [escape(label) for label in version.labels]
    if version.operation:
        details.insert(0, escape(version.operation))
    end = f" · {' · '.join(details)}" if details else ""
    yield f"  [bold]{escape(version.version)}[/]  {version.at}{end}"
    if version.written_by is not None:
        yield f"    written by {escape(version.written_by)}"
    changes = [f"+{name}" for name in version.columns_added]
    changes += [f"-{name}" for name in version.columns_removed]
    changes += [f"~{name}" for name in version.columns_retyped]
    if changes:
        yield f"    columns {escape(' '.join(changes))}"
    for reader in version.read_by:
        yield f"    read by {escape(reader.job)}{escape(_made(reader))}"
    for reason in version.suspect:
        yield f"    [yellow]![/] {escape(reason)}"


def _made(reader: VersionReader) -> str:
    """Return the output of a run that read the version: ` → model:churn version 3 (champion)`."""
    made = []
    for output in reader.outputs:
        name = output.dataset.removeprefix("dataset:")
        version = f" version {output.version}" if output.version else ""
        labels = f" ({', '.join(output.labels)})" if output.labels else ""
        made.append(f"{name}{version}{labels}")
    return f" → {', '.join(made)}" if made else ""
