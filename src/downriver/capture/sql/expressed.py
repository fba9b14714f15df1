"""Columns that are computed, and the SQL they are computed by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot.errors import SqlglotError

from downriver.capture.sql.relations import Column

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.dialects.dialect import Dialect

_LONGEST = 2_000  # characters
# An expression of thousands of terms can be followed but not printed (where sqlglot runs out of
# stack, the error may be its own), and some of what it parses it prints in no dialect but its own.
_UNPRINTABLE = (
    AttributeError,
    KeyError,
    RecursionError,
    SqlglotError,
    TypeError,
    ValueError,
)


class Expressed(Column):
    """A column whose expression text is written only when someone asks for it."""

    __slots__ = ("_dialect", "_node")

    def __init__(
        self, column: Column, node: exp.Expression, dialect: Dialect, *, named: bool
    ) -> None:
        self._node = node
        self._dialect = dialect
        name = column.name if named else self.text() or node.key
        super().__init__(name, column.deps, fields=column.fields)

    def text(self) -> str:
        """Return the SQL this column is computed by, nothing when it cannot be written."""
        try:
            text = str(self._node.sql(dialect=self._dialect, comments=False))
        except _UNPRINTABLE:
            return ""
        return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
