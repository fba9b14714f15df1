"""The body of Atlas' `POST /api/atlas/v2/entity/bulk`, and the answer that Atlas gives."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.capture.catalogs.atlas import (
    AtlasEntities,
    is_dataset,
    is_process,
    parse_entities,
    qualified_name,
)
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.capture.entries import CatalogExport
    from downriver.model.ids import DatasetId, JobId

_GUIDS = uuid.UUID("5a3bbd5e-3a0f-5a3e-9c0e-1c9f5b1f7a10")


class AtlasEntityHeader(msgspec.Struct, kw_only=True, rename="camel"):
    """An entity as Atlas' answers name it."""

    type_name: str
    guid: str
    status: str = "ACTIVE"
    display_text: str
    attributes: dict[str, str]


class EntityMutation(msgspec.Struct, kw_only=True, rename="camel"):
    """Atlas' `EntityMutationResponse`: the stored entities, and the guids assigned to them."""

    mutated_entities: dict[str, list[AtlasEntityHeader]]
    guid_assignments: dict[str, str]


class BulkEntities(NamedTuple):
    """The entities of a request, and the export that they describe."""

    entities: AtlasEntities
    export: CatalogExport

    def ids(self) -> set[DatasetId | JobId]:
        """Return the datasets and jobs of the entities."""
        return {self.entities.id_of(entity) for entity in self._stored()}

    def answer(self, known: Collection[DatasetId | JobId]) -> EntityMutation:
        """Return the answer. `before` are the datasets and jobs that existed already."""
        mutated: dict[str, list[AtlasEntityHeader]] = {}
        for entity in self._stored():
            action = "UPDATE" if self.entities.id_of(entity) in known else "CREATE"
            mutated.setdefault(action, []).append(_header(entity))
        guids = {
            entity["guid"]: _guid(entity)
            for entity in self.entities.listed
            if isinstance(entity.get("guid"), str)
        }
        return EntityMutation(mutated_entities=mutated, guid_assignments=guids)

    def _stored(self) -> list[dict[str, Any]]:
        return [one for one in self.entities.listed if is_process(one) or is_dataset(one)]


def parse_bulk(body: bytes) -> BulkEntities:
    """Return the entities of a request. As in Atlas, one invalid entity rejects the request."""
    entities = parse_entities(body, "body")
    export = entities.export("body")
    if export.unread:
        where, reason = export.unread[0]
        others = f" ({len(export.unread) - 1} more)" if len(export.unread) > 1 else ""
        raise InvalidRequestError("entities", f"{where}: {reason}{others}")
    return BulkEntities(entities, export)


def _guid(entity: dict[str, Any]) -> str:
    """Return the guid of an entity: the same for the same type and qualified name."""
    return str(uuid.uuid5(_GUIDS, f"{entity['typeName']}\n{qualified_name(entity)}"))


def _header(entity: dict[str, Any]) -> AtlasEntityHeader:
    name = qualified_name(entity)
    label = entity["attributes"].get("name")
    return AtlasEntityHeader(
        type_name=entity["typeName"],
        guid=_guid(entity),
        display_text=label if isinstance(label, str) else name,
        attributes={"qualifiedName": name},
    )
