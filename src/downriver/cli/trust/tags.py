"""`downriver tags reach`, `tags columns` and `certified`."""

from __future__ import annotations

import sys
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
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.governance import CertifiedPaths, DatasetTags, TaggedColumn, TagReach

TagArgument = Annotated[
    str,
    typer.Argument(metavar="TAG", help="A tag, such as pii or team:sales."),
]


def reach(
    tag: TagArgument = "pii",
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show which columns a tag reaches along column edges.

    A tag follows a value that is copied or transformed. Aggregation and masking stop it. `downriver
    tags pii` is short for `downriver tags reach pii`.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.govern.tag_reach(tag)
    if json:
        print_json(found)
    else:
        _show_tag(found, DisplayNames(_tag_ids(found), full=full_names))


def columns(
    dataset: EntityArgument,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the tags of a dataset and its columns, and which tags reach a column.

    The tags that reach a column are pii and those of `downriver tags propagate`.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.govern.dataset_tags(dataset)
    if json:
        print_json(found)
    else:
        _show_columns_of(found, full_names=full_names)


def _show_columns_of(found: DatasetTags, *, full_names: bool) -> None:
    ids = [found.dataset, *(column.column for column in found.columns)]
    ids += [reached.origin for column in found.columns for reached in column.reached]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    out.print(f"{names.label(found.dataset)}  {escape(', '.join(found.tags))}".rstrip())
    for column in found.columns:
        tags = [escape(tag) for tag in column.tags]
        tags += [f"{escape(tag.tag)} (from {names[tag.origin]})" for tag in column.reached]
        out.print(f"  {names[column.column]}  {', '.join(tags)}".rstrip())
    if not found.complete:
        spots = counted(len(found.blind_spots), "blind spot")
        out.print(f"[yellow]incomplete:[/] {spots}; --json lists them")


def _tag_ids(reach: TagReach) -> Iterator[str]:
    yield from reach.tagged
    yield from reach.datasets
    for column in (*reach.reached, *reach.stopped):
        yield column.column
        yield from column.path


def _show_tag(reach: TagReach, names: DisplayNames) -> None:
    names.print_heading()
    out.print(
        f"{escape(reach.tag)} was set on {counted(len(reach.tagged), 'column')} and "
        f"{counted(len(reach.datasets), 'dataset')}"
    )
    for full_id in (*reach.tagged, *reach.datasets):
        out.print(f"  {names[full_id]}")
    _show_columns("reached", reach.reached, names)
    _show_columns("masked before it reached", reach.stopped, names)
    if not reach.complete:
        spots = counted(len(reach.blind_spots), "blind spot")
        out.print(f"[yellow]incomplete:[/] {spots}; --json lists them")


def _show_columns(label: str, columns: list[TaggedColumn], names: DisplayNames) -> None:
    out.print(f"{label} {counted(len(columns), 'column')}")
    for column in columns:
        owners = f"  owned by {', '.join(column.owners)}" if column.owners else ""
        out.print(f"  {names[column.column]}{escape(owners)}")
        out.print(f"    from {' → '.join(names[step] for step in column.path[:-1])}")


_GAPS_SHOWN = 5


def certified(
    full_names: FullNamesOption = False, store: StoreOption = None, json: JsonOption = False
) -> None:
    """Check that the lineage upstream of every certified dataset is complete.

    The exit code is 1 if it is incomplete for one of them.
    """
    with Lineage.open(store, create=False) as lineage:
        found = lineage.govern.certified_paths()
    if json:
        print_json(found)
    else:
        _show_certified(found, full_names=full_names)
    sys.exit(int(found.integrity.count < found.integrity.total))


def _show_certified(found: CertifiedPaths, *, full_names: bool) -> None:
    gaps = [gap for path in found.datasets for gap in path.gaps]
    ids = [*(path.dataset for path in found.datasets), *(gap.entity for gap in gaps)]
    names = DisplayNames(ids, full=full_names, texts=(gap.message for gap in gaps))
    names.print_heading()
    for path in found.datasets:
        word = "[green]intact[/]" if path.intact else "[bold red]broken[/]"
        owners = f", owned by {', '.join(path.owners)}" if path.owners else ""
        out.print(f"{word} {names[path.dataset]} ({path.upstream} upstream{escape(owners)})")
        for gap in path.gaps[:_GAPS_SHOWN]:
            out.print(f"       {names.label(gap.entity)}: {names.replace_in(gap.message)}")
    total = counted(found.integrity.total, "certified path")
    out.print(f"{found.integrity.count} of {total} intact")
