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
        tag_reach = lineage.govern.tag_reach(tag)
    if json:
        print_json(tag_reach)
    else:
        _show_tag(tag_reach, DisplayNames(_tag_ids(tag_reach), full=full_names))


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
        dataset_tags = lineage.govern.dataset_tags(dataset)
    if json:
        print_json(dataset_tags)
    else:
        _show_columns_of(dataset_tags, full_names=full_names)


def _show_columns_of(dataset_tags: DatasetTags, *, full_names: bool) -> None:
    ids = [dataset_tags.dataset, *(column.column for column in dataset_tags.columns)]
    ids += [reached.origin for column in dataset_tags.columns for reached in column.reached]
    names = DisplayNames(ids, full=full_names)
    names.print_heading()
    out.print(
        f"{names.label(dataset_tags.dataset)}  {escape(', '.join(dataset_tags.tags))}".rstrip()
    )
    if dataset_tags.owners:
        out.print(f"  owners: {escape(', '.join(dataset_tags.owners))}")
    if dataset_tags.description:
        out.print(f"  description: {escape(dataset_tags.description)}")
    if dataset_tags.sent is not None:
        sent = dataset_tags.sent
        parts = {"tags": ", ".join(sent.tags), "owners": ", ".join(sent.owners)}
        parts["description"] = sent.description
        texts = [f"{label}: {text or 'none'}" for label, text in parts.items()]
        out.print(f"  in events: {escape('; '.join(texts))}")
    for column in dataset_tags.columns:
        tags = [escape(tag) for tag in column.tags]
        tags += [f"{escape(tag.tag)} (from {names[tag.origin]})" for tag in column.reached]
        out.print(f"  {names[column.column]}  {', '.join(tags)}".rstrip())
    if not dataset_tags.complete:
        spots = counted(len(dataset_tags.blind_spots), "blind spot")
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
        certified_paths = lineage.govern.certified_paths()
    if json:
        print_json(certified_paths)
    else:
        _show_certified(certified_paths, full_names=full_names)
    sys.exit(int(certified_paths.integrity.count < certified_paths.integrity.total))


def _show_certified(certified_paths: CertifiedPaths, *, full_names: bool) -> None:
    gaps = [gap for path in certified_paths.datasets for gap in path.gaps]
    ids = [*(path.dataset for path in certified_paths.datasets), *(gap.entity for gap in gaps)]
    names = DisplayNames(ids, full=full_names, texts=(gap.message for gap in gaps))
    names.print_heading()
    for path in certified_paths.datasets:
        word = "[green]intact[/]" if path.intact else "[bold red]broken[/]"
        owners = f", owned by {', '.join(path.owners)}" if path.owners else ""
        out.print(f"{word} {names[path.dataset]} ({path.upstream} upstream{escape(owners)})")
        for gap in path.gaps[:_GAPS_SHOWN]:
            out.print(f"       {names.label(gap.entity)}: {names.replace_in(gap.message)}")
    if not certified_paths.datasets:
        out.print("No dataset is tagged certified, canonical or golden.")
        out.print("Tag one: downriver tag set DATASET certified")
        return
    total = counted(certified_paths.integrity.total, "certified path")
    out.print(f"{certified_paths.integrity.count} of {total} intact")
