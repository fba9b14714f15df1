"""Relations: the rows of a table, query or data frame, with their columns and dependencies."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from downriver.columns.dependencies import (
    Certainty,
    DependencyKind,
    Deps,
    TableName,
    direct,
    indirect,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Column:
    """A column of a relation: its name and what its value depends on.

    `fields` holds the parts of a struct that was built in the query, so that projecting one of them
    later does not depend on the others.
    """

    __slots__ = ("deps", "expression", "fields", "name")

    def __init__(
        self,
        name: str,
        deps: Deps,
        expression: str = "",
        fields: dict[str, Column] | None = None,
    ) -> None:
        self.name = name
        self.deps = deps
        self.expression = expression
        self.fields = fields

    def with_name(self, name: str) -> Column:
        """Return this column under another name."""
        found = copy(self)
        found.name = name
        return found

    def with_deps(self, deps: Deps) -> Column:
        """Return this column with other dependencies."""
        found = copy(self)
        found.deps = deps
        return found


class Star:
    """All columns of a table whose schema is unknown, except some; each under its own name.

    In a set operation the first query's star stands for those of all: `united` are the other
    queries, and their own stars are `shown` by the first.
    """

    __slots__ = ("dropped", "shown", "table", "united")

    def __init__(
        self,
        table: TableName,
        dropped: frozenset[str] = frozenset(),
        united: tuple[Relation, ...] = (),
        *,
        shown: bool = False,
    ) -> None:
        self.table = table
        self.dropped = dropped
        self.united = united
        self.shown = shown

    def without(self, names: Iterable[str]) -> Star:
        """Return a star that shows some columns less."""
        return Star(self.table, self.dropped.union(names), self.united, shown=self.shown)

    def column(self, name: str, sure: int) -> Column:
        """Return one of the columns this stands for."""
        if not self.united:
            return Column(name, {(self.table, name, DependencyKind.IDENTITY, False): sure})
        # Which column of the others this one is united with, their names can only suggest.
        deps: Deps = {
            (self.table, name, DependencyKind.IDENTITY, False): max(sure, Certainty.INFERRED)
        }
        for relation in self.united:
            found = relation.find(name, Certainty.INFERRED)
            if found is not None:
                merge(deps, found.deps)
        return Column(name, deps)


class Relation:
    """The rows of a table or query: its columns in order, and what decides which rows there are."""

    __slots__ = ("_by_name", "_stars", "items", "reads", "rows", "table")

    def __init__(
        self,
        items: list[Column | Star],
        rows: Deps,
        table: TableName | None = None,
        reads: Sequence[TableName] = (),
    ) -> None:
        self.items = items
        self.rows = rows
        self.reads = reads  # the tables to name as inputs where these rows are used
        self.table = table  # the one these are all the rows of
        self._by_name: dict[str, Column] | None = None
        self._stars: list[Star] = [item for item in items if isinstance(item, Star)]

    @property
    def open(self) -> bool:
        """True when there are columns we do not know of."""
        return bool(self._stars)

    @property
    def columns(self) -> list[Column]:
        """The columns that are known."""
        return [item for item in self.items if isinstance(item, Column)]

    @property
    def stars(self) -> list[Star]:
        """The tables of which any column may be here."""
        return self._stars

    def known(self, name: str) -> Column | None:
        """Return a column that certainly exists."""
        if self._by_name is None:
            self._by_name = {}
            for item in self.items:
                if isinstance(item, Column):
                    self._by_name.setdefault(item.name, item)
            # Schemas are written in any case, and few engines tell columns apart by it.
            for written, column in list(self._by_name.items()):
                self._by_name.setdefault(written.casefold(), column)
        found = self._by_name.get(name)
        return found if found is not None else self._by_name.get(name.casefold())

    def find(self, name: str, sure: int = Certainty.EXACT) -> Column | None:
        """Return a column by name; in an open relation any name may exist."""
        column = self.known(name)
        if column is not None:
            return column
        candidates = [s for s in self._stars if name not in s.dropped and not s.shown]
        if not candidates:
            return None
        if len(candidates) == 1:
            return candidates[0].column(name, sure)
        deps: Deps = {}
        for star in candidates:
            merge(deps, star.column(name, Certainty.AMBIGUOUS).deps)
        return Column(name, deps)

    def outdated(self, name: str) -> Column | None:
        """Return a column that a query uses and the table's schema does not know, or no more."""
        if self.table is None:
            return None
        return Column(
            name, {(self.table, name, DependencyKind.IDENTITY, False): Certainty.INFERRED}
        )

    def renamed(self, names: Iterable[str]) -> Relation:
        """Return the same rows with columns renamed by position, as `t(a, b)` does."""
        given = list(names)
        items: list[Column | Star] = []
        for at, item in enumerate(self.items):
            if at >= len(given):
                items.append(item)
            elif isinstance(item, Column):
                items.append(item.with_name(given[at]))
            else:
                # The columns of an unknown star take these names, in an order we cannot know.
                deps = item.column("*", Certainty.INFERRED).deps
                items += [Column(name, deps) for name in given[at:]]
                break
        return Relation(items, self.rows)


class OpaqueRelation(Relation):
    """Rows with columns that no one named: any other name is one of them."""

    __slots__ = ("_deps",)

    def __init__(
        self, deps: Deps, rows: Deps | None = None, items: Iterable[Column | Star] = ()
    ) -> None:
        decides = indirect(deps, DependencyKind.JOIN) if rows is None else rows
        super().__init__([*items, Column("*", deps)], decides)
        self._deps = deps

    @property
    def open(self) -> bool:
        """Any column may exist."""
        return True

    def find(self, name: str, sure: int = Certainty.EXACT) -> Column | None:
        """Return a column that is known, or any: it may depend on everything here."""
        return self.known(name) or Column(name, self._deps)


def united(relations: list[Relation], rows: Deps) -> Relation:
    """Return a set operation: columns by position, under the names of the first."""
    first, *others = relations
    items: list[Column | Star] = []
    for at, item in enumerate(first.items):
        if isinstance(item, Star):
            items.append(Star(item.table, item.dropped, (*item.united, *others), shown=item.shown))
            continue
        deps = dict(item.deps)
        for other in others:
            match = other.items[at] if at < len(other.items) and not other.open else None
            if match is None and other.open:
                match = other.find(item.name, Certainty.INFERRED)
            if isinstance(match, Column):
                merge(deps, match.deps)
        items.append(item.with_deps(deps))
    if first.open:  # else the first query has all the columns there are
        items += [
            Star(star.table, star.dropped, star.united, shown=True)
            for other in others
            for star in other.stars
        ]
    return Relation(items, rows)


def united_by_name(relations: list[Relation], rows: Deps) -> Relation:
    """Return a set operation BY NAME: columns of the same name are one."""
    merged: dict[str, Deps] = {}
    stars: list[Column | Star] = []
    for relation in relations:
        for item in relation.items:
            if isinstance(item, Star):
                stars.append(item)
            else:
                merge(merged.setdefault(item.name, {}), item.deps)
    items: list[Column | Star] = [Column(name, deps) for name, deps in merged.items()]
    return Relation([*items, *stars], rows)


def opaque_column(
    relation: Relation, name: str, kind: int = DependencyKind.TRANSFORMATION
) -> Column:
    """Return a column made of everything in a relation, when we cannot know of which part."""
    deps: Deps = {}
    for item in relation.items:
        source = item if isinstance(item, Column) else item.column("*", Certainty.INFERRED)
        merge(deps, direct(source.deps, kind))
    return Column(name, deps)
