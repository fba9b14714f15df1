"""The names in a SQL text: the columns that they refer to, and the names that do not resolve."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlglot import exp

from downriver.capture.sql.listener import ScriptListener
from downriver.columns.dependencies import NOTHING, DependencyKind, Deps, TableName
from downriver.columns.relations import Column, Computation, Star
from downriver.impact.simulate.script.node_places import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.columns.relations import Relation


_ALIASES_IN_WHERE = frozenset({"duckdb", "snowflake", "clickhouse", "teradata", "sqlite"})


class SqlProblem(NamedTuple):
    """A name that a database would reject, with its place."""

    kind: str
    node: exp.Expression | None
    name: str


class ColumnLookup(NamedTuple):
    """The lookup of a column: its place, and the base columns that it refers to."""

    node: exp.Expression
    name: str
    bases: tuple[tuple[TableName, str], ...]


class ComputedValue(Computation):
    """A value that an expression computes."""

    __slots__ = ("node",)

    def __init__(self, node: exp.Expression) -> None:
        self.node = node


class UnitedValue(Computation):
    """A column of a set operation: the values of one column of each branch."""

    __slots__ = ("branches",)

    def __init__(self, branches: Sequence[Column]) -> None:
        self.branches = branches


class ColumnValue(Protocol):
    """The value of a column: its dependencies, and how it is computed."""

    @property
    def deps(self) -> Deps:
        """The dependencies of the value."""

    @property
    def computation(self) -> Computation | None:
        """How the value is computed, None for a column of a table."""


class SqlProblems:
    """The names that a database would reject in one script, each place once for each kind."""

    def __init__(self) -> None:
        self._found: list[SqlProblem] = []
        self._places: set[tuple[str, int]] = set()
        self._names: set[tuple[str, str]] = set()  # of problems without a place

    def __iter__(self) -> Iterator[SqlProblem]:
        return iter(self._found)

    def __contains__(self, problem: SqlProblem) -> bool:
        if problem.node is None:
            return (problem.kind, problem.name) in self._names
        return (problem.kind, place_of(problem.node)) in self._places

    def add(self, kind: str, node: exp.Expression | None, name: str) -> None:
        """Add a problem, unless it is known at this place."""
        problem = SqlProblem(kind, node, name)
        if problem in self:
            return
        self._found.append(problem)
        if node is None:
            self._names.add((kind, name))
        else:
            self._places.add((kind, place_of(node)))


class ResolutionRecorder(ScriptListener):
    """Records the names that one reading of a script looks up, and those that do not resolve."""

    trusts_schemas = True

    def __init__(self, dialect_name: str) -> None:
        self._dialect_name = dialect_name
        self.lookups: list[ColumnLookup] = []
        self.problems = SqlProblems()
        self.plain_names: set[str] = set()  # of columns without a table name
        self.starred: set[TableName] = set()
        self.unread = False
        self.natural: list[tuple[str, ...]] = []  # the columns of each NATURAL JOIN
        self.joined: list[tuple[exp.Expression, Column, Column]] = []  # by USING and NATURAL
        self._found: dict[int, Column] = {}  # by the place of the reference

    def find(self, node: exp.Expression) -> Column | None:
        """Return the column that a reference refers to."""
        return self._found.get(place_of(node))

    # Names

    def column(self, node: exp.Expression, scope: QueryScope, origin: Column | None) -> None:
        """Record a lookup, and a problem if it finds no column or several."""
        parts = node.parts
        name = str(parts[-1].name)
        if len(parts) == 1:
            self.plain_names.add(name.casefold())
            if _is_ambiguous(name, scope):
                self.problems.add("ambiguous", node, name)
        if origin is None or self._is_alias_too_early(node, name, scope):
            self.problems.add("missing_column", node, name)
            return
        self._found[place_of(node)] = origin
        bases = tuple(
            (table, column)
            for (table, column, kind, _) in origin.deps
            if kind == DependencyKind.IDENTITY
        )
        self.lookups.append(ColumnLookup(node, name, bases))

    def _is_alias_too_early(self, node: exp.Expression, name: str, scope: QueryScope) -> bool:
        """Return whether WHERE uses a name of the select list, which most dialects reject."""
        if self._dialect_name in _ALIASES_IN_WHERE or len(node.parts) > 1:
            return False
        if name not in scope.aliases or scope.merged.get(name) is not None:
            return False
        if node.find_ancestor(exp.Where, exp.Select).__class__ is not exp.Where:
            return False
        current: QueryScope | None = scope
        while current is not None:
            if any(source.find(name) is not None for source in current.sources.values()):
                return False
            current = current.outer
        return True

    def using(self, name: exp.Expression, before: Sequence[Relation], joined: Relation) -> None:
        """Record the columns of USING; each must exist on both sides."""
        text = str(name.name)
        left = [column for side in before if (column := side.find(text)) is not None]
        right = joined.find(text)
        if not left or right is None:
            self.problems.add("missing_column", name, text)
        elif left:
            self.joined.append((name, left[0], right))
        for column in [*left, *([right] if right is not None else [])]:
            bases = tuple(
                (t, c) for (t, c, kind, _) in column.deps if kind == DependencyKind.IDENTITY
            )
            self.lookups.append(ColumnLookup(name, text, bases))

    def natural_join(
        self,
        join: exp.Expression,
        names: Sequence[str],
        before: Sequence[Relation],
        joined: Relation,
    ) -> None:
        """Record the columns of a NATURAL JOIN: all that exist on both sides."""
        self.natural.append(tuple(sorted(names)))
        if not names and not joined.open and not any(side.open for side in before):
            self.problems.add("natural", join, "no column is left to join on")
        for name in names:
            left = next((c for side in before if (c := side.find(name)) is not None), None)
            right = joined.find(name)
            if left is not None and right is not None:
                self.joined.append((join, left, right))
        for side in (*before, joined):
            for column in side.columns:
                self.starred.update(table for table, _, _, _ in column.deps)

    def star(self, star: exp.Expression, items: Sequence[Column | Star]) -> None:
        """Record the columns in EXCEPT, REPLACE and RENAME; each must exist."""
        known = {item.name.casefold() for item in items if isinstance(item, Column)}
        for item in items:
            if isinstance(item, Star):
                self.starred.add(item.table)
            else:
                self.starred.update(table for table, _, _, _ in item.deps)
        is_open = any(isinstance(item, Star) for item in items)
        for part in ("except_", "replace", "rename"):
            for named in star.args.get(part) or ():
                self._named_in_star(part, named, items, known, is_open)

    def _named_in_star(
        self,
        part: str,
        named: exp.Expression,
        items: Sequence[Column | Star],
        known: set[str],
        is_open: bool,
    ) -> None:
        inner = named
        if isinstance(named, exp.Alias):
            inner = named.args["alias"] if part == "replace" else named.this
        name = str(inner.name)
        if name.casefold() in known:
            for item in items:
                if isinstance(item, Column) and item.name.casefold() == name.casefold():
                    bases = tuple(
                        (t, c) for (t, c, kind, _) in item.deps if kind == DependencyKind.IDENTITY
                    )
                    self.lookups.append(ColumnLookup(inner, name, bases))
        elif not is_open or any(
            isinstance(i, Star) and name.casefold() in i.dropped for i in items
        ):
            self.problems.add("missing_column", inner, name)

    def computed(self, node: exp.Expression, column: Column) -> None:
        """Record the expression that computes a column, for its type."""
        if column.deps is not NOTHING and column.deps:
            column.computation = ComputedValue(node)

    def united(self, node: exp.Expression, branches: Sequence[Relation], result: Relation) -> None:
        """Record a set operation; its branches must have the same number of columns."""
        if any(branch.open for branch in branches) or node.args.get("by_name"):
            return
        counts = {len(branch.items) for branch in branches}
        if len(counts) > 1:
            self.problems.add("arity", node, "queries with different numbers of columns")
            return
        for at, item in enumerate(result.items):
            if isinstance(item, Column) and item.deps:
                item.computation = UnitedValue([branch.columns[at] for branch in branches])

    def missing_table(self, table: TableName) -> None:
        """Record a reference to a table that does not exist."""
        self.problems.add("missing_table", None, ".".join(table))

    # Meaning

    def is_base(self, table: str) -> bool:
        """Return whether a name is a table of the database, and not defined in the script."""
        return table.casefold() in self._base_names

    @property
    def _base_names(self) -> set[str]:
        return {table[-1].casefold() for lookup in self.lookups for table, _ in lookup.bases}

    def render_column(
        self,
        node: exp.Expression,
        render: Callable[[exp.Expression], str],
        renamed: Callable[[TableName, str], str],
    ) -> str:
        """Return the computation of a column as text."""
        column = self.find(node)
        if column is None:
            return f"?{str(node.name).casefold()}"
        return self.render_value(column, render, renamed)

    def render_value(
        self,
        column: ColumnValue,
        render: Callable[[exp.Expression], str],
        renamed: Callable[[TableName, str], str],
    ) -> str:
        """Return the expression that computes a column, or the base columns themselves."""
        if isinstance(column.computation, ComputedValue):
            return render(column.computation.node)
        return " | ".join(
            sorted(
                f"{'.'.join(t)}.{renamed(t, c)}:{int(k)}".casefold() for t, c, k, _ in column.deps
            )
        )


def _is_ambiguous(name: str, scope: QueryScope) -> bool:
    """Return whether two tables of the innermost scope with this name both have it."""
    current: QueryScope | None = scope
    folded = name.casefold()
    while current is not None:
        if folded in current.merged or name in current.merged:
            return False
        having = sum(1 for source in current.sources.values() if source.known(name) is not None)
        if having:
            return having > 1
        current = current.outer
    return False
