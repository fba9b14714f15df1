"""Short names for the entities of one answer: as short as possible, and no two alike.

`warehouse.public.orders` becomes `orders`, or `public.orders` where the answer has another
`orders`. The resolver accepts these names again.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from downriver.model.ids import ColumnId, DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.model.ids import EntityId, NodeId

_FULL_ID = re.compile(r"\b(?:dataset|job|column):[^\s,;()\[\]'\"]+")
_FILE_TYPE = re.compile(
    "arrow|avro|csv|db|delta|feather|gz|html|json|jsonl|log|md|mmd|orc|parquet|pkl|py|sql|svg|tar|"
    "tsv|txt|xls|xlsx|xml|yaml|yml|zip"
)
_WHOLE_NAMES = ("kafka", "mlflow", "model")  # systems in which a dot does not separate a folder


class ShortNames:
    """Names by full id. An id that the answer did not contain keeps its full name."""

    def __init__(self, entities: Mapping[str, EntityId]) -> None:
        self._entities = entities
        nodes = dict.fromkeys(map(_node_of, entities.values()))
        names = {node: name for kind in (DatasetId, JobId) for node, name in _shorten(nodes, kind)}
        self._names = {
            full: _with_field(names[_node_of(entity)], entity) for full, entity in entities.items()
        }

    @classmethod
    def of_ids(cls, ids: Iterable[str]) -> ShortNames:
        """Return short names for full ids, such as `dataset:warehouse:public.orders`."""
        return cls({full: parse_full_id(full) for full in ids})

    def __getitem__(self, full_id: str) -> str:
        return self._names.get(full_id, full_id)

    @property
    def namespaces(self) -> list[str]:
        """The namespaces of the datasets, the most frequent first."""
        nodes = dict.fromkeys(map(_node_of, self._entities.values()))
        counts = Counter(node.namespace for node in nodes if isinstance(node, DatasetId))
        return [namespace for namespace, _ in counts.most_common()]

    def replace_in(self, text: str) -> str:
        """Return a text with short names in place of full ids."""
        return self._full_ids.sub(lambda found: self._names[found.group()], text)

    @cached_property
    def _full_ids(self) -> re.Pattern[str]:
        longest_first = sorted(self._names, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def find_full_ids(text: str) -> set[str]:
    """Return the full ids in a message."""
    return {full.rstrip(".:") for full in _FULL_ID.findall(text)}


def parse_full_id(full: str) -> EntityId:
    """Return the entity that a full id means.

    Namespaces contain colons more often than names do, so the last colon separates the two.
    """
    kind, _, rest = full.partition(":")
    if kind == "column":
        rest, _, field = rest.rpartition(":")
        return ColumnId(DatasetId(*_split(rest)), field)
    return JobId(*_split(rest)) if kind == "job" else DatasetId(*_split(rest))


def _split(text: str) -> tuple[str, str]:
    namespace, _, name = text.rpartition(":")
    return namespace, name


def is_full_id(text: str) -> bool:
    """Return whether a text is a full id, and not a path or another text."""
    return text.startswith(("dataset:", "job:", "column:"))


def _node_of(entity: EntityId) -> NodeId:
    return entity.dataset if isinstance(entity, ColumnId) else entity


def _with_field(name: str, entity: EntityId) -> str:
    return f"{name}.{entity.field}" if isinstance(entity, ColumnId) else name


def _shorten(
    nodes: Iterable[NodeId], kind: type[DatasetId] | type[JobId]
) -> Iterable[tuple[NodeId, str]]:
    """Return the shortest ending of each name that no other node of this kind has.

    If there is none, return the whole name, with its namespace if another node has that name.
    """
    endings = {node: _endings(node) for node in nodes if isinstance(node, kind)}
    owners = Counter(ending for several in endings.values() for ending in several)
    namesakes = Counter(several[-1] for several in endings.values())
    for node, several in endings.items():
        whole = several[-1]
        other = whole if namesakes[whole] == 1 else f"{node.name} ({node.namespace})"
        yield node, next((ending for ending in several if owners[ending] == 1), other)


def _endings(node: NodeId) -> list[str]:
    """Return what a name may be shortened to, the shortest first."""
    name = node.name.rstrip("/") or node.name
    separator = _separator(node)
    if separator is None:
        return [name]
    parts = name.split(separator)
    starts = range(len(parts) - 1, -1, -1)
    endings = [separator.join(parts[start:]) for start in starts]
    return [ending for ending in endings if _is_name(ending)] or [name]


def _is_name(ending: str) -> bool:
    """Whether an ending can stand alone: it has a letter and is not only a file type."""
    return any(map(str.isalpha, ending)) and not _FILE_TYPE.fullmatch(ending.casefold())


def _separator(node: NodeId) -> str | None:
    if "/" in node.name:
        return "/"
    # A part of a job's name alone is often unclear: `load` of `orders_dag.load`.
    if isinstance(node, JobId) or node.namespace.startswith(_WHOLE_NAMES):
        return None
    return "."
