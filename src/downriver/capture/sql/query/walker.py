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
from downriver.columns import (
    NOTHING,
    Column,
    Deps,
    Item,
    Relation,
    Star,
    TableName,
    compare_rows,
    merge,
    source,
    union,
    union_by_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from downriver.capture.sql.limits import Budget

_RECURSION_ROUNDS = 10
# Dialects in which DUAL is a table of one row, for queries that read no table.
_WITH_DUAL = frozenset({"oracle", "mysql", "singlestore", "doris", "starrocks"})


class QueryWalker(DialectNames):
    """Translates queries into relations.

    Each part of a query has its translator: `sources` for FROM, `functions` for table functions,
    `selects` for select lists, `clauses` for WHERE and the like, `expressions` for values, and
    `paths` to resolve names. `columns_of` returns the columns of a table, or None if they are
    unknown. `find_view` returns a relation to read instead of a table.
    """

    def __init__(
        self,
        names: DialectNames,
        columns_of: Callable[[TableName], Sequence[str] | None],
        find_view: Callable[[TableName], Relation | None],
        budget: Budget,
        listener: ScriptListener = NO_LISTENER,
    ) -> None:
        super().__init__(names.dialect, names.spellings)
        self._columns_of = columns_of
        self._find_view = find_view
        self.budget = budget
        self.listener = listener
        self.paths = ColumnResolver(self)
        self.expressions = ExpressionTranslator(self)
        self.sources = FromTranslator(self)
        self.functions = TableFunctionTranslator(self)
        self.selects = SelectTranslator(self)
        self.clauses = RowClauseTranslator(self)
        self.inputs: dict[TableName, None] = {}
        self.blind_spots: list[str] = []
        self.uses: dict[TableName, set[str]] = {}  # columns that are named with their table
        self.variables: AbstractSet[str] = frozenset()  # names that are not columns, in lower case
        self.records: Mapping[str, Relation] = {}  # rows that a loop or a trigger names
        # Reads a statement inside a query (a CTE that writes); returns the dependencies of its
        # rows.
        self.on_write: Callable[[exp.Expression, QueryScope | None], Deps] | None = None

    def begin_statement(self, variables: AbstractSet[str]) -> None:
        """Reset what belongs to one statement."""
        self.inputs = {}
        self.blind_spots = []
        self.variables = variables

    def query(self, node: exp.Expression, outer: QueryScope | None) -> Relation:
        """Return the relation of a query, or of anything else that has rows."""
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
                return self.values(node, QueryScope(outer))
            case exp.Table():
                return self.sources.table(node, QueryScope(outer))
            case exp.Pivot() if node.this is not None:
                return pivot(node, self.query(node.this, outer), self, outer)
            case exp.Insert() | exp.Update() | exp.Delete() | exp.Merge():
                return self._returning(node, outer)
            case _:
                return self.sources.from_item(node, QueryScope(outer))

    def with_clause(self, node: exp.Expression, outer: QueryScope | None) -> dict[str, Relation]:
        """Return the relations of a WITH clause, by name."""
        relations: dict[str, Relation] = {}
        clause = node.args.get("with_")
        if clause is None:
            return relations
        scope = QueryScope(outer, relations)
        recursive = bool(clause.args.get("recursive"))
        for cte in clause.expressions:
            name = self.name(cte.args["alias"].this)
            columns = [self.name(c) for c in cte.args["alias"].args.get("columns") or ()]
            relations[name] = self._cte(cte.this, name, columns, scope, recursive)
        return relations

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
        # The first branch names the columns. Repeat until there is no new dependency.
        anchor = body.this
        inner = QueryScope(scope)
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
            scope = QueryScope.over(relation, outer)
            scope.rows = dict(relation.rows)
            for join in joins:
                self.sources.join(join, scope)
            relation = Relation(self.selects.all_items(scope), scope.rows)
        relation = self.pivoted(node, relation, outer)
        if any(node.args.get(part) for part in ("order", "where", "limit", "offset")):
            scope = QueryScope.over(relation, outer)
            relation = self.clauses.filter_and_sort(node, relation, scope)
        return relation

    def _set_operation(self, node: exp.SetOperation, outer: QueryScope | None) -> Relation:
        branches: list[exp.Expression] = []
        current: exp.Expression = node
        # A left-deep chain of UNION is as deep as it is long: iterate instead of recursing.
        operations: list[exp.SetOperation] = []
        while isinstance(current, exp.SetOperation) and (
            current is node or not current.args.get("with_")
        ):
            branches.append(current.expression)
            operations.append(current)
            current = current.this
        branches.append(current)
        operations.reverse()
        relations = [self.query(branch, outer) for branch in reversed(branches)]
        self.budget.spend(sum(len(relation.items) for relation in relations))
        # EXCEPT removes rows, but none of its values are in the result.
        kept = [relations[0]] + [
            relation
            for relation, operation in zip(relations[1:], operations, strict=True)
            if not isinstance(operation, exp.Except)
        ]
        by_name = any(operation.args.get("by_name") for operation in operations)
        result = union_by_name(kept) if by_name else union(kept)
        if any(o.args.get("distinct") or not isinstance(o, exp.Union) for o in operations):
            result = compare_rows(result, relations)
        self.listener.united(node, relations, result)
        if any(node.args.get(part) is not None for part in ("order", "limit", "offset")):
            scope = QueryScope.over(result, outer)
            result = self.clauses.filter_and_sort(node, result, scope)
        return result

    def values(self, node: exp.Values, scope: QueryScope) -> Relation:
        """Return the rows of a VALUES list."""
        columns: list[Deps] = []
        for row in node.expressions:
            for at, value in enumerate(row.expressions if isinstance(row, exp.Tuple) else [row]):
                if at == len(columns):
                    columns.append({})
                merge(columns[at], self.expressions.of(value, scope))
        return Relation([Column(f"col{at}", deps) for at, deps in enumerate(columns, 1)])

    def _returning(self, node: exp.Expression, outer: QueryScope | None) -> Relation:
        """Return the RETURNING columns of a statement inside a query, such as a CTE that writes."""
        target = node.find(exp.Table)
        returning = node.args.get("returning")
        rows = self.on_write(node, outer) if self.on_write is not None else NOTHING
        scope = QueryScope(outer)
        if target is None or not isinstance(returning, exp.Expression):
            return Relation([], rows)
        scope.sources[self.alias(target)] = self.table_relation(self.table_name(target))
        return Relation(self.selects.items(returning.expressions, scope), rows)

    def table_relation(self, name: TableName) -> Relation:
        """Return the rows of a table, and add it to the inputs."""
        view = self._find_view(name)
        if view is not None:
            self.inputs.update(dict.fromkeys(view.reads))
            return view
        if name[-1:] in (("dual",), ("DUAL",)) and self.dialect_name in _WITH_DUAL:
            return Relation([])
        self.inputs[name] = None
        columns = self._columns_of(name)
        return self.existing(name, columns)

    def existing(self, name: TableName, columns: Sequence[str] | None) -> Relation:
        """Return the rows of a table without adding it to the inputs."""
        if columns is None:
            return Relation([Star(name)])
        # Compare names as the dialect does; report them as the schema spells them.
        items = [Column(self.fold(column), source(name, column)) for column in columns]
        return Relation(items, table=name)

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


def _same_item(one: Item, other: Item) -> bool:
    if isinstance(one, Column):
        return isinstance(other, Column) and one.deps.keys() == other.deps.keys()
    return isinstance(other, Star) and one.table == other.table
