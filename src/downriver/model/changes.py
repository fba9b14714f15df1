"""Changes to datasets: one struct for each kind of change, closed as a union.

On the wire a change is an object with a `type`, as in
`{"type": "column_rename", "from": "order_total", "to": "total_amount"}`. `dataset` is the changed
dataset, unless the request names it for all changes.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec


class Outcome(str, Enum):
    """What happens to a consumer, the worst first."""

    FAILS = "fails"  # it ends in an error
    MAY_FAIL = "may_fail"  # it reads the dataset; the columns that it uses are unknown
    NOT_REBUILT = "not_rebuilt"  # it is skipped or keeps old data, because an upstream job fails
    CHANGES = "changes"  # it runs, and its values or columns change
    DEPRECATED = "deprecated"  # it still uses what is deprecated
    UNTOUCHED = "untouched"


class _Change(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The common part of all changes: the dataset, by a name or an id."""

    dataset: str = ""


class ColumnRename(_Change, kw_only=True, frozen=True, tag="column_rename"):
    """Rename a column."""

    column: str = msgspec.field(name="from")
    to: str

    def __str__(self) -> str:
        return f"rename {self.dataset}.{self.column} to {self.to}"


class ColumnDrop(_Change, kw_only=True, frozen=True, tag="column_drop"):
    """Drop a column."""

    column: str

    def __str__(self) -> str:
        return f"drop {self.dataset}.{self.column}"


class ColumnAdd(_Change, kw_only=True, frozen=True, tag="column_add"):
    """Add a column. `required` means NOT NULL without a default, so writers must fill it."""

    column: str
    data_type: str = ""
    required: bool = False

    def __str__(self) -> str:
        return f"add {'required ' if self.required else ''}{self.dataset}.{self.column}"


class TypeChange(_Change, kw_only=True, frozen=True, tag="type_change"):
    """Change the type of a column. The default of the old type is the type in the catalog."""

    column: str
    to: str
    old: str = msgspec.field(name="from", default="")

    def __str__(self) -> str:
        return f"change the type of {self.dataset}.{self.column} to {self.to}"


class NullabilityChange(_Change, kw_only=True, frozen=True, tag="nullability_change"):
    """Allow NULL in a column, or forbid it."""

    column: str
    nullable: bool

    def __str__(self) -> str:
        return f"make {self.dataset}.{self.column} {'nullable' if self.nullable else 'NOT NULL'}"


class TableRename(_Change, kw_only=True, frozen=True, tag="table_rename"):
    """Rename a dataset."""

    to: str

    def __str__(self) -> str:
        return f"rename {self.dataset} to {self.to}"


class TableDrop(_Change, kw_only=True, frozen=True, tag="table_drop"):
    """Drop a dataset."""

    def __str__(self) -> str:
        return f"drop {self.dataset}"


class Deprecation(_Change, kw_only=True, frozen=True, tag="deprecation"):
    """Deprecate a dataset or column: list the consumers that still use it."""

    column: str = ""

    def __str__(self) -> str:
        return f"deprecate {_place(self.dataset, self.column)}"


class LogicChange(_Change, kw_only=True, frozen=True, tag="logic_change"):
    """Change how values are computed. Without `columns`, any value or row may change."""

    columns: list[str] = []

    def __str__(self) -> str:
        return f"change the logic of {_place(self.dataset, ', '.join(self.columns))}"


class SchemaChange(_Change, kw_only=True, frozen=True, tag="schema_change"):
    """Change unspecified columns: every consumer may fail."""

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
    """Return the type of a change in JSON."""
    return str(change.__struct_config__.tag)


def with_dataset(change: Change, dataset: str) -> Change:
    """Return the same change with another name of the dataset."""
    return msgspec.structs.replace(change, dataset=dataset)


def _place(dataset: str, column: str) -> str:
    return f"{dataset}.{column}" if column else dataset
