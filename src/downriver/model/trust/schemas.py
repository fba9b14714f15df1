"""Schemas as files declare them, and whether one schema is compatible with another."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.views.history import RetypedColumn, SchemaVersion

LogicalType = Literal[
    "string", "integer", "number", "boolean", "date", "timestamp", "time", "object", "array"
]


class CompatibilityMode(str, Enum):
    """Which readers a new schema must not break: new ones, old ones, or both."""

    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"

    @property
    def directions(self) -> tuple[Literal["backward", "forward"], ...]:
        """Return the modes that this one consists of."""
        match self:
            case CompatibilityMode.BACKWARD:
                return ("backward",)
            case CompatibilityMode.FORWARD:
                return ("forward",)
            case _:
                return ("backward", "forward")


class DeclaredColumn(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """A column by its dotted path. `logical_type` is a kind such as `integer`, and matches every
    type of that kind.

    `required` is None in an observed schema: events do not state whether the column may be absent.
    `nullable` is None if the file does not state it.
    """

    name: str
    type: str = ""
    logical_type: LogicalType | None = None
    required: bool | None = None
    nullable: bool | None = None
    description: str = ""

    @property
    def shown_type(self) -> str:
        """Return the type as messages show it."""
        return self.type or self.logical_type or "unknown"


class SchemaIncompatibility(msgspec.Struct, kw_only=True, frozen=True):
    """A column that breaks readers. `breaks`: readers of the old or of the new schema."""

    column: str
    direction: Literal["backward", "forward"]
    message: str


class SchemaCheck(MappingStruct, kw_only=True):
    """Whether a schema is compatible with the one before it.

    `old` and `new` name the two: a version of the dataset, or a file. The check is complete if the
    types of all columns that both have are known.
    """

    dataset: str
    mode: CompatibilityMode
    old: str
    new: str
    compatible: bool
    incompatibilities: list[SchemaIncompatibility]
    complete: bool
    blind_spots: list[BlindSpot]


class SchemaDiff(MappingStruct, kw_only=True):
    """The columns that differ between two versions of a schema."""

    dataset: str
    old: int
    new: int
    added: list[DeclaredColumn]
    removed: list[DeclaredColumn]
    retyped: list[RetypedColumn]


class NumberedSchema(msgspec.Struct, kw_only=True):
    """A version of a schema with its number; the first is 1. `current`: the last one seen."""

    number: int
    current: bool
    version: SchemaVersion


class SchemaRegistry(MappingStruct, kw_only=True):
    """The versions of a dataset's schema, the oldest first."""

    dataset: str
    versions: list[NumberedSchema]
