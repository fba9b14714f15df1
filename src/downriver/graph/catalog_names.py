"""Tables as code names them, as the catalog knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.graph.resolve import Entity, find_entity
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from downriver.graph.identity import Identities
    from downriver.store import Reader


class CatalogNames:
    """Finds tables by the names that code has for them."""

    def __init__(self, reader: Reader, identities: Identities, namespace: str) -> None:
        self._reader = reader
        self._identities = identities
        self._namespace = namespace
        self._known: dict[str, Entity | None] = {}

    def dataset_for(self, table: str) -> DatasetId:
        """Return the one dataset a table name fits, or a new one in the namespace."""
        return self.find(table) or DatasetId(self._namespace, table)

    def find(self, table: str) -> DatasetId | None:
        """Return the one dataset a table name fits."""
        entity = self._find(table)
        return entity.id if entity is not None and isinstance(entity.id, DatasetId) else None

    def columns_of(self, table: str) -> list[str] | None:
        """Return the columns of the current schema of a table, if one is known."""
        entity = self._find(table)
        columns = self._reader.schema(entity.node) if entity is not None else []
        return [column.path for column in columns if "." not in column.path] or None

    def columns_of_dataset(self, dataset: DatasetId) -> list[str] | None:
        """Return the columns of the current schema of a dataset, if one is known."""
        node = self._reader.find_node(dataset)
        columns = self._reader.schema(node) if node is not None else []
        return [column.path for column in columns if "." not in column.path] or None

    def _find(self, table: str) -> Entity | None:
        if table not in self._known:
            # Many are unknown: looking for what is spelled like each would take too long.
            self._known[table] = find_entity(f"dataset:{table}", self._reader, self._identities)
        return self._known[table]
