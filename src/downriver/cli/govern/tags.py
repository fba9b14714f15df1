"""`downriver tags`: where a tag was set, and which columns it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from downriver.model.governance import TaggedColumn, TagReach

TagArgument = Annotated[
    str,
    typer.Argument(metavar="TAG", help="A tag as events contain it, such as pii or team:sales."),
]


def tags(tag: TagArgument = "pii", store: StoreOption = None, json: JsonOption = False) -> None:
    """Show which columns a tag reaches along column edges.

    Copies and computations carry the tag on. Masking stops it.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.tag_reach(tag)
    if json:
        print_json(found)
    else:
        _show(found)


def _show(found: TagReach) -> None:
    out.print(
        f"{found.tag} was set on {len(found.tagged)} columns and {len(found.datasets)} datasets"
    )
    for id_ in (*found.tagged, *found.datasets):
        out.print(f"  {escape(id_)}")
    _show_columns("reached", found.reached)
    _show_columns("masked before it reached", found.stopped)
    if not found.complete:
        out.print(f"[yellow]incomplete:[/] {len(found.blind_spots)} blind spots; --json lists them")


def _show_columns(label: str, columns: list[TaggedColumn]) -> None:
    out.print(f"{label} {len(columns)} columns")
    for column in columns:
        owners = f"  owned by {', '.join(column.owners)}" if column.owners else ""
        out.print(f"  {escape(column.column + owners)}")
        out.print(f"    from {escape(' -> '.join(column.path[:-1]))}")
