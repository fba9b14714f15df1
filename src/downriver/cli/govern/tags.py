"""`downriver tags`: where a tag was set, and which columns it reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.names import DisplayNames, FullNamesOption
from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.governance import TaggedColumn, TagReach

TagArgument = Annotated[
    str,
    typer.Argument(metavar="TAG", help="A tag as events contain it, such as pii or team:sales."),
]


def tags(
    tag: TagArgument = "pii",
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which columns a tag reaches along column edges.

    A tag propagates along copies and computations. Masking stops it.
    """
    with Lineage.open(store, create=False) as lineage:
        reach = lineage.govern.tag_reach(tag)
    if json:
        print_json(reach)
    else:
        _show(reach, DisplayNames(_ids(reach), full=full_names))


def _ids(reach: TagReach) -> Iterator[str]:
    yield from reach.tagged
    yield from reach.datasets
    for column in (*reach.reached, *reach.stopped):
        yield column.column
        yield from column.path


def _show(reach: TagReach, names: DisplayNames) -> None:
    names.print_heading()
    out.print(
        f"{escape(reach.tag)} was set on {len(reach.tagged)} columns and "
        f"{len(reach.datasets)} datasets"
    )
    for full_id in (*reach.tagged, *reach.datasets):
        out.print(f"  {names[full_id]}")
    _show_columns("reached", reach.reached, names)
    _show_columns("masked before it reached", reach.stopped, names)
    if not reach.complete:
        out.print(f"[yellow]incomplete:[/] {len(reach.blind_spots)} blind spots; --json lists them")


def _show_columns(label: str, columns: list[TaggedColumn], names: DisplayNames) -> None:
    out.print(f"{label} {len(columns)} columns")
    for column in columns:
        owners = f"  owned by {', '.join(column.owners)}" if column.owners else ""
        out.print(f"  {names[column.column]}{escape(owners)}")
        out.print(f"    from {' → '.join(names[step] for step in column.path[:-1])}")
