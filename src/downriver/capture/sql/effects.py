"""What a statement does: the tables it reads, and what it writes to each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from downriver.capture.sql.deps import Deps, TableName
    from downriver.capture.sql.relations import Column, Relation, Star

UNKNOWN_TARGET = ("dynamic_sql", "which table is written is known only when it runs")


class Written(NamedTuple):
    """What a statement does to one table: the columns it fills, and what decides the rows."""

    table: TableName
    columns: list[Column | Star]
    rows: Deps


class Effect(NamedTuple):
    """What a statement does.

    `result` is what a query returns to whoever asked. `lifecycle` says that tables were dropped,
    emptied, renamed or changed rather than filled. `defines` are the columns a DDL statement
    names, and `temporary` tables are seen through by the statements after this one.
    """

    kind: str
    inputs: list[TableName]
    written: list[Written]
    result: Relation | None = None
    lifecycle: str | None = None
    defines: dict[TableName, list[str]] | None = None
    temporary: bool = False
    replaces: bool = False
    hidden: tuple[tuple[str, str], ...] = ()
