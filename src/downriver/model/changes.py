"""What someone wants to change: one struct a kind of change, closed as a union.

On the wire a change is an object with a `type`, as in
`{"type": "column_rename", "from": "order_total", "to": "total_amount"}`. `dataset` names what is
changed, where the request as a whole does not.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class _Change(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What every change has: the dataset it is made to, as people write it."""

    dataset: str = ""


class ColumnRename(_Change, kw_only=True, frozen=True, tag="column_rename"):
    """A column gets another name."""

    column: str = msgspec.field(name="from")
    to: str

    def __str__(self) -> str:
        return f"rename {self.dataset}.{self.column} to {self.to}"


class ColumnDrop(_Change, kw_only=True, frozen=True, tag="column_drop"):
    """A column goes."""

    column: str

    def __str__(self) -> str:
        return f"drop {self.dataset}.{self.column}"


class ColumnAdd(_Change, kw_only=True, frozen=True, tag="column_add"):
    """A column comes; `required` means NOT NULL without a default, so writers must fill it."""

    column: str
    data_type: str = ""
    required: bool = False

    def __str__(self) -> str:
        return f"add {'required ' if self.required else ''}{self.dataset}.{self.column}"


class TypeChange(_Change, kw_only=True, frozen=True, tag="type_change"):
    """A column gets another type; the old one is taken from the catalog where it is not given."""

    column: str
    to: str
    old: str = msgspec.field(name="from", default="")

    def __str__(self) -> str:
        return f"change the type of {self.dataset}.{self.column} to {self.to}"


class NullabilityChange(_Change, kw_only=True, frozen=True, tag="nullability_change"):
    """A column may be null from now on, or may no longer be."""

    column: str
    nullable: bool

    def __str__(self) -> str:
        return f"make {self.dataset}.{self.column} {'nullable' if self.nullable else 'NOT NULL'}"


class TableRename(_Change, kw_only=True, frozen=True, tag="table_rename"):
    """A dataset gets another name."""

    to: str

    def __str__(self) -> str:
        return f"rename {self.dataset} to {self.to}"


class TableDrop(_Change, kw_only=True, frozen=True, tag="table_drop"):
    """A dataset goes."""

    def __str__(self) -> str:
        return f"drop {self.dataset}"


class Deprecation(_Change, kw_only=True, frozen=True, tag="deprecation"):
    """A dataset, or one of its columns, is to go later: who still uses it?"""

    column: str = ""

    def __str__(self) -> str:
        return f"deprecate {_place(self.dataset, self.column)}"


class LogicChange(_Change, kw_only=True, frozen=True, tag="logic_change"):
    """Values are computed in another way; without `columns` all of them, or the choice of rows."""

    columns: list[str] = []

    def __str__(self) -> str:
        return f"change the logic of {_place(self.dataset, ', '.join(self.columns))}"


class SchemaChange(_Change, kw_only=True, frozen=True, tag="schema_change"):
    """Columns are to change, and no one says yet which or how: everyone who reads them may fail."""

    def __str__(self) -> str:
        return f"change the schema of {self.dataset}"


Change: TypeAlias = (
    ColumnRename
    | ColumnDrop
    | ColumnAdd
    | TypeChange
    | NullabilityChange
    | TableRename
    | TableDrop
    | Deprecation
    | LogicChange
    | SchemaChange
)

CHANGE_TYPES = (
    "column_rename", "column_drop", "column_add", "type_change", "nullability_change",
    "table_rename", "table_drop", "deprecation", "logic_change", "schema_change",
)  # fmt: skip


def change_type(change: Change) -> str:
    """Return the word by which a change goes on the wire."""
    return str(change.__struct_config__.tag)


def with_dataset(change: Change, dataset: str) -> Change:
    """Return the same change made to a dataset named in full."""
    return msgspec.structs.replace(change, dataset=dataset)


def _place(dataset: str, column: str) -> str:
    return f"{dataset}.{column}" if column else dataset
