"""The listener of a script: receives its statements, faults, and the names they look up."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.capture.sql.statements.context import StatementEffect, TableWrite
    from downriver.capture.sql.text.parse import ScriptStatement
    from downriver.columns import Column, Item, Relation, TableName


class StatementReading(NamedTuple):
    """What one statement does.

    `effect` is None when the statement moves no data, or only its blind spots are known. `writes`
    are all its writes, the result of a query included; `lasting_writes` are those to tables that
    outlive the script. `inputs` and `blind_spots` come from the statement's tree.
    """

    statement: ScriptStatement
    effect: StatementEffect | None = None
    writes: Sequence[TableWrite] = ()
    lasting_writes: Sequence[TableWrite] = ()
    inputs: Sequence[TableName] = ()
    blind_spots: Sequence[str] = ()


class ScriptFault(NamedTuple):
    """Why a statement could not be read: `too_deep`, `too_large` or `failed`."""

    kind: str
    message: str


class ScriptListener:
    """Receives the results of reading a script. The methods of this base class do nothing.

    With `trusts_schemas`, a column that a table's schema does not list does not exist. Otherwise,
    the schema may be older than the statement, and the column is assumed to exist.
    """

    trusts_schemas = False

    # Statements

    def statement(self, reading: StatementReading) -> None:
        """Receive a statement after it was read."""

    def fault(self, statement: ScriptStatement, fault: ScriptFault) -> None:
        """Receive a statement that could not be read."""

    # Names, while a statement is read

    def table(self, name: TableName) -> None:
        """Receive a name in a FROM clause: a table, a CTE, or an array of an earlier row."""

    def column(self, node: exp.Expression, scope: QueryScope, origin: Column | None) -> None:
        """Receive a column reference; `found` is None when the column does not exist."""

    def using(self, name: exp.Expression, before: Sequence[Relation], joined: Relation) -> None:
        """Receive a column of USING. Both sides of the join must have it."""

    def natural_join(
        self,
        join: exp.Expression,
        names: Sequence[str],
        before: Sequence[Relation],
        joined: Relation,
    ) -> None:
        """Receive a NATURAL JOIN and the columns that both sides have."""

    def star(self, star: exp.Expression, items: Sequence[Item]) -> None:
        """Receive a star and its columns, before EXCEPT, REPLACE and RENAME are applied."""

    def computed(self, node: exp.Expression, column: Column) -> None:
        """Receive a column that an expression computes."""

    def united(self, node: exp.Expression, branches: Sequence[Relation], result: Relation) -> None:
        """Receive a set operation: its branches and its result."""


NO_LISTENER = ScriptListener()
