"""What changes when tags, owners and descriptions are set."""

from __future__ import annotations

import msgspec


class TagChange(msgspec.Struct, kw_only=True, frozen=True):
    """A tag that is set on an entity, or removed from it."""

    entity: str
    tag: str
    present: bool


class OwnersChange(msgspec.Struct, kw_only=True, frozen=True):
    """The owners of a dataset or job, before and after they were set."""

    entity: str
    before: list[str]
    after: list[str]


class DescriptionChange(msgspec.Struct, kw_only=True, frozen=True):
    """The description of a dataset or job, before and after it was set."""

    entity: str
    before: str
    after: str


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
