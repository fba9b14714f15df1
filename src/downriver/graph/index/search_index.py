"""The index of a search: names of nodes and columns, and labels of nodes.

It is loaded by the first search, then kept: a later search reads what is new in the catalog.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.index.column_graph import STAR
from downriver.graph.index.labels import Labels
from downriver.graph.index.name_search import NameSearch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.graph.index.column_graph import ColumnGraph
    from downriver.graph.index.vectors import Ints
    from downriver.graph.snapshot import CatalogSnapshot
    from downriver.store import CatalogReader

_DATASET = 0


@dataclass(frozen=True)
class SearchIndex:
    """Names, fields and labels. Immutable: loading more returns a new object.

    Its names and labels may be newer than the snapshot of a search.
    """

    generation: int = 0
    names: NameSearch = field(default_factory=NameSearch)
    fields: NameSearch = field(default_factory=NameSearch)  # by the id of the first column
    columns: int = 0  # the last column that is in `fields`
    labels: Labels = field(default_factory=Labels)

    def loaded(self, view: CatalogSnapshot) -> SearchIndex:
        """Return an index that has everything of a snapshot."""
        state, reader = view.graph.state, view.reader
        index = self if self.generation == state.generation else SearchIndex(state.generation)
        if state.seq <= index.labels.seq:
            return index
        nodes = list(reader.changes.nodes(index.names.last_id))
        last, fields = _new_fields(view.graph.columns, reader, index.columns)
        return replace(
            index,
            names=index.names.extended(nodes),
            fields=index.fields.extended(fields),
            columns=last,
            labels=index.labels.loaded(reader, nodes, state.seq),
        )


def _new_fields(
    columns: ColumnGraph, reader: CatalogReader, after: int
) -> tuple[int, Iterable[tuple[int, int, str, str]]]:
    """Return the last column, and the first column of every field that no earlier one has."""
    numbers = columns.field.values
    last = len(numbers) - 1
    if last <= after:
        return after, ()
    is_listed = np.zeros(columns.field_numbers.size, np.bool_)
    is_listed[numbers[: after + 1]] = True
    is_listed[STAR] = True
    distinct, first = np.unique(numbers[after + 1 :], return_index=True)
    new = first[~is_listed[distinct]] + after + 1
    return last, _read_fields(reader, np.sort(new), after)


def _read_fields(
    reader: CatalogReader, new: Ints, after: int
) -> Iterator[tuple[int, int, str, str]]:
    wanted = set(new.tolist())
    for column, _, name in reader.changes.columns(after) if wanted else ():
        if column in wanted:
            # Names that differ in case only are several fields: the spelling orders them.
            yield column, _DATASET, name, name
