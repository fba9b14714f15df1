"""What is made of one statement before its lineage is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp

    from downriver.capture.sql.deps import TableName
    from downriver.capture.sql.effects import Effect
    from downriver.capture.sql.result import SqlBlindSpot


class Parsed(NamedTuple):
    """A statement: its tree, its effect when words alone tell it, or what is known without either.

    A query whose result goes to a file has that file as its `target`. `row` is what a loop calls
    the rows of a query, and `trigger` the table whose changes the statements after it are run for.
    """

    sql: str
    line: int
    tree: exp.Expression | None = None
    kind: str = "UNKNOWN"
    effect: Effect | None = None
    target: TableName | None = None
    inputs: tuple[TableName, ...] = ()
    outputs: tuple[TableName, ...] = ()
    blind_spots: tuple[SqlBlindSpot, ...] = ()
    routine: str = ""
    row: str = ""
    trigger: TableName | None = None
