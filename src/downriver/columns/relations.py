"""Relations: the rows of a table, query or data frame, with what each column depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    Deps,
    TableName,
    indirect,
    merge,
    merge_all,
    source,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Definition(Protocol):
    """The expression that computes a column."""

    def text(self) -> str:
        """Return the expression in its own language, "" when it cannot be printed."""


class Computation:
    """How a value is computed. Instances are compared by identity."""

    __slots__ = ()


class Column:
    """A column of a relation: its name and what its value depends on.

    `definition` is the expression that computes it. `fields` are the parts of a struct that was
    built in the query, so that selecting one of them does not depend on the others. `number` is for
    sources that identify columns by number, as Spark does. `computation` is what a listener of the
    script has recorded about the value. It stays with the value under other names.
    """

    __slots__ = ("computation", "definition", "deps", "fields", "name", "number")

    def __init__(
        self,
        name: str,
        deps: Deps,
        *,
        definition: Definition | None = None,
        fields: dict[str, Column] | None = None,
        number: int | None = None,
        computation: Computation | None = None,
    ) -> None:
        self.name = name
        self.deps = deps
        self.definition = definition
        self.fields = fields
        self.number = number
        self.computation = computation

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Column):
            return NotImplemented
        return (self.name, self.deps, self.fields, self.number) == (
            other.name,
            other.deps,
            other.fields,
            other.number,
        )

    def __repr__(self) -> str:
        return f"Column({self.name!r}, {self.deps!r})"

    def with_name(self, name: str, number: int | None = None) -> Column:
        """Return this column under another name."""
        return Column(
            name,
            self.deps,
            definition=self.definition,
            fields=self.fields,
            number=number,
            computation=self.computation,
        )

    def with_deps(self, deps: Deps) -> Column:
        """Return this column with other dependencies."""
        return Column(
            self.name, deps, definition=self.definition, fields=self.fields, number=self.number
        )


class Star:
    """All columns of a table whose schema is unknown, except those `dropped`.

    In a union, the star of the first query represents the stars of all: `branches` are the other
    queries. Their own stars follow as `covered` and are not searched by name.
    """

    __slots__ = ("_folded", "branches", "covered", "dropped", "table")

    def __init__(
        self,
        table: TableName,
        dropped: frozenset[str] = frozenset(),
        branches: tuple[Relation, ...] = (),
        *,
        covered: bool = False,
    ) -> None:
        self.table = table
        self.dropped = dropped
        self.branches = branches
        self.covered = covered
        self._folded = frozenset(map(str.casefold, dropped)) if dropped else dropped

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Star):
            return NotImplemented
        return (self.table, self.dropped, self.branches, self.covered) == (
            other.table,
            other.dropped,
            other.branches,
            other.covered,
        )

    def __repr__(self) -> str:
        return f"Star({self.table!r}, {sorted(self.dropped)!r})"

    def without(self, names: Iterable[str]) -> Star:
        """Return this star with more columns dropped."""
        return Star(self.table, self.dropped.union(names), self.branches, covered=self.covered)

    def may_have(self, name: str) -> bool:
        """Return whether a column of this name may be among the columns."""
        return name.casefold() not in self._folded

    def column(self, name: str, certainty: int = Certainty.INFERRED) -> Column:
        """Return one of the columns; `*` is all of them."""
        if not self.branches:
            return Column(name, source(self.table, name, certainty))
        # Only the name suggests which columns of the other branches are in the same position.
        deps = source(self.table, name, max(certainty, Certainty.INFERRED))
        for relation in self.branches:
            match = relation.find(name, Certainty.INFERRED)
            if match is not None:
                merge(deps, match.deps)
        return Column(name, deps)


Item: TypeAlias = Column | Star


class Relation:
    """The columns of a set of rows, in order, and the dependencies of the choice of rows.

    `rows` is never changed in place, because relations share it. `unnamed` is true when some
    columns have unknown names, as in the result of unknown code. Any other name may then be one of
    them. `table` is set if all rows come from this table. `reads` are the tables to list as inputs
    where the relation is used, if they are not the relation's own.
    """

    __slots__ = (
        "_by_name",
        "_by_number",
        "_columns",
        "_stars",
        "items",
        "reads",
        "rows",
        "table",
        "unnamed",
    )  # fmt: skip

    def __init__(
        self,
        items: Sequence[Item],
        rows: Deps = NOTHING,
        *,
        unnamed: Deps | None = None,
        table: TableName | None = None,
        reads: Sequence[TableName] = (),
    ) -> None:
        self.items = items
        self.rows = rows
        self.unnamed = unnamed
        self.table = table
        self.reads = reads
        self._columns: list[Column] | None = None
        self._stars: list[Star] | None = None
        self._by_name: dict[str, Column] | None = None
        self._by_number: dict[int, Column] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Relation):
            return NotImplemented
        return (
            list(self.items) == list(other.items)
            and self.rows == other.rows
            and self.unnamed == other.unnamed
        )

    def __repr__(self) -> str:
        return f"Relation({list(self.items)!r}, {self.rows!r})"

    @property
    def columns(self) -> list[Column]:
        """The known columns."""
        if self._columns is None:
            self._columns = [item for item in self.items if isinstance(item, Column)]
        return self._columns

    @property
    def stars(self) -> list[Star]:
        """The tables whose columns may all occur here."""
        if self._stars is None:
            self._stars = [item for item in self.items if isinstance(item, Star)]
        return self._stars

    @property
    def open(self) -> bool:
        """True when there may be columns that are not listed."""
        return self.unnamed is not None or bool(self.stars)

    def known(self, name: str) -> Column | None:
        """Return a column that certainly exists."""
        if self._by_name is None:
            self._by_name = {}
            for column in self.columns:
                self._by_name.setdefault(column.name, column)
            # Schemas come in any case, and few engines distinguish columns by case.
            for written, column in list(self._by_name.items()):
                self._by_name.setdefault(written.casefold(), column)
        columns = self._by_name.get(name)
        return columns if columns is not None else self._by_name.get(name.casefold())

    def find(self, name: str, certainty: int = Certainty.EXACT) -> Column | None:
        """Return a column by name; in an open relation any name may exist."""
        column = self.known(name)
        if column is not None:
            return column
        if self.unnamed is not None:
            return Column(name, self.unnamed)
        candidates = [star for star in self.stars if star.may_have(name) and not star.covered]
        if not candidates:
            return None
        if len(candidates) == 1:
            return candidates[0].column(name, certainty)
        return Column(
            name, merge_all(star.column(name, Certainty.AMBIGUOUS).deps for star in candidates)
        )

    def find_number(self, number: int) -> Column | None:
        """Return a column by its number."""
        if self._by_number is None:
            self._by_number = {c.number: c for c in self.columns if c.number is not None}
        return self._by_number.get(number)

    def find_unlisted(self, name: str) -> Column | None:
        """Return a column of the table that its schema does not list: the schema may be old."""
        if self.table is None:
            return None
        return Column(name, source(self.table, name, Certainty.INFERRED))

    def value(self) -> Deps:
        """Return what any of the columns depends on."""
        return merge_all(
            (item if isinstance(item, Column) else item.column("*")).deps for item in self.items
        )

    def influenced(self, deps: Deps, kind: int) -> Relation:
        """Return the same columns, with rows that also depend on `deps`."""
        if not deps:
            return self
        rows = dict(self.rows)
        merge(rows, indirect(deps, kind))
        return Relation(self.items, rows, unnamed=self.unnamed)

    def renamed(self, names: Iterable[str]) -> Relation:
        """Return the same rows with columns renamed by position, as `t(a, b)` does."""
        new_names = list(names)
        items: list[Item] = []
        for at, item in enumerate(self.items):
            if at >= len(new_names):
                items.append(item)
            elif isinstance(item, Column):
                items.append(item.with_name(new_names[at]))
            else:
                # The order of the columns of a star is unknown.
                deps = item.column("*").deps
                items += [Column(name, deps) for name in new_names[at:]]
                break
        return Relation(items, self.rows)

    def renamed_columns(self, names: Mapping[str, str]) -> Relation:
        """Return the same rows with columns renamed by name."""
        new_names = {old.casefold(): new for old, new in names.items()}
        items: list[Item] = []
        for item in self.items:
            if isinstance(item, Column):
                items.append(
                    item.with_name(new_names.get(item.name.casefold(), item.name), item.number)
                )
            else:
                items.append(item.without(new_names))
        for old, new in names.items():
            column = self.find(old) if self.known(old) is None else None
            if column is not None:
                items.append(column.with_name(new))
        return Relation(items, self.rows, unnamed=self.unnamed)

    def with_column(self, name: str, deps: Deps) -> Relation:
        """Return the same rows with a column added or replaced."""
        items = [*self._items_without([name]), Column(name, deps)]
        return Relation(items, self.rows, unnamed=self.unnamed)

    def without(self, names: Iterable[str]) -> Relation:
        """Return the same rows without some columns."""
        return Relation(self._items_without(names), self.rows, unnamed=self.unnamed)

    def _items_without(self, names: Iterable[str]) -> list[Item]:
        new_names = list(names)
        dropped = {name.casefold() for name in new_names}
        return [
            item.without(new_names) if isinstance(item, Star) else item
            for item in self.items
            if isinstance(item, Star) or item.name.casefold() not in dropped
        ]
