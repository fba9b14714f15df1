"""Walks a query's tree in one pass and computes each relation once, from the inside out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.listener import NO_LISTENER, ScriptListener
from downriver.capture.sql.query.clauses import RowClauseTranslator
from downriver.capture.sql.query.expressions import ExpressionTranslator
from downriver.capture.sql.query.from_clause import FromTranslator
from downriver.capture.sql.query.names import ColumnResolver, DialectNames
from downriver.capture.sql.query.pivots import pivot
from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.query.select import SelectTranslator
from downriver.capture.sql.query.table_functions import TableFunctionTranslator
from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKind,
    Deps,
    TableName,
    merge,
)
from downriver.columns.relations import Column, Relation, Star, united, united_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from sqlglot.dialects.dialect import Dialect

    from downriver.capture.sql.limits import Budget

_RECURSION_ROUNDS = 10
# Where DUAL is a table of one row, for queries that need none.
_WITH_DUAL = frozenset({"oracle", "mysql", "singlestore", "doris", "starrocks"})


class QueryWalker(DialectNames):
    """Computes relations for one statement. `columns_of` knows schemas; None is unknown.

    The work is shared: `sources` know FROM, `functions` what makes rows of values, `selects` the
    columns of a query, `rows` what decides its rows, `expressions` everything inside, and `paths`
    which column a name means.
    """

    def __init__(
        self,
        dialect: Dialect,
        columns_of: Callable[[TableName], Sequence[str] | None],
        views: dict[TableName, Relation],
        budget: Budget,
    ) -> None:
        super().__init__(dialect)
        self._columns_of = columns_of
        self._views = views
        self.budget = budget
        self.paths = ColumnResolver(self)
        self.expressions = ExpressionTranslator(self)
        self.sources = FromTranslator(self)
        self.functions = TableFunctionTranslator(self)
        self.selects = SelectTranslator(self)
        self.rows = RowClauseTranslator(self)
        self.inputs: dict[TableName, None] = {}
        self.blind_spots: list[str] = []
        self.variables: AbstractSet[str] = frozenset()  # names that are no columns, in lower case
        self.records: Mapping[str, Relation] = {}  # rows that loops and triggers give a name
        self.listener: ScriptListener = NO_LISTENER
        # Reads a statement that stands where a query does, and returns what decides its rows.
        self.on_write: Callable[[exp.Expression, QueryScope | None], Deps] | None = None

    def query(self, node: exp.Expression, outer: QueryScope | None) -> Relation:
        """Return the relation of anything that has rows."""
        self.budget.spend()
        ctes = self.with_clause(node, outer)
        if ctes:
            outer = QueryScope(outer, ctes)
        match node:
            case exp.Select():
                return self.selects.select(node, outer)
            case exp.SetOperation():
                return self._set_operation(node, outer)
            case exp.Subquery() | exp.Paren():
                return self._wrapped(node, outer)
            case exp.Values():
                return self.values(node, QueryScope(outer, {}))
            case exp.Table():
                return self.sources.table(node, QueryScope(outer, {}))
            case exp.Pivot() if node.this is not None:
                return pivot(node, self.query(node.this, outer), self, outer)
            case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge():
                return self._returning(node, outer)
            case _:
                return self.sources.from_item(node, QueryScope(outer, {}))

    def with_clause(self, node: exp.Expression, outer: QueryScope | None) -> dict[str, Relation]:
        """Return the relations a WITH clause names."""
        found: dict[str, Relation] = {}
        clause = node.args.get("with_")
        if clause is None:
            return found
        scope = QueryScope(outer, found)
        recursive = bool(clause.args.get("recursive"))
        for cte in clause.expressions:
            name = self.name(cte.args["alias"].this)
            columns = [self.name(c) for c in cte.args["alias"].args.get("columns") or ()]
            found[name] = self._cte(cte.this, name, columns, scope, recursive)
        return found

    def _cte(
        self,
        body: exp.Expression,
        name: str,
        columns: list[str],
        scope: QueryScope,
        recursive: bool,
    ) -> Relation:
        refers_to_itself = isinstance(body, exp.SetOperation) and (
            recursive or self.dialect_name in ("tsql", "oracle", "bigquery")
        )
        if not refers_to_itself or not _mentions(body, name):
            relation = self.query(body, scope)
            return relation.renamed(columns) if columns else relation
        # The first branch names the columns; then go round until nothing new flows in.
        anchor = body.this
        inner = QueryScope(scope, {})
        relation = self.query(anchor, inner)
        relation = relation.renamed(columns) if columns else relation
        for _ in range(_RECURSION_ROUNDS):
            inner.ctes[name] = relation
            after = self.query(body, inner)
            after = after.renamed(columns) if columns else after
            if _same(relation, after):
                break
            relation = after
        return relation

    def _wrapped(self, node: exp.Expression, outer: QueryScope | None) -> Relation:
        relation = self.query(node.this, outer)
        joins = node.args.get("joins")
        if joins:
            scope = QueryScope(outer, {})
            scope.sources["\x00"] = relation
            rows = dict(relation.rows)
            for join in joins:
                self.sources.join(join, scope, rows)
            relation = Relation(self.selects.all_items(scope), rows)
        relation = self.pivoted(node, relation, outer)
        if any(node.args.get(part) for part in ("order", "where", "limit", "offset")):
            scope = QueryScope(outer, {})
            scope.sources["\x00"] = relation
            scope.items = relation.items
            rows = dict(relation.rows)
            self.rows.steer(node, scope, rows)
            relation = Relation(relation.items, rows)
        return relation

    def _set_operation(self, node: exp.SetOperation, outer: QueryScope | None) -> Relation:
        branches: list[exp.Expression] = []
        current: exp.Expression = node
        # Left-deep chains of UNION are as deep as they are long: walk them, do not recurse.
        kinds: list[exp.SetOperation] = []
        while isinstance(current, exp.SetOperation) and (
            current is node or not current.args.get("with_")
        ):
            branches.append(current.expression)
            kinds.append(current)
            current = current.this
        branches.append(current)
        relations = [self.query(branch, outer) for branch in reversed(branches)]
        # What EXCEPT takes away decides which rows remain, but none of its values do.
        taken_away = [isinstance(kind, exp.Except) for kind in reversed(kinds)]
        flowing = [relations[0]] + [
            relation for relation, gone in zip(relations[1:], taken_away, strict=True) if not gone
        ]
        rows: Deps = {}
        for relation in relations:
            self.budget.spend(len(relation.items))
            merge(rows, relation.rows)
        by_name = any(kind.args.get("by_name") for kind in kinds)
        result = united_by_name(flowing, rows) if by_name else united(flowing, rows)
        compared = any(
            kind.args.get("distinct") or not isinstance(kind, exp.Union) for kind in kinds
        )
        if compared:
            self.rows.compare(relations, rows)
        self.listener.united(node, relations, result)
        if any(node.args.get(part) is not None for part in ("order", "limit", "offset")):
            scope = QueryScope(outer, {})
            scope.sources["\x00"] = result
            scope.items = result.items
            self.rows.steer(node, scope, rows)
        return result

    def values(self, node: exp.Values, scope: QueryScope) -> Relation:
        """Return the rows of a VALUES list."""
        columns: list[Deps] = []
        for row in node.expressions:
            for at, value in enumerate(row.expressions if isinstance(row, exp.Tuple) else [row]):
                if at == len(columns):
                    columns.append({})
                merge(columns[at], self.expressions.of(value, scope))
        items: list[Column | Star] = [Column(f"col{n}", d) for n, d in enumerate(columns, 1)]
        return Relation(items, NOTHING)

    def _returning(self, node: exp.Expression, outer: QueryScope | None) -> Relation:
        """A statement used as a query (a CTE that writes): its RETURNING columns."""
        target = node.find(exp.Table)
        returning = node.args.get("returning")
        rows = self.on_write(node, outer) if self.on_write is not None else NOTHING
        scope = QueryScope(outer, {})
        if target is None or not isinstance(returning, exp.Expression):
            return Relation([], rows)
        scope.sources[self.alias(target)] = self.table_relation(self.table_name(target))
        return Relation(self.selects.items(returning.expressions, scope), rows)

    def table_relation(self, name: TableName) -> Relation:
        """Return a table's columns, as far as they are known, and count it as an input."""
        view = self._views.get(name)
        if view is not None:
            self.inputs.update(dict.fromkeys(view.reads))
            return view
        if name[-1:] in (("dual",), ("DUAL",)) and self.dialect_name in _WITH_DUAL:
            return Relation([], NOTHING)
        self.inputs[name] = None
        columns = self._columns_of(name)
        return self.existing(name, columns)

    def existing(self, name: TableName, columns: Sequence[str] | None) -> Relation:
        """Return the rows of a table without counting it as an input."""
        if columns is None:
            return Relation([Star(name)], NOTHING)
        return Relation(
            [
                # Schemas are told in any case: compare as the dialect does, answer as told.
                Column(
                    self.fold(column),
                    {(name, column, DependencyKind.IDENTITY, False): Certainty.EXACT},
                )
                for column in columns
            ],
            NOTHING,
            name,
        )

    def pivoted(
        self, node: exp.Expression, relation: Relation, outer: QueryScope | None
    ) -> Relation:
        """Return a relation after the PIVOT and UNPIVOT clauses that follow it."""
        for clause in node.args.get("pivots") or ():
            self.budget.spend(len(relation.items))
            relation = pivot(clause, relation, self, outer)
        return relation


def _mentions(body: exp.Expression, name: str) -> bool:
    return any(t.name.casefold() == name.casefold() for t in body.find_all(exp.Table))


def _same(one: Relation, other: Relation) -> bool:
    return (
        len(one.items) == len(other.items)
        and one.rows.keys() == other.rows.keys()
        and all(_same_item(a, b) for a, b in zip(one.items, other.items, strict=True))
    )


def _same_item(one: Column | Star, other: Column | Star) -> bool:
    if isinstance(one, Column):
        return isinstance(other, Column) and one.deps.keys() == other.deps.keys()
    return isinstance(other, Star) and one.table == other.table
