"""Short ids of entities, and their resolution: `table:orders`, `api:stripe`, `dag:daily`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.dataset_names import check_name, new_node
from downriver.errors import AmbiguousNameError
from downriver.graph.names.assets import dataset_type
from downriver.graph.names.resolution import find_all
from downriver.model.assets import PREFIXES_AS_NAMESPACE
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import ASSET, parse_asset

if TYPE_CHECKING:
    from downriver.graph.index.identities import Identities
    from downriver.graph.names.resolution import Entity
    from downriver.model.ids import EntityId, NodeId
    from downriver.store import CatalogReader


def entity_id(node: EntityId, namespace: str) -> str:
    """Return the short id of a node, or the full id if there is no short one."""
    if not isinstance(node, DatasetId):
        return str(node)
    if node.namespace in PREFIXES_AS_NAMESPACE:
        return f"{node.namespace}:{node.name}"
    return f"table:{node.name}" if node.namespace == namespace else str(node)


def short_id(full: str, namespace: str) -> str:
    """Return the short id for a full one, as `entity_id` does for the identity."""
    kind, _, rest = full.partition(":")
    home, _, name = rest.partition(":")
    if kind != "dataset" or (home != namespace and home not in PREFIXES_AS_NAMESPACE):
        return full
    return entity_id(DatasetId(home, name), namespace)


class EntityNames:
    """Resolves the ends of flows in one view of the catalog; a new name gets a new id."""

    def __init__(self, reader: CatalogReader, identities: Identities, namespace: str) -> None:
        self._reader = reader
        self._identities = identities
        self._namespace = namespace
        self._known: dict[str, NodeId] = {}

    def node_for(self, text: str, field: str) -> NodeId:
        """Return the one node that `text` means, or a new one; an ambiguous name is an error."""
        node = self._known.get(text)
        if node is None:
            node = self._known[text] = self._node(text.strip(), field)
        return node

    def _node(self, text: str, field: str) -> NodeId:
        word, name = check_name(text, field)
        nodes = [
            entity.id
            for entity in find_all(f"{word}:{name}", self._reader, self._identities)
            if isinstance(entity.id, DatasetId | JobId) and self._is_of(entity, word)
        ]
        if len(nodes) > 1:
            raise AmbiguousNameError(text, sorted(map(str, nodes)))
        return nodes[0] if nodes else new_node(text, self._namespace, field)

    def _is_of(self, entity: Entity, word: str) -> bool:
        """Return whether a node has the kind of a prefix, for prefixes that are namespaces too."""
        if word not in PREFIXES_AS_NAMESPACE or not isinstance(entity.id, DatasetId):
            return True
        if word in (entity.id.namespace, dataset_type(entity.id)):
            return True
        registered = self._reader.facets.of(entity.node).get(ASSET)
        return registered is not None and parse_asset(registered).assetType == word
