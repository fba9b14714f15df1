"""Tables that live no longer than the script: they are seen through, not reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.sql.deps import Deps, merge
from downriver.capture.sql.relations import Relation, Star, united_by_name

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.deps import TableName
    from downriver.capture.sql.effects import Effect, Written

_MARKS = ("#", "@")


class TemporaryTables:
    """The temporary tables and views a script has made so far, and what is in them."""

    def __init__(self, dialect: Dialect) -> None:
        self.relations: dict[TableName, Relation] = {}
        self._has_marks = type(dialect).__name__.lower() in ("tsql", "fabric", "redshift")

    def keep(self, effect: Effect, written: list[Written]) -> list[Written]:
        """Remember what a statement does to temporary tables; return what it does to others."""
        kept: list[Written] = []
        for one in written:
            if effect.temporary:
                rows = dict(one.rows)
                self.relations[one.table] = Relation(list(one.columns), rows, reads=effect.inputs)
            elif effect.lifecycle == "RENAME" and self._rename(one):
                continue
            elif self._is_temporary(one.table):
                self._change(effect, one)
            else:
                kept.append(one)
        return kept

    def _is_temporary(self, table: TableName) -> bool:
        if table in self.relations:
            return True
        return self._has_marks and len(table) == 1 and table[0].startswith(_MARKS)

    def _rename(self, written: Written) -> bool:
        for item in written.columns:
            if isinstance(item, Star) and item.table in self.relations:
                self.relations[written.table] = self.relations.pop(item.table)
                return True
        return False

    def _change(self, effect: Effect, written: Written) -> None:
        if effect.lifecycle == "DROP":
            self.relations.pop(written.table, None)
        elif effect.lifecycle is None:
            old = self.relations.get(written.table) or Relation([], {})
            rows: Deps = dict(old.rows)
            merge(rows, written.rows)
            new = Relation(list(written.columns), {})
            found = united_by_name([old, new], rows)
            found.reads = list(dict.fromkeys([*old.reads, *effect.inputs]))
            self.relations[written.table] = found
