"""What a walk over SQL looks up, kept: references, what does not resolve, and types."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from downriver.capture.sql.listener import ScriptListener
from downriver.columns.dependencies import NOTHING, DependencyKind, Deps, TableName
from downriver.columns.relations import Column, Star
from downriver.impact.simulate.column_types import (
    UNKNOWN,
    ColumnType,
    check_call,
    check_joined,
    common_type,
    literal_type,
    parse_type,
    result_type,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.query.scope import QueryScope
    from downriver.columns.relations import Relation
    from downriver.impact.simulate.job_script import TableSchemas


_ALIASES_IN_WHERE = frozenset({"duckdb", "snowflake", "clickhouse", "teradata", "sqlite"})


class SqlProblem(NamedTuple):
    """Something a database would refuse: where, and which name."""

    kind: str
    node: exp.Expression | None
    name: str


class ColumnLookup(NamedTuple):
    """A column that was looked up: where, and the base columns it means."""

    node: exp.Expression
    name: str
    bases: tuple[tuple[TableName, str], ...]


class ResolutionRecorder(ScriptListener):
    """Keeps what one reading of a script says."""

    trusts_schemas = True

    def __init__(self, dialect: Dialect, tables: TableSchemas, *, typed: bool) -> None:
        self._typed = typed
        self._dialect_name = type(dialect).__name__.lower()
        self._tables = tables
        self.lookups: list[ColumnLookup] = []
        self.problems: dict[tuple[str, int], SqlProblem] = {}
        self.plain_names: set[str] = set()  # that no table name stands before
        self.starred: set[TableName] = set()
        self.unread = False
        self.natural: dict[int, tuple[str, ...]] = {}  # the columns each NATURAL JOIN is by
        self._joined: list[tuple[exp.Expression, Column, Column]] = []  # by USING and NATURAL
        # A column's dependencies are one object wherever the column goes: it tells who it is.
        self._nodes: dict[int, exp.Expression] = {}
        self._types: dict[int, ColumnType] = {}
        self._found: dict[int, Column] = {}
        self._united: dict[int, list[Column]] = {}
        self._alive: list[Deps] = []

    # What the walk tells

    def column(self, node: exp.Expression, scope: QueryScope, found: Column | None) -> None:
        """Keep a lookup, and note when it finds nothing or too much."""
        parts = node.parts
        name = str(parts[-1].name)
        if len(parts) == 1:
            self.plain_names.add(name.casefold())
            if _is_ambiguous(name, scope):
                self.problem("ambiguous", node, name)
        if found is None or self._is_alias_too_early(node, name, scope):
            self.problem("missing_column", node, name)
            return
        self._found[id(node)] = found
        bases = tuple(
            (table, column)
            for (table, column, kind, _) in found.deps
            if kind == DependencyKind.IDENTITY
        )
        self.lookups.append(ColumnLookup(node, name, bases))

    def _is_alias_too_early(self, node: exp.Expression, name: str, scope: QueryScope) -> bool:
        """In most dialects WHERE comes before the select list, and knows none of its names."""
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
        """USING needs its column on both sides."""
        text = str(name.name)
        left = [column for side in before if (column := side.find(text)) is not None]
        right = joined.find(text)
        if not left or right is None:
            self.problem("missing_column", name, text)
        elif left:
            self._joined.append((name, left[0], right))
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
        """A NATURAL JOIN is by whatever columns both sides have."""
        self.natural[id(join)] = tuple(sorted(names))
        if not names and not joined.open and not any(side.open for side in before):
            self.problem("natural", join, "no column is left to join on")
        for name in names:
            left = next((c for side in before if (c := side.find(name)) is not None), None)
            right = joined.find(name)
            if left is not None and right is not None:
                self._joined.append((join, left, right))
        for side in (*before, joined):
            for column in side.columns:
                self.starred.update(table for table, _, _, _ in column.deps)

    def star(self, star: exp.Expression, items: Sequence[Column | Star]) -> None:
        """What EXCEPT, REPLACE and RENAME name must be there."""
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
            self.problem("missing_column", inner, name)

    def computed(self, node: exp.Expression, column: Column) -> None:
        """Remember what a column is computed by, for its type."""
        if column.deps is not NOTHING and column.deps:
            self._nodes[id(column.deps)] = node
            self._alive.append(column.deps)

    def united(self, node: exp.Expression, branches: Sequence[Relation], result: Relation) -> None:
        """The branches of a set operation have as many columns as each other."""
        if any(branch.open for branch in branches) or node.args.get("by_name"):
            return
        counts = {len(branch.items) for branch in branches}
        if len(counts) > 1:
            self.problem("arity", node, "queries with different numbers of columns")
            return
        for at, item in enumerate(result.items):
            if isinstance(item, Column) and item.deps:
                self._united[id(item.deps)] = [branch.columns[at] for branch in branches]
                self._alive.append(item.deps)

    def missing_table(self, table: TableName) -> None:
        """A table is named that is gone."""
        name = ".".join(table)
        self.problems.setdefault(
            ("missing_table", hash(table)), SqlProblem("missing_table", None, name)
        )

    def problem(self, kind: str, node: exp.Expression, name: str) -> None:
        """Note something a database would refuse."""
        self.problems.setdefault((kind, id(node)), SqlProblem(kind, node, name))

    # Meaning

    def is_base(self, table: str) -> bool:
        """Tell a table of the database from a name that the script itself gives."""
        return table.casefold() in self._base_names

    @property
    def _base_names(self) -> set[str]:
        return {table[-1].casefold() for lookup in self.lookups for table, _ in lookup.bases}

    def told_column(
        self,
        node: exp.Expression,
        tell: Callable[[exp.Expression], str],
        renamed: Callable[[TableName, str], str],
    ) -> str:
        """Return what a column is made of, as text."""
        found = self._found.get(id(node))
        if found is None:
            return f"?{str(node.name).casefold()}"
        return self.told(found.deps, tell, renamed)

    def told(
        self,
        deps: Deps,
        tell: Callable[[exp.Expression], str],
        renamed: Callable[[TableName, str], str],
    ) -> str:
        """Return what has these dependencies: an expression, or the base columns themselves."""
        node = self._nodes.get(id(deps))
        if node is not None:
            return tell(node)
        return " | ".join(
            sorted(f"{'.'.join(t)}.{renamed(t, c)}:{int(k)}".casefold() for t, c, k, _ in deps)
        )

    # Types

    def under(self, tables: TableSchemas) -> ResolutionRecorder:
        """Return the same with tables whose columns have other types, and no other names."""
        other = copy(self)
        other._tables = tables
        other._typed = True
        other._types = {}
        other.problems = dict(self.problems)
        return other

    def type_of_column(self, column: Column) -> ColumnType:
        """Return a column's type as far as it is known."""
        return self.type_of_deps(column.deps) if self._typed else UNKNOWN

    def type_of_deps(self, deps: Deps) -> ColumnType:
        """Return the type of the column that has these dependencies."""
        key = id(deps)
        known = self._types.get(key)
        if known is not None:
            return known
        found = self._find_type(key, deps)
        if deps:
            self._types[key] = found
        return found

    def _find_type(self, key: int, deps: Deps) -> ColumnType:
        branches = self._united.get(key)
        if branches is not None:
            return common_type([self.type_of_column(column) for column in branches])
        node = self._nodes.get(key)
        return self.type_of(node) if node is not None else self._base_type(deps)

    def _base_type(self, deps: Deps) -> ColumnType:
        types = []
        for table, column, kind, _ in deps:
            if kind != DependencyKind.IDENTITY:
                return UNKNOWN
            text = self._tables.shape(table).types.get(column.casefold(), "")
            types.append(parse_type(text))
        return common_type(types)

    def type_of(self, node: exp.Expression) -> ColumnType:
        """Return the type of an expression, noting what has no meaning for the types it has."""
        if isinstance(node, exp.Column):
            found = self._found.get(id(node))
            return UNKNOWN if found is None else self.type_of_column(found)
        literal = literal_type(node)
        if literal is not None:
            return literal
        if isinstance(node, (exp.Alias, exp.Paren, exp.Distinct, exp.Ordered)) and node.this:
            return self.type_of(node.this)
        return result_type(node, self.type_of)

    def check_types(self, nodes: Sequence[exp.Expression]) -> None:
        """Note every operator and function that is given a type it cannot take."""
        for node in nodes:
            complaint = check_call(node, self.type_of, self._dialect_name)
            if complaint:
                self.problem("type", node, complaint)
        self.check_joins()

    def check_joins(self) -> None:
        """Note where USING and NATURAL compare columns that cannot be compared."""
        for node, left, right in self._joined:
            types = self.type_of_column(left), self.type_of_column(right)
            # Columns that USING names held what can be compared. NATURAL takes what it finds.
            by_chance = isinstance(node, exp.Join)
            complaint = check_joined(*types, "" if by_chance else self._dialect_name)
            if complaint:
                self.problem("type", node, complaint)


def _is_ambiguous(name: str, scope: QueryScope) -> bool:
    """Tell whether two tables of the innermost scope that has a name have it both."""
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
