"""`downriver versions`: the versions of a dataset, the runs that wrote and read each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
)
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.views.versions import DatasetVersion, DatasetVersions, VersionReader


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
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of a dataset or model: the job that wrote each, and what read it."""
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.versions(entity, version=version, before=before, limit=limit)
    if json:
        print_json(answer)
    else:
        _show(answer, full_names=full_names)


def _show(answer: DatasetVersions, *, full_names: bool) -> None:
    names = DisplayNames(_ids(answer), full=full_names)
    names.print_heading()
    out.print(f"[bold]{names[answer.dataset]}[/]")
    for version in answer.versions:
        out.print("\n".join(_lines(version, names)))
    if answer.omitted_count:
        older = counted(answer.omitted_count, "older version")
        out.print(f"… and {older}; --limit shows more")
    if not answer.versions:
        out.print("  no version is known: no event contained a version facet of this dataset")
    if answer.rollback_to is not None:
        when = f" before {answer.before}" if answer.before else ""
        out.print(f"last good version{when}: [bold]{escape(answer.rollback_to)}[/]")
    elif answer.before is not None:
        out.print(f"no good version before {answer.before} is known")


def _ids(answer: DatasetVersions) -> Iterator[str]:
    yield answer.dataset
    for version in answer.versions:
        if version.written_by is not None:
            yield version.written_by
        for reader in version.read_by:
            yield reader.job
            yield from (output.dataset for output in reader.outputs)


def _lines(version: DatasetVersion, names: DisplayNames) -> Iterator[str]:
    details = [] if version.rows is None else [counted(version.rows, "row")]
    details += [escape(label) for label in version.labels]
    if version.operation:
        details.insert(0, escape(version.operation))
    end = f" · {' · '.join(details)}" if details else ""
    yield f"  [bold]{escape(version.version)}[/]  {version.at}{end}"
    if version.written_by is not None:
        yield f"    written by {names.label(version.written_by)}"
    changes = [f"+{name}" for name in version.columns_added]
    changes += [f"-{name}" for name in version.columns_removed]
    changes += [f"~{name}" for name in version.columns_retyped]
    if version.columns_changed:
        yield f"    values changed: {escape(', '.join(version.columns_changed))}"
    if changes:
        yield f"    columns {escape(' '.join(changes))}"
    for reader in version.read_by:
        yield f"    read by {names.label(reader.job)}{_describe_outputs(reader, names)}"
    for reason in version.suspect:
        yield f"    [yellow]![/] {escape(reason)}"


def _describe_outputs(reader: VersionReader, names: DisplayNames) -> str:
    """Return the outputs of a run that read the version: ` → churn version 3 (champion)`."""
    outputs = []
    for output in reader.outputs:
        version = f" version {output.version}" if output.version else ""
        labels = f" ({', '.join(output.labels)})" if output.labels else ""
        outputs.append(f"{names[output.dataset]}{escape(version + labels)}")
    return f" → {', '.join(outputs)}" if outputs else ""
