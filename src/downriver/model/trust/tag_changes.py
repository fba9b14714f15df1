"""Changes of tags, owners and descriptions."""

from __future__ import annotations

import msgspec

from downriver.model.answers import MappingStruct


class TagChange(msgspec.Struct, kw_only=True, frozen=True):
    """A tag that is set on an entity, or removed from it."""

    entity: str
    tag: str
    present: bool


class OwnersChange(msgspec.Struct, kw_only=True, frozen=True):
    """The owners of a dataset or job, before and after they were set, and those in events."""

    entity: str
    before: list[str]
    after: list[str]
    sent: list[str]


class DescriptionChange(msgspec.Struct, kw_only=True, frozen=True):
    """The description of a dataset or job, before and after it was set, and that in events."""

    entity: str
    before: str
    after: str
    sent: str


class PropagationChange(msgspec.Struct, kw_only=True, frozen=True):
    """A tag that begins to propagate along column lineage, or stops."""

    tag: str
    propagates: bool


class TagChanges(msgspec.Struct, kw_only=True):
    """The tags, owners and descriptions that change; without `done`, that would change.

    `changed` of the `declared` ones were different before.
    """

    changes: list[TagChange]
    owners: list[OwnersChange]
    descriptions: list[DescriptionChange]
    propagation: list[PropagationChange]
    changed: int
    declared: int
    done: bool


class EntityLabels(MappingStruct, kw_only=True):
    """The owners, tags and description of a dataset or job."""

    owners: list[str]
    tags: list[str]
    description: str
