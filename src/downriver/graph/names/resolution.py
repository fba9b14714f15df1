"""Resolves names to entities. An ambiguous name is an error.

`orders`, `warehouse.public.orders`, `orders.amount`, `table:orders`, `dag:daily`, and the full ids
that answers show. The first rule with a result decides. If it finds several entities, the error
lists them.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import AmbiguousNameError, EntityNotFoundError
from downriver.model.assets import (
    ANY_DATASET_PREFIX,
    COLUMN_PREFIXES,
    DATASET_PREFIXES,
    JOB_PREFIXES,
    PREFIXES_AS_NAMESPACE,
)
from downriver.model.ids import (
    EVERY_FIELD,
    LONGEST_NAME,
    ColumnId,
    DatasetId,
    JobId,
    NodeId,
    bounded,
    short_name,
)
from downriver.openlineage.naming import dataset_at, normal_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from downriver.graph.index.identities import Identities
    from downriver.model.ids import EntityId
    from downriver.store import CatalogReader

_NAMES_COMPARED = 50_000
_NEAR_SHOWN = 3
_LONGEST = 65_536  # characters of a name that is looked up
_MOST_SPLITS = 25  # from each end of a name: a namespace and a column have fewer parts


class Entity(NamedTuple):
    """A node, or a column of one, that exists in the catalog."""

    id: EntityId
    node: int
    column: int | None = None


class _Search(NamedTuple):
    """What to look for, and where."""

    text: str
    nodes: tuple[type[NodeId], ...]
    columns: bool
    reader: CatalogReader
    identities: Identities
    word: str = ""

    def may_mean(self, node: EntityId) -> bool:
        """Return whether the kind prefix, if there is one, allows this entity."""
        if not isinstance(node, DatasetId) or node.namespace not in PREFIXES_AS_NAMESPACE:
            return True
        return self.word in ("", ANY_DATASET_PREFIX, node.namespace)


def resolve(text: str, reader: CatalogReader, identities: Identities) -> Entity:
    """Return the entity that `text` names, or raise an error that lists near matches."""
    text = text.strip()
    entities = _find_by_rules(text, reader, identities)
    if len(entities) == 1:
        return entities[0]
    if entities:
        raise AmbiguousNameError(text, sorted(str(entity.id) for entity in entities))
    if len(text) > LONGEST_NAME:
        raise EntityNotFoundError(bounded(text))  # comparing letters would take long
    raise EntityNotFoundError(text, _near(_search(text, reader, identities)))


def find_entity(text: str, reader: CatalogReader, identities: Identities) -> Entity | None:
    """Return the entity that `text` names, None if there is none or more than one."""
    entities = _find_by_rules(text.strip(), reader, identities)
    return entities[0] if len(entities) == 1 else None


def find_all(text: str, reader: CatalogReader, identities: Identities) -> list[Entity]:
    """Return all entities that `text` may refer to."""
    return _find_by_rules(text.strip(), reader, identities)


def _find_by_rules(text: str, reader: CatalogReader, identities: Identities) -> list[Entity]:
    """Return the entities of the first rule that finds any."""
    if len(text) > _LONGEST:
        return []
    search = _search(text, reader, identities)
    for rule in _RULES:
        entities = _one_per_identity(
            (entity for entity in rule(search) if search.may_mean(entity.id)), identities
        )
        entities = [e for e in entities if _is_of(e.id, search.word)] or entities
        # A dbt model is a job and a table of one name: prefer the table. `job:` selects the job.
        entities = [entity for entity in entities if not isinstance(entity.id, JobId)] or entities
        if entities:
            return entities
    return []


def _search(text: str, reader: CatalogReader, identities: Identities) -> _Search:
    """Parse a kind prefix such as `table:` or `job:`, if there is one."""
    word, colon, rest = text.partition(":")
    if colon and not rest.startswith("//"):
        if word.lower() in DATASET_PREFIXES:
            return _Search(rest, (DatasetId,), False, reader, identities, word.lower())
        if word.lower() in JOB_PREFIXES:
            return _Search(rest, (JobId,), False, reader, identities)
        if word.lower() in COLUMN_PREFIXES:
            return _Search(rest, (), True, reader, identities)
    return _Search(text, (DatasetId, JobId), True, reader, identities)


def _is_of(node: EntityId, word: str) -> bool:
    return word in PREFIXES_AS_NAMESPACE and isinstance(node, DatasetId) and node.namespace == word


def _full_ids(search: _Search) -> Iterator[Entity]:
    """Find `dataset:namespace:name`, as answers show it. A namespace may contain colons, too."""
    splits = list(_splits(search.text, ":"))
    nodes = [kind(namespace, name) for namespace, name in splits for kind in search.nodes]
    numbers = search.reader.nodes.find_each(nodes)
    yield from (Entity(node, numbers[node]) for node in nodes if node in numbers)
    if search.columns:
        fields = {
            DatasetId(namespace, dataset): field
            for namespace, name in splits
            for dataset, field in _splits(name, ":")
        }
        datasets = search.reader.nodes.find_each(fields)
        for dataset in fields:
            if dataset in datasets:
                yield from _column(datasets[dataset], dataset, fields[dataset], search)


def _whole_names(search: _Search) -> Iterator[Entity]:
    """Find the whole name of a node, in any namespace."""
    yield from _find_named(search, lambda node: node.name == search.text)


def _with_namespaces(search: _Search) -> Iterator[Entity]:
    """Find the namespace and name of a node as one URL, such as `s3://bucket/raw/orders`."""
    yield from _find_named(
        search,
        lambda node: search.text in (node.namespace + by + node.name for by in ("/", "://", "")),
    )


def _columns_of_whole_names(search: _Search) -> Iterator[Entity]:
    """Find the whole name of a dataset, a dot and a column."""
    yield from _columns(search, lambda name, wanted: name == wanted)


def _urls(search: _Search) -> Iterator[Entity]:
    """Find a path or URL of a dataset in any spelling: `s3a://bucket/raw/orders/`."""
    if _is_location(search.text):
        yield from _located(search, search.text)


def _columns_of_urls(search: _Search) -> Iterator[Entity]:
    """Find a path or URL of a dataset, a dot and a column: `s3://bucket/raw/orders.amount`."""
    if not (search.columns and _is_location(search.text)):
        return
    for location, field in _splits(search.text, "."):
        for entity in _located(search, location):
            if isinstance(entity.id, DatasetId):
                yield from _column(entity.node, entity.id, field, search)


def _is_location(text: str) -> bool:
    return "://" in text or text.startswith("/")


def _located(search: _Search, location: str) -> Iterator[Entity]:
    dataset = normal_form(dataset_at(location))
    for number, node in search.reader.nodes.named(dataset.name).items():
        if isinstance(node, DatasetId) and normal_form(node) == dataset:
            yield Entity(node, number)


def _name_endings(search: _Search) -> Iterator[Entity]:
    """Find the last parts of a node's name, ignoring case."""
    yield from _find_named(search, lambda node: _ends(node.name, search.text))


