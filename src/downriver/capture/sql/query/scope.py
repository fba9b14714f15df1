"""The scope of a query: the relations and columns that its names refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.columns import (
    Certainty,
    Column,
    Deps,
    find_likeliest,
    indirect,
    merge,
    merge_all,
    weaken,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from downriver.columns import Item, Relation, TableName


class QueryScope:
    """The relations of one FROM clause, inside the scope of the query around it."""

    __slots__ = (
        "aliases", "ctes", "is_hierarchy", "items", "lateral_aliases", "merged", "outer", "rows",
        "sources", "uses", "windows",
    )  # fmt: skip

    def __init__(
        self, outer: QueryScope | None = None, ctes: dict[str, Relation] | None = None
    ) -> None:
        self.outer = outer
        self.ctes: dict[str, Relation] = {} if ctes is None else ctes
        self.sources: dict[str, Relation] = {}  # by alias
        self.rows: Deps = {}  # dependencies of the rows of the FROM clause
        self.merged: dict[str, Deps] = {}  # columns of USING and NATURAL, which both sides have
        self.items: Sequence[Item] = ()  # the select list, for `ORDER BY 2` and `GROUP BY ALL`
        self.aliases: dict[str, Column] = {}  # the named columns of the select list so far
        self.lateral_aliases = False  # whether a select item may use earlier ones
        self.is_hierarchy = False  # whether there is a CONNECT BY
        self.windows: dict[str, exp.Expression] = {}  # of the WINDOW clause, by name
        self.uses: dict[TableName, set[str]] | None = None  # columns named with their table

    @classmethod
    def over(cls, relation: Relation, outer: QueryScope | None = None) -> QueryScope:
        """Return a scope whose only source is this relation."""
        scope = cls(outer)
        scope.sources["\x00"] = relation
        scope.items = relation.items
        return scope

    def influence(self, deps: Deps, kind: int) -> None:
        """Add dependencies of the rows."""
        merge(self.rows, indirect(deps, kind))

    def find_cte(self, name: str) -> Relation | None:
        """Return the relation of a WITH clause, of this query or one around it."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.ctes:
                return scope.ctes[name]
            scope = scope.outer
        return None

    def find_source(self, name: str) -> Relation | None:
        """Return the relation with this alias, of this query or one around it."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.sources:
                return scope.sources[name]
            scope = scope.outer
        return None

    def find_column(self, name: str) -> Column | None:
        """Return the column that an unqualified name refers to: the innermost one that fits."""
        scope: QueryScope | None = self
        while scope is not None:
            column = scope._find_here(name)
            if column is not None:
                return column
            scope = scope.outer
        return None

    def find_unlisted(self, name: str) -> Column | None:
        """Return a column that no schema lists. A schema may be old, so any table may have it."""
        candidates = [relation.find_unlisted(name) for relation in self.sources.values()]
        columns = [column for column in candidates if column is not None]
        if len(columns) == 1 and len(self.sources) == 1:
            return columns[0]
        return _ambiguous(name, columns) if columns else None

    def knows(self, name: str) -> bool:
        """Return whether a column of this name certainly exists in this query or one around it."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.merged or name in scope.aliases:
                return True
            if any(source.known(name) is not None for source in scope.sources.values()):
                return True
            scope = scope.outer
        return False

    def _find_here(self, name: str) -> Column | None:
        if name in self.merged:
            return Column(name, self.merged[name])
        for relation in self.sources.values():
            column = relation.known(name)
            if column is not None:
                return column
        alias = self.aliases.get(name)
        if alias is not None and self.lateral_aliases:
            return alias
        return self._infer(name) or alias

    def _infer(self, name: str) -> Column | None:
        """Return the column of the relations whose columns are not all known."""
        candidates: dict[str, Column] = {}
        for alias, relation in self.sources.items():
            column = relation.find(name, Certainty.INFERRED) if relation.open else None
            if column is not None:
                candidates[alias] = column
        columns = list(candidates.values())
        if len(columns) <= 1:
            return columns[0] if columns else None
        return self._likeliest(name, candidates) or _ambiguous(name, columns)

    def _likeliest(self, name: str, candidates: dict[str, Column]) -> Column | None:
        """Return a column whose likeliest source is inferred and whose others are ambiguous."""
        tables: list[TableName] = []
        for alias in candidates:
            stars = self.sources[alias].stars
            if len(stars) != 1:
                return None
            tables.append(stars[0].table)
        best = find_likeliest(name, tables, list(candidates), self.find_uses())
        if best is None:
            return None
        columns = list(candidates.values())
        others = _ambiguous(name, columns[:best] + columns[best + 1 :])
        return columns[best].with_deps(merge_all([columns[best].deps, others.deps]))

    def find_uses(self) -> dict[TableName, set[str]] | None:
        """Return the columns that the script names with their table, by table."""
        scope: QueryScope | None = self
        while scope is not None:
            if scope.uses is not None:
                return scope.uses
            scope = scope.outer
        return None


def _ambiguous(name: str, columns: Sequence[Column]) -> Column:
    """Return a column that is one of several."""
    deps = merge_all(column.deps for column in columns)
    return Column(name, weaken(deps, Certainty.AMBIGUOUS))
