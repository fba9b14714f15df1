"""What `parse_sql_lineage` returns."""

from __future__ import annotations

from typing import Literal

import msgspec


class ColumnRef(msgspec.Struct, frozen=True, order=True):
    """A column of a table, by name; `*` is every column of a table whose schema is unknown."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"{self.table}.{self.column}"


class ColumnEdge(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One output column depends on one input column.

    `target.column` is `*` when the input decides which rows there are: it concerns every column.
    """

    source: ColumnRef
    target: ColumnRef
    type: Literal["DIRECT", "INDIRECT"]
    subtype: str
    masking: bool = False
    resolution: Literal["exact", "inferred", "ambiguous"] = "exact"
    expression: str = ""


class SqlBlindSpot(msgspec.Struct, frozen=True, order=True):
    """Something in a statement that could not be seen through."""

    kind: str
    message: str
    line: int = 0
    column: int = 0


class StatementLineage(msgspec.Struct, kw_only=True):
    """The lineage of one statement.

    `column_edges` concern one output column each; `dataset_edges` concern every row of the output.
    A statement that drops, empties or renames tables has a `lifecycle` and the tables `changed`.
    One in the body of a procedure or function has the name of that `routine`.
    """

    kind: str
    line: int
    sql: str
    inputs: list[str] = []
    outputs: list[str] = []
    columns: list[str] = []
    column_edges: list[ColumnEdge] = []
    dataset_edges: list[ColumnEdge] = []
    lifecycle: str | None = None
    changed: list[str] = []
    routine: str = ""
    blind_spots: list[SqlBlindSpot] = []


class SqlLineage(msgspec.Struct, kw_only=True):
    """The lineage of a script: each statement's, and what it reads and writes as a whole."""

    dialect: str
    dialect_guessed: bool
    statements: list[StatementLineage]
    inputs: list[str]
    outputs: list[str]
    column_edges: list[ColumnEdge]
    dataset_edges: list[ColumnEdge]
    blind_spots: list[SqlBlindSpot]

    @property
    def complete(self) -> bool:
        """True when nothing in the script is known to be hidden from us."""
        return not self.blind_spots

    def end_to_end(self) -> SqlLineage:
        """Return the same lineage with the tables in between left out.

        A script that fills `b` from `a` and then `c` from `b` has edges a → b and b → c; end to end
        it has a → c. Tables the script drops again are left out too, and renamed ones go by their
        last name. `statements` stay as they are.
        """
        from downriver.capture.sql.composing import compose

        return compose(self)
