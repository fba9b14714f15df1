"""Entities as people write them, and back: `table:orders`, `api:stripe`, `dag:daily`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.scan import dataset_from
from downriver.errors import AmbiguousNameError, InvalidRequestError
from downriver.events.facets import ASSET, read_asset
from downriver.graph.assets import dataset_type
from downriver.graph.resolve import (
    ANY_DATASET,
    APART,
    COLUMN_WORDS,
    DATASET_WORDS,
    JOB_WORDS,
    find_all,
)
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from downriver.graph.identity import Identities
    from downriver.graph.resolve import Entity
    from downriver.model.ids import EntityId, NodeId
    from downriver.store import Reader

_FILE = "file"


def entity_id(node: EntityId, namespace: str) -> str:
    """Return the short id that means a node to people; the full one where there is none."""
    if not isinstance(node, DatasetId):
        return str(node)
    if node.namespace in APART:
        return f"{node.namespace}:{node.name}"
    return f"table:{node.name}" if node.namespace == namespace else str(node)


def short_id(full: str, namespace: str) -> str:
    """Return the short id for a full one, as `entity_id` does for the identity."""
    kind, _, rest = full.partition(":")
    home, _, name = rest.partition(":")
    if kind != "dataset" or (home != namespace and home not in APART):
        return full
    return entity_id(DatasetId(home, name), namespace)


class EntityNames:
    """Finds the ends of flows in one view of the catalog; what is new gets an id."""

    def __init__(self, reader: Reader, identities: Identities, namespace: str) -> None:
        self._reader = reader
        self._identities = identities
        self._namespace = namespace
        self._known: dict[str, NodeId] = {}

    def node_for(self, text: str, field: str) -> NodeId:
        """Return the one node that `text` means, or a new one; an ambiguous name is an error."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._node(text.strip(), field)
        return known

    def _node(self, text: str, field: str) -> NodeId:
        word, name = split_word(text)
        if not name:
            raise InvalidRequestError(field, "empty; write it like table:orders or api:stripe")
        if word in COLUMN_WORDS:
            raise InvalidRequestError(field, f"{text!r} is a column; flows join datasets and jobs")
        found = [
            entity.id
            for entity in find_all(f"{word}:{name}", self._reader, self._identities)
            if isinstance(entity.id, DatasetId | JobId) and self._is_of(entity, word)
        ]
        if len(found) > 1:
            raise AmbiguousNameError(text, sorted(map(str, found)))
        return found[0] if found else self._new(word, name)

    def _is_of(self, entity: Entity, word: str) -> bool:
        """Tell whether a known node is of the kind a word names, where that tells it apart."""
        if word not in APART or not isinstance(entity.id, DatasetId):
            return True
        if word in (entity.id.namespace, dataset_type(entity.id)):
            return True
        registered = self._reader.facets(entity.node).get(ASSET)
        return registered is not None and read_asset(registered).assetType == word

    def _new(self, word: str, name: str) -> NodeId:
        if word in JOB_WORDS:
            namespace, colon, rest = name.rpartition(":")
            return JobId(namespace, rest) if colon and word == "job" else self._job(name)
        named = dataset_from(name)
        if named is not None:
            return named
        namespace, colon, rest = name.rpartition(":")
        if word == ANY_DATASET and colon:
            return DatasetId(namespace, rest)
        if word in APART or word == _FILE:
            return DatasetId(word, name)
        return DatasetId(self._namespace, name)

    def _job(self, name: str) -> JobId:
        return JobId(self._namespace, name)


def split_word(text: str) -> tuple[str, str]:
    """Return the word that says what kind of thing is meant, and its name; `dataset` for none."""
    word, colon, name = text.partition(":")
    known = word.lower() in (*DATASET_WORDS, *JOB_WORDS, *COLUMN_WORDS)
    if colon and known and not name.startswith("//"):
        return word.lower(), name.strip()
    return ANY_DATASET, text
