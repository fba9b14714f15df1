"""`downriver tag` and `tags apply`: tags, owners and descriptions, one by one or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    ChangesDryRunOption,
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
from downriver.errors import InvalidRequestError
from downriver.govern.tag_file import (
    DeclaredDescription,
    DeclaredOwners,
    DeclaredPropagation,
    DeclaredTag,
    parse_tag,
    read_tag_file,
)
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.govern.tag_file import Declaration

TagsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="TAG", help="Tags such as certified, pii or domain=sales."),
]


def add(
    entity: EntityArgument,
    tags: TagsArgument = None,
    owner: Annotated[
        list[str] | None,
        typer.Option(
            "--owner",
            metavar="NAME",
            help="Replace the owners of the dataset or job. May be repeated.",
        ),
    ] = None,
    description: Annotated[
        str | None,
        typer.Option(
            "--description", metavar="TEXT", help="Set the description of the dataset or job."
        ),
    ] = None,
    dry_run: ChangesDryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Set tags on a dataset, column or job, and the owners and description of a dataset or job.

    A domain or tier (domain=sales, tier=1) replaces the earlier one.
    """
    declared: list[Declaration] = [DeclaredTag(entity, parse_tag(tag), True) for tag in tags or ()]
    if owner:
        declared.append(DeclaredOwners(entity, tuple(owner)))
    if description is not None:
        declared.append(DeclaredDescription(entity, description.strip()))
    _require_any(declared, "set")
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def remove(
    entity: EntityArgument,
    tags: TagsArgument = None,
    owners: Annotated[
        bool, typer.Option("--owners", help="Withdraw the owners that were set.")
    ] = False,
    description: Annotated[
        bool, typer.Option("--description", help="Withdraw the description that was set.")
    ] = False,
    dry_run: ChangesDryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Remove tags from a dataset, column or job, also tags that producers send.

    `domain`, `tier`, --owners and --description withdraw what was set by hand. What producers send
    counts again.
    """
    declared: list[Declaration] = [DeclaredTag(entity, parse_tag(tag), False) for tag in tags or ()]
    if owners:
        declared.append(DeclaredOwners(entity, None))
    if description:
        declared.append(DeclaredDescription(entity, None))
    _require_any(declared, "remove")
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def apply(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A YAML file that maps entities to tags, owners and descriptions."
        ),
    ],
    dry_run: ChangesDryRunOption = False,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Set the tags, owners and descriptions that a YAML file declares, and show what changes.

    A tag with a minus sign is removed: -certified. A second call with the same file changes
    nothing.
    """
    declared = read_tag_file(file)
    _change(declared, dry_run=dry_run, full_names=full_names, store=store, json=json)


def declare(
    tags: Annotated[
        list[str], typer.Argument(metavar="TAG", help="Tags such as gdpr or class=secret.")
    ],
    undo: Annotated[bool, typer.Option("--undo", help="Stop the propagation of the tags.")] = False,
    dry_run: ChangesDryRunOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Let tags propagate along column lineage, as pii does: `tags columns` shows where they arrive.

    A tag follows a value that is copied or transformed. Aggregation and masking stop it.
    """
    declared = [DeclaredPropagation(parse_tag(tag), not undo) for tag in tags]
    _change(declared, dry_run=dry_run, full_names=False, store=store, json=json)


def _require_any(declared: Sequence[Declaration], verb: str) -> None:
    if not declared:
        raise InvalidRequestError("TAG", f"nothing to {verb}: name a tag or an option")


def _change(
    declared: Sequence[Declaration],
    *,
    dry_run: bool,
    full_names: bool,
    store: str | None,
    json: bool,
) -> None:
    with Lineage.open(store, create=False) as lineage:
        tag_changes = lineage.tag(declared, done=not dry_run)
    if json:
        print_json(tag_changes)
        return
    ids = [
        *(change.entity for change in tag_changes.changes),
        *(change.entity for change in tag_changes.owners),
        *(change.entity for change in tag_changes.descriptions),
    ]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    for change in tag_changes.changes:
        sign = "+" if change.present else "-"
        out.print(f"{sign} {names.label(change.entity)}  {escape(change.tag)}")
    for owners in tag_changes.owners:
        before, after = (", ".join(listed) or "none" for listed in (owners.before, owners.after))
        sent = "" if owners.sent == owners.before else _sent(", ".join(owners.sent), after)
        out.print(f"~ {names.label(owners.entity)}  owners: {escape(f'{before} → {after}{sent}')}")
    for described in tag_changes.descriptions:
        text = described.after or "none"
        text += "" if described.sent == described.before else _sent(described.sent, text)
        out.print(f"~ {names.label(described.entity)}  description: {escape(text)}")
    for spread in tag_changes.propagation:
        sign, verb = ("+", "propagates") if spread.propagates else ("-", "no longer propagates")
        out.print(f"{sign} {escape(spread.tag)}  {verb}")
    verb = "would change" if dry_run else "changed"
    only_tags = all(isinstance(one, DeclaredTag | DeclaredPropagation) for one in declared)
    noun = "tag" if only_tags else "label"
    out.print(f"{tag_changes.changed} of {counted(tag_changes.declared, noun)} {verb}")


def _sent(sent: str, after: str) -> str:
    return f" (events: {sent})" if sent and sent != after else ""
