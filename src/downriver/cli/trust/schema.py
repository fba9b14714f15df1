"""`downriver schema`: versions of a dataset's schema and their compatibility."""

from __future__ import annotations

import sys
from pathlib import Path
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
from downriver.govern.schemas import read_schema_file
from downriver.model.trust.schemas import CompatibilityMode
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.trust.schemas import SchemaCheck

DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset: a name or an id.")
]


def history(
    dataset: DatasetArgument,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List the versions of a dataset's schema, the oldest first."""
    with Lineage.open(store, create=False) as lineage:
        versions = lineage.schemas(dataset)
    if json:
        print_json(versions)
        return
    out.print(_heading(versions.dataset, full_names=full_names))
    for each in versions.versions:
        version = each.version
        current = " [green]current[/]" if each.current else ""
        columns = counted(len(version.columns), "column")
        out.print(f"version {each.number}{current}  {version.at} to {version.last_seen}, {columns}")
        for name in version.added:
            out.print(f"  [green]+[/] {escape(name)}")
        for name in version.removed:
            out.print(f"  [red]-[/] {escape(name)}")
        for column in version.retyped:
            out.print(f"  ~ {escape(f'{column.name} {column.old} -> {column.new}')}")


def diff(
    dataset: DatasetArgument,
    old: Annotated[
        int | None,
        typer.Option(
            "--old", metavar="N", help="The earlier version. Default: the version before --new."
        ),
    ] = None,
    new: Annotated[
        int | None,
        typer.Option("--new", metavar="N", help="The later version. Default: the current version."),
    ] = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the columns that differ between two versions of a dataset's schema."""
    with Lineage.open(store, create=False) as lineage:
        schema_diff = lineage.schemas.diff(dataset, old=old, new=new)
    if json:
        print_json(schema_diff)
        return
    dataset_name = _heading(schema_diff.dataset, full_names=full_names)
    out.print(f"{dataset_name}: version {schema_diff.old} to {schema_diff.new}")
    for column in schema_diff.added:
        out.print(f"  [green]+[/] {escape(f'{column.name} {column.type}')}")
    for column in schema_diff.removed:
        out.print(f"  [red]-[/] {escape(f'{column.name} {column.type}')}")
    for change in schema_diff.retyped:
        out.print(f"  ~ {escape(f'{change.name} {change.old} -> {change.new}')}")
    if not (schema_diff.added or schema_diff.removed or schema_diff.retyped):
        out.print("  no difference")


def check(
    dataset: DatasetArgument,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="Compare the current version with the schema in this file: Avro (.avsc), JSON "
            "Schema (.json) or protobuf (.proto). Default: compare it with the version before.",
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option(
            "--message", metavar="NAME", help="With a protobuf file: the message to compare."
        ),
    ] = None,
    mode: Annotated[
        CompatibilityMode | None,
        typer.Option(
            "--mode",
            help="The kind of compatibility. Default: that of the dataset's contract, or backward.",
        ),
    ] = None,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check that a schema is compatible with the version before it, or with a schema in a file.

    backward: readers of the new schema can read old data. forward: readers of the old schema can
    read new data. full: both. The exit code is 1 if it is not compatible. Columns whose type is
    unknown are listed, and the result is then unknown instead of compatible.
    """
    declared = None if against is None else read_schema_file(against, message=message)
    with Lineage.open(store, create=False) as lineage:
        schema_check = lineage.schemas.check(
            dataset, mode=mode, against=declared, place=str(against or "")
        )
    if json:
        print_json(schema_check)
    else:
        verdict = _verdict(schema_check)
        dataset_name = _heading(schema_check.dataset, full_names=full_names)
        compared = escape(f"{schema_check.old} to {schema_check.new}")
        out.print(f"{verdict} ({schema_check.mode.value}) {dataset_name}: {compared}")
        for each in schema_check.incompatibilities:
            out.print(f"  {each.direction:<8} {escape(f'{each.column}: {each.message}')}")
        for spot in schema_check.blind_spots:
            out.print(f"  [yellow]unknown[/]  {escape(spot.message)}")
    sys.exit(int(not schema_check.compatible))


def _verdict(schema_check: SchemaCheck) -> str:
    if not schema_check.compatible:
        return "[bold red]incompatible[/]"
    return "[green]compatible[/]" if schema_check.complete else "[yellow]unknown[/]"


def _heading(dataset: str, *, full_names: bool) -> str:
    """Print the namespace of a dataset, and return its name."""
    names = DisplayNames([dataset], full=full_names)
    names.print_heading()
    return names[dataset]
