"""Datasets by the loose form of their names: which may be, or certainly are, one dataset.

Only names that share a form are kept as objects. All others cost 12 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.sorted_keys import SortedKeys
from downriver.graph.index.vectors import SMALLEST_FOLD, Longs
from downriver.model.ids import DatasetId
from downriver.openlineage.naming import folder_of, loose_form, normal_form

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.model.ids import NodeId
    from downriver.store import CatalogReader

_CHUNK = 50_000


class Containment(NamedTuple):
    """A file, and a folder that is a dataset too."""

    file: int
    folder: int


@dataclass(frozen=True, slots=True)
class NameIndex:
    """The names of all datasets up to an id. Immutable: loading more returns a new object."""

    keys: SortedKeys  # loose form -> datasets
    files: SortedKeys  # loose form of a folder -> files in it
    last_id: int = 0
    spellings: Mapping[int, Mapping[DatasetId, int]] = field(default_factory=dict)
    key_of: Mapping[int, int] = field(default_factory=dict)  # of datasets that share a key
    twins: Mapping[int, int] = field(default_factory=dict)
    containments: frozenset[Containment] = frozenset()

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> NameIndex:
        """Return an index without names."""
        return cls(SortedKeys(smallest_fold), SortedKeys(smallest_fold))

    def loaded(self, reader: CatalogReader) -> NameIndex:
        """Return an index with the datasets that are new in the catalog."""
        index = self
        rows = iter(reader.changes.datasets(self.last_id))
        new_keys, new_folders = [], []
        while chunk := list(islice(rows, _CHUNK)):
            index, keys, folders = index._appended(chunk)
            new_keys.append(keys)
            new_folders.append(folders)
        if index is self:
            return self
        index = replace(index, keys=index.keys.indexed(), files=index.files.indexed())
        keys, folders = np.concatenate(new_keys), np.concatenate(new_folders)
        return index._with_shared(keys, reader, self.last_id)._with_contained(keys, folders, reader)

    def _appended(self, rows: list[tuple[int, str, str]]) -> tuple[NameIndex, Longs, Longs]:
        keys, files, folders = [], [], []
        for node, namespace, name in rows:
            keys.append(hash(loose_form(namespace, name)))
            if "/" in name and (folder := folder_of(DatasetId(namespace, name))) is not None:
                files.append(node)
                folders.append(hash(loose_form(folder.namespace, folder.name)))
        of_names, of_folders = np.array(keys, np.int64), np.array(folders, np.int64)
        index = replace(
            self,
            last_id=rows[-1][0],
            keys=self.keys.appended(of_names, np.array([row[0] for row in rows])),
            files=self.files.appended(of_folders, np.array(files, np.int64)),
        )
        return index, of_names, of_folders

    def _with_shared(self, new: Longs, reader: CatalogReader, known: int) -> NameIndex:
        """Compare the datasets that have a key in common with a new one."""
        distinct = np.unique(new)
        numbers, places = self.keys.find_each(distinct)
        shared = np.bincount(places, minlength=len(distinct)) > 1
        if not shared.any():
            return self
        of_shared = shared[places]
        keys = distinct[places[of_shared]].tolist()
        # Names that are compared already are not read again: a table may have 10,000 partitions.
        members = {
            node: key
            for node, key in zip(numbers[of_shared].tolist(), keys, strict=True)
            if node > known or key not in self.spellings
        }
        spellings, twins = dict(self.spellings), dict(self.twins)
        names = reader.nodes.by_ids(members)
        for node in sorted(members):
            key, name = members[node], names[node]
            forms = dict(spellings.get(key, {}))
            first = forms.setdefault(_normal(name), node)
            if first != node:
                twins[node] = first
            spellings[key] = forms
        return replace(self, spellings=spellings, twins=twins, key_of={**self.key_of, **members})

    def _with_contained(self, new: Longs, folders: Longs, reader: CatalogReader) -> NameIndex:
        """Find the folders of new files, and the files in new folders."""
        pairs = set(_pairs(self.files, self.keys, np.unique(np.concatenate([new, folders]))))
        added = pairs - self.containments
        if not added:
            return self
        names = reader.nodes.by_ids({node for pair in added for node in pair})
        certain = {
            pair
            for pair in added
            if _normal(names[pair.folder]) == folder_of(_dataset(names[pair.file]))
        }
        return replace(self, containments=self.containments | certain)

    def similar(self, names: Iterable[int]) -> set[int]:
        """Return datasets that may be the same as one with these ids, and are not certainly."""
        found: set[int] = set()
        for node in names:
            key = self.key_of.get(node)
            if key is not None:
                found.update(self.spellings[key].values())
        return found


def _dataset(node: NodeId) -> DatasetId:
    return DatasetId(node.namespace, node.name)


def _normal(node: NodeId) -> DatasetId:
    return normal_form(_dataset(node))


def _pairs(files: SortedKeys, folders: SortedKeys, keys: Longs) -> Iterable[Containment]:
    """Yield each file and each folder that have one of these keys in common."""
    found, of_files = files.find_each(keys)
    if not len(found):
        return
    used = np.unique(of_files)
    homes, of_homes = folders.find_each(keys[used])
    at_home: dict[int, list[int]] = {}
    for home, at in zip(homes.tolist(), used[of_homes].tolist(), strict=True):
        at_home.setdefault(at, []).append(home)
    for file, at in zip(found.tolist(), of_files.tolist(), strict=True):
        for home in at_home.get(at, ()):
            yield Containment(file, home)
