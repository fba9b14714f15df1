"""The listener of a script: what it is told about names, joins and columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.columns.relations import Column, Relation, Star


class ScriptListener:
    """Hears of every name a walk looks up. This one does not care.

    Where it `trusts_schemas`, a column that a table's schema lacks does not exist; otherwise the
    schema may be older than the statement, and the column is taken to be there.
    """

    trusts_schemas = False

    def column(self, node: exp.Expression, scope: QueryScope, found: Column | None) -> None:
        """A column was looked up; None when nothing has that name."""

    def using(self, name: exp.Expression, before: Sequence[Relation], joined: Relation) -> None:
        """USING names a column that both sides of a join must have."""

    def natural_join(
        self,
        join: exp.Expression,
        names: Sequence[str],
        before: Sequence[Relation],
        joined: Relation,
    ) -> None:
        """A NATURAL JOIN is by the columns of these names, which both sides have."""

    def star(self, star: exp.Expression, items: Sequence[Column | Star]) -> None:
        """A star stands for these columns, before EXCEPT and its like are applied."""

    def computed(self, node: exp.Expression, column: Column) -> None:
        """A column of a query has the value of an expression."""

    def united(self, node: exp.Expression, branches: Sequence[Relation], result: Relation) -> None:
        """A set operation made one relation of several."""


NO_LISTENER = ScriptListener()
