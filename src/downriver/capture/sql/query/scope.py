"""The scope of a query: which relations and columns its names refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.columns.dependencies import Certainty, Deps, merge
from downriver.columns.relations import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from downriver.columns.relations import Relation, Star


class QueryScope:
    """The relations of one FROM clause, inside those of the query around it."""

    __slots__ = (
        "aliases", "ctes", "generates", "is_hierarchy", "items", "lateral_aliases", "merged",
        "outer", "sources", "windows",
    )  # fmt: skip

    def __init__(self, outer: QueryScope | None, ctes: dict[str, Relation]) -> None:
        self.outer = outer
        self.ctes = ctes
        self.sources: dict[str, Relation] = {}
        self.merged: dict[str, Deps] = {}  # USING and NATURAL columns: one column of both sides
        self.aliases: dict[str, Column] = {}  # select items seen so far
        self.is_hierarchy = False  # whether there is a CONNECT BY
        self.lateral_aliases = False  # whether select items may use the ones before them
        self.items: Sequence[Column | Star] = ()  # what positions and ALL mean
        self.windows: dict[str, exp.Expression] = {}  # by the names of a WINDOW clause
        self.generates: Deps = {}  # what select items that make rows make them of

    def find_cte(self, name: str) -> Relation | None:
        """Return the query a name stands for here."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.ctes:
                return scope.ctes[name]
            scope = scope.outer
        return None

    def find_source(self, name: str) -> Relation | None:
        """Return the relation with this alias, here or around here."""
        scope: QueryScope | None = self
        while scope is not None:
            if name in scope.sources:
                return scope.sources[name]
            scope = scope.outer
        return None

    def find_column(self, name: str) -> Column | None:
        """Return what an unqualified column means: the innermost scope that may have it."""
        scope: QueryScope | None = self
        while scope is not None:
            column = scope._find_here(name)
            if column is not None:
                return column
            scope = scope.outer
        return None

    def find_outdated(self, name: str) -> Column | None:
        """Return a column of no table here, as far as schemas tell: one of them is outdated."""
        found = [c for c in (r.outdated(name) for r in self.sources.values()) if c is not None]
        if len(found) == 1 and len(self.sources) == 1:
            return found[0]
        deps: Deps = {}
        for column in found:
            merge(deps, dict.fromkeys(column.deps, int(Certainty.AMBIGUOUS)))
        return Column(name, deps) if deps else None

    def knows(self, name: str) -> bool:
        """Return whether there certainly is a column of this name, here or around here."""
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
        return self._guess(name) or alias

    def _guess(self, name: str) -> Column | None:
        """Return the column of the relations whose columns we do not know."""
        candidates = [relation for relation in self.sources.values() if relation.open]
        found = [c for c in (r.find(name, Certainty.INFERRED) for r in candidates) if c is not None]
        if len(found) <= 1:
            return found[0] if found else None
        deps: Deps = {}
        for column in found:
            merge(deps, dict.fromkeys(column.deps, int(Certainty.AMBIGUOUS)))
        return Column(name, deps)