def _columns_of_name_endings(search: _Search) -> Iterator[Entity]:
    """Find the last parts of a dataset's name, a dot and a column."""
    yield from _columns(search, _ends)


_RULES: tuple[Callable[[_Search], Iterator[Entity]], ...] = (
    _full_ids,
    _whole_names,
    _columns_of_whole_names,
    _with_namespaces,
    _urls,
    _columns_of_urls,
    _name_endings,
    _columns_of_name_endings,
)


def _find_named(search: _Search, fits: Callable[[NodeId], bool]) -> Iterator[Entity]:
    for number, node in search.reader.nodes.named(search.text).items():
        if isinstance(node, search.nodes) and fits(node):
            yield Entity(node, number)


def _columns(search: _Search, fits: Callable[[str, str], bool]) -> Iterator[Entity]:
    if not search.columns:
        return
    for dataset, field in _splits(search.text, "."):
        for number, node in _datasets(dataset, fits, search):
            yield from _column(number, node, field, search)


def _datasets(
    name: str, fits: Callable[[str, str], bool], search: _Search
) -> Iterator[tuple[int, DatasetId]]:
    for number, node in search.reader.nodes.named(name).items():
        if isinstance(node, DatasetId) and fits(node.name, name):
            yield number, node


def _column(number: int, dataset: DatasetId, field: str, search: _Search) -> Iterator[Entity]:
    """Find a column under any name of its dataset: an exact match, else ignoring case."""
    if field == EVERY_FIELD:
        return
    for same in search.identities.group(number):
        for name in _fields(same, field, search.reader):
            columns = search.reader.columns.find(same, name)
            if columns is not None:
                yield Entity(ColumnId(dataset, name), same, columns[0])


def _fields(dataset: int, wanted: str, reader: CatalogReader) -> list[str]:
    names = reader.columns.find(dataset, wanted)
    if names is not None:
        return [names[1]]
    return [
        name for name in reader.columns.list_names(dataset) if name.casefold() == wanted.casefold()
    ]


def _splits(text: str, separator: str) -> Iterator[tuple[str, str]]:
    parts = text.split(separator)
    for at in range(1, len(parts)):
        if at <= _MOST_SPLITS or at >= len(parts) - _MOST_SPLITS:
            yield separator.join(parts[:at]), separator.join(parts[at:])


def _ends(name: str, wanted: str) -> bool:
    name, wanted = (part.casefold().replace("/", ".").strip(".") for part in (name, wanted))
    return name == wanted or name.endswith(f".{wanted}")


def _one_per_identity(entities: Iterable[Entity], identities: Identities) -> list[Entity]:
    """Keep one entity of each group that is one node under several names."""
    kept: dict[tuple[int, str | None], Entity] = {}
    for entity in entities:
        field = entity.id.field if isinstance(entity.id, ColumnId) else None
        kept.setdefault((identities.canonical(entity.node), field), entity)
    return list(kept.values())


def _near(search: _Search) -> list[str]:
    """Return the names most similar to a missing name, among recent nodes and their columns."""
    for dataset, field in _splits(search.text, "."):
        candidates = {
            name: f"{node.name}.{name}"
            for number, node in _datasets(dataset, _ends, search)
            for name in search.reader.columns.list_names(number)
        }
        near = _closest(field, list(candidates), lambda name: name)
        if near:
            return [candidates[name] for name in near]
    names = list(dict.fromkeys(search.reader.nodes.list_names(_NAMES_COMPARED)))
    return _closest(search.text, names, lambda name: name) or _closest(
        search.text, names, short_name
    )


def _closest(wanted: str, names: list[str], part: Callable[[str], str]) -> list[str]:
    """Return the names with a similar part. Letter pairs preselect, because difflib is slow."""
    pairs = _pairs(wanted)
    shared = {name: len(pairs & _pairs(part(name))) for name in names}
    likely = sorted(names, key=lambda name: -shared[name])[:200]
    parts: dict[str, str] = {}
    for name in likely:
        parts.setdefault(part(name).casefold(), name)
    close = difflib.get_close_matches(wanted.casefold(), list(parts), _NEAR_SHOWN, 0.6)
    return [parts[match] for match in close]


def _pairs(text: str) -> set[str]:
    text = text.casefold()
    return {text[at : at + 2] for at in range(len(text) - 1)}
