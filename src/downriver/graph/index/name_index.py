"""Datasets by the loose form of their names, to find names that are or may be one dataset.

Only names that share a form are kept as objects. All others cost 25 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.index.sorted_keys import SortedKeys
from downriver.graph.index.vectors import SMALLEST_FOLD, Flags, Ints, Longs
from downriver.model.ids import DatasetId, short_name
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
    shorts: SortedKeys  # last part of the name -> datasets
    last_id: int = 0
    namesake_counts: Ints = field(default_factory=lambda: np.zeros(1, np.int32))  # by id
    spellings: Mapping[int, Mapping[DatasetId, int]] = field(default_factory=dict)
    key_of: Mapping[int, int] = field(default_factory=dict)  # of datasets that share a key
    twins: Mapping[int, int] = field(default_factory=dict)
    containments: frozenset[Containment] = frozenset()

    @classmethod
    def empty(cls, smallest_fold: int = SMALLEST_FOLD) -> NameIndex:
        """Return an index without names."""
        none = SortedKeys(smallest_fold)
        return cls(keys=none, files=none, shorts=none)

    def loaded(self, reader: CatalogReader) -> NameIndex:
        """Return an index with the datasets that are new in the catalog."""
        index = self
        rows = iter(reader.changes.datasets(self.last_id))
        new: list[_NewNames] = []
        while chunk := list(islice(rows, _CHUNK)):
            index, added = index._appended(chunk)
            new.append(added)
        if index is self:
            return self
        index = replace(
            index,
            keys=index.keys.indexed(),
            files=index.files.indexed(),
            shorts=index.shorts.indexed(),
        )
        keys, folders, shorts = (np.concatenate(parts) for parts in zip(*new, strict=True))
        index = index._with_namesakes(shorts)._with_shared(keys, reader, self.last_id)
        return index._with_contained(keys, folders, reader)

    def _appended(self, rows: list[tuple[int, str, str]]) -> tuple[NameIndex, _NewNames]:
        keys, files, folders, shorts = [], [], [], []
        for node, namespace, name in rows:
            keys.append(hash(loose_form(namespace, name)))
            shorts.append(hash(short_name(name)))
            if "/" in name and (folder := folder_of(DatasetId(namespace, name))) is not None:
                files.append(node)
                folders.append(hash(loose_form(folder.namespace, folder.name)))
        new = _NewNames(*(np.array(hashes, np.int64) for hashes in (keys, folders, shorts)))
        ids = np.array([row[0] for row in rows])
        index = replace(
            self,
            last_id=rows[-1][0],
            keys=self.keys.appended(new.keys, ids),
            files=self.files.appended(new.folders, np.array(files, np.int64)),
            shorts=self.shorts.appended(new.shorts, ids),
        )
        return index, new

    def _with_namesakes(self, new: Longs) -> NameIndex:
        """Count how many others have the same last part of their name, where that changed."""
        numbers, places = self.shorts.find_each(np.unique(new))
        counts: Ints = np.zeros(self.last_id + 1, np.int32)
        counts[: len(self.namesake_counts)] = self.namesake_counts
        counts[numbers] = np.bincount(places)[places] - 1
        return replace(self, namesake_counts=counts)

    def namesakes(self, datasets: Ints) -> Ints:
        """Return how many other names have the same last part as each of these datasets."""
        is_counted = datasets < len(self.namesake_counts)  # later ids are those of jobs
        counts: Ints = self.namesake_counts[np.where(is_counted, datasets, 0)]
        return counts

    def _with_shared(self, new: Longs, reader: CatalogReader, known: int) -> NameIndex:
        """Compare the datasets that have a key in common with a new one."""
        distinct = np.unique(new)
        numbers, of_shared, places = _sharing(self.keys, distinct)
        if not of_shared.any():
            return self
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
        """Return datasets that may be, but are not certainly, one of these ids."""
        numbers: set[int] = set()
        for node in names:
            key = self.key_of.get(node)
            if key is not None:
                numbers.update(self.spellings[key].values())
        return numbers


class _NewNames(NamedTuple):
    """Hashes of the forms of new names."""

    keys: Longs
    folders: Longs
    shorts: Longs


def _sharing(index: SortedKeys, keys: Longs) -> tuple[Ints, Flags, Longs]:
    """Return the numbers of keys, whether several share the key, and the keys' positions."""
    numbers, places = index.find_each(keys)
    several: Flags = (np.bincount(places, minlength=len(keys)) > 1)[places]
    return numbers, several, places


def _dataset(node: NodeId) -> DatasetId:
    return DatasetId(node.namespace, node.name)


def _normal(node: NodeId) -> DatasetId:
    return normal_form(_dataset(node))


def _pairs(files: SortedKeys, folders: SortedKeys, keys: Longs) -> Iterable[Containment]:
    """Yield each file and each folder that have one of these keys in common."""
    file_ids, of_files = files.find_each(keys)
    if not len(file_ids):
        return
    used = np.unique(of_files)
    homes, of_homes = folders.find_each(keys[used])
    at_home: dict[int, list[int]] = {}
    for home, at in zip(homes.tolist(), used[of_homes].tolist(), strict=True):
        at_home.setdefault(at, []).append(home)
    for file, at in zip(file_ids.tolist(), of_files.tolist(), strict=True):
        for home in at_home.get(at, ()):
            yield Containment(file, home)
