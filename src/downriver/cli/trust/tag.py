"""`downriver tag` and `tags apply`: set and remove tags, one by one or from a file."""

from __future__ import annotations

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
from downriver.cli.trace import EntityArgument
from downriver.govern.tag_file import DeclaredTag, parse_tag, read_tag_file
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]
TagsArgument = Annotated[
    list[str],
    typer.Argument(metavar="TAG", help="Tags such as certified, pii or domain=sales."),
]


def add(
    entity: EntityArgument,
    tags: TagsArgument,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Set tags on a dataset, column or job."""
    declared = [DeclaredTag(entity, parse_tag(tag), True) for tag in tags]
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def remove(
    entity: EntityArgument,
    tags: TagsArgument,
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove tags from a dataset, column or job, also tags that producers send."""
    declared = [DeclaredTag(entity, parse_tag(tag), False) for tag in tags]
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def apply(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A YAML file that maps entities to lists of tags."),
    ],
    dry_run: DryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Set the tags that a YAML file declares, and show what changes.

    A tag with a minus sign is removed: -certified. A second call with the same file changes
    nothing.
    """
    declared = read_tag_file(file)
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def _change(
    tags: Sequence[DeclaredTag],
    *,
    dry_run: bool,
    full_names: bool,
    store: str | None,
    json: bool,
) -> None:
    with Lineage.open(store, create=False) as lineage:
        found = lineage.tag(tags, done=not dry_run)
    if json:
        print_json(found)
        return
    names = DisplayNames((change.entity for change in found.changes), full=full_names)
    names.print_heading()
    for change in found.changes:
        sign = "+" if change.present else "-"
        out.print(f"{sign} {names.label(change.entity)}  {escape(change.tag)}")
    verb = "would change" if dry_run else "changed"
    out.print(f"{len(found.changes)} of {counted(found.declared, 'tag')} {verb}")
