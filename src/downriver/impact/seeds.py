"""dbt's seeds: tables that are files of the repository."""

from __future__ import annotations

import csv
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.impact.proposal import Proposed
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
)
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.impact.repository import FilePair
    from downriver.impact.world import World


def compare_seed(pair: FilePair, world: World) -> Iterator[Proposed]:
    """Yield what an edited seed changes; a new one feeds no one."""
    nodes = world.nodes_named(PurePosixPath(pair.path).stem)
    for node in {world.canonical(n) for n, name in nodes.items() if isinstance(name, DatasetId)}:
        if pair.base is not None:
            known = {column.casefold() for column in world.known_columns(node)}
            for change in _changes(world.dataset(node).id.name, pair, known):
                yield Proposed(change, node)


def _changes(name: str, pair: FilePair, known: set[str]) -> Iterator[Change]:
    if pair.head is None:
        yield TableDrop(dataset=name)
        return
    before, after = _header(pair.base or ""), _header(pair.head)
    gone = [c for c in before if c not in after and (not known or c.casefold() in known)]
    new = [c for c in after if c not in before and c.casefold() not in known]
    if len(gone) == len(new) == 1 and len(before) == len(after):
        yield ColumnRename(dataset=name, column=gone[0], to=new[0])
    else:
        yield from (ColumnDrop(dataset=name, column=column) for column in gone)
        yield from (ColumnAdd(dataset=name, column=column) for column in new)
    if _rows(pair.base or "") != _rows(pair.head):
        yield LogicChange(dataset=name)


def _header(text: str) -> list[str]:
    return next(csv.reader(text.splitlines()), [])


def _rows(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()[1:] if line.strip()]
