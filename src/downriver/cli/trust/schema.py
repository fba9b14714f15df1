"""`downriver schema`: versions of a dataset's schema and their compatibility."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.govern.schemas import read_schema_file
from downriver.model.trust.schemas import CompatibilityMode
from downriver.service import Lineage

DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="A dataset: a name or an id.")
]


def history(dataset: DatasetArgument, store: StoreOption = None, json: JsonOption = False) -> None:
    """List the versions of a dataset's schema, the oldest first."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.schemas(dataset)
    if json:
        print_json(found)
        return
    out.print(escape(found.dataset))
    for each in found.versions:
        version = each.version
        current = " [green]current[/]" if each.current else ""
        out.print(f"version {each.number}{current}  {version.at} to {version.last_seen}, "
                  f"{len(version.columns)} columns")  # fmt: skip
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
        typer.Option("--old", metavar="N", help="The earlier version. By default the one before."),
    ] = None,
    new: Annotated[
        int | None,
        typer.Option("--new", metavar="N", help="The later version. By default the current one."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the columns that differ between two versions of a dataset's schema."""
    with Lineage.open(store, create=False) as lineage:
        found = lineage.schemas.diff(dataset, old=old, new=new)
    if json:
        print_json(found)
        return
    out.print(f"{escape(found.dataset)}: version {found.old} to {found.new}")
    for column in found.added:
        out.print(f"  [green]+[/] {escape(f'{column.name} {column.type}')}")
    for column in found.removed:
        out.print(f"  [red]-[/] {escape(f'{column.name} {column.type}')}")
    for change in found.retyped:
        out.print(f"  ~ {escape(f'{change.name} {change.old} -> {change.new}')}")
    if not (found.added or found.removed or found.retyped):
        out.print("  no difference")


def check(
    dataset: DatasetArgument,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="FILE",
            help="A new schema: Avro (.avsc), JSON Schema (.json) or protobuf (.proto). By default "
            "the current version is compared with the one before.",
        ),
    ] = None,
    message: Annotated[
        str | None,
        typer.Option("--message", metavar="NAME", help="The message of a protobuf file."),
    ] = None,
    mode: Annotated[
        CompatibilityMode | None,
        typer.Option("--mode", help="By default that of the dataset's contract, else backward."),
    ] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Check that a schema is compatible with the one before it.

    backward: readers of the new schema can read old data. forward: readers of the old schema can
    read new data. full: both. The exit code is 1 if it is not compatible.
    """
    declared = None if against is None else read_schema_file(against, message=message)
    with Lineage.open(store, create=False) as lineage:
        found = lineage.schemas.check(
            dataset, mode=mode, against=declared, place=str(against or "")
        )
    if json:
        print_json(found)
    else:
        verdict = "[green]compatible[/]" if found.compatible else "[bold red]incompatible[/]"
        compared = escape(f"{found.dataset}: {found.old} to {found.new}")
        out.print(f"{verdict} ({found.mode.value}) {compared}")
        for each in found.incompatibilities:
            out.print(f"  {each.direction:<8} {escape(f'{each.column}: {each.message}')}")
        for spot in found.blind_spots:
            out.print(f"  [yellow]unknown[/]  {escape(spot.message)}")
    sys.exit(int(not found.compatible))
