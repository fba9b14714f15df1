"""MERGE, UPDATE and DELETE, with SET assignments and T-SQL's OUTPUT clause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from downriver.capture.sql.query.scope import QueryScope
from downriver.capture.sql.statements.context import (
    StatementContext,
    StatementEffect,
    TableWrite,
    as_node,
    match_columns,
)
from downriver.columns import (
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    Star,
    TableName,
    indirect,
    merge,
    merge_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# MERGE


def read_merge(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read MERGE: every WHEN branch writes; the join and its own condition decide the rows."""
    scope = QueryScope(context.outer(node))
    target = context.walker.table_name(node.this)
    source = context.walker.sources.add(node.args["using"], scope)
    existing = context.existing(target)
    scope.sources[context.walker.alias(node.this)] = existing
    _join_on(node, source, existing, scope, context)
    written: list[TableWrite] = []
    whens = as_node(node.args.get("whens"))
    for when in whens.expressions if whens is not None else ():
        written += _when(when, _Branch(target, scope, source), context)
    new = Relation([item for write in written for item in write.columns], scope.rows)
    written += read_output_into(node, context, new, existing)
    written = written or [TableWrite(target, [], scope.rows)]
    return StatementEffect("MERGE", context.inputs(without=[target]), written)


def _join_on(
    node: exp.Expression,
    source: Relation,
    existing: Relation,
    scope: QueryScope,
    context: StatementContext,
) -> None:
    condition = as_node(node.args.get("on"))
    if condition is not None:
        scope.influence(context.walker.expressions.of(condition, scope), DependencyKind.JOIN)
    for name in node.args.get("using_cond") or ():
        for relation in (source, existing):
            column = relation.find(context.walker.name(name))
            if column is not None:
                scope.influence(column.deps, DependencyKind.JOIN)


class _Branch:
    """A WHEN branch of a MERGE: its target, its scope, and the dependencies of its rows."""

    def __init__(self, target: TableName, scope: QueryScope, source: Relation) -> None:
        self.target = target
        self.scope = scope
        self.source = source
        self.rows = dict(scope.rows)


def _when(when: exp.Expression, branch: _Branch, context: StatementContext) -> Iterator[TableWrite]:
    condition = as_node(when.args.get("condition"))
    if condition is not None:
        deps = context.walker.expressions.of(condition, branch.scope)
        merge(branch.rows, indirect(deps, DependencyKind.FILTER))
    then = when.args.get("then")
    if isinstance(then, (exp.Update, exp.Insert)):  # Oracle: … THEN UPDATE SET … WHERE …
        merge(branch.rows, context.where(then, branch.scope))
    if isinstance(then, exp.Update):
        yield _updated(then, branch, context)
    elif isinstance(then, exp.Insert):
        yield _inserted(then, branch, context)
    else:  # DELETE, DO NOTHING
        yield TableWrite(branch.target, [], branch.rows)


def _updated(then: exp.Update, branch: _Branch, context: StatementContext) -> TableWrite:
    assignments = then.args.get("expressions")
    if isinstance(assignments, list) and any(isinstance(a, exp.Binary) for a in assignments):
        return read_assignments(assignments, branch.target, branch.scope, branch.rows, context)
    return _whole_row(branch, context)  # UPDATE SET *, UPDATE ALL BY NAME


def _inserted(then: exp.Insert, branch: _Branch, context: StatementContext) -> TableWrite:
    columns, values = _listed_values(then)
    if values is None:  # INSERT *, INSERT ROW
        return _whole_row(branch, context)
    if columns is not None:
        names = [context.column_name(column) for column in columns]
    else:
        names = list(context.columns_of(branch.target) or ())
    items: list[Item] = []
    for at, value in enumerate(values):
        name = names[at] if at < len(names) else context.walker.output_name(value)
        if name:
            items.append(context.walker.selects.item(value, name, branch.scope))
    return TableWrite(branch.target, items, branch.rows)


def _listed_values(
    then: exp.Insert,
) -> tuple[list[exp.Expression] | None, list[exp.Expression] | None]:
    """Return the columns and the values that an INSERT lists, None for a missing list."""
    columns = then.this.expressions if isinstance(then.this, (exp.Tuple, exp.Schema)) else None
    if isinstance(then.expression, exp.Tuple):
        return columns, then.expression.expressions
    only = columns[0] if columns and len(columns) == 1 else None
    if isinstance(only, exp.Anonymous) and only.name.upper() == "VALUES":
        return None, only.expressions  # sqlglot parses `INSERT VALUES (…)` as a call
    return columns, None


def _whole_row(branch: _Branch, context: StatementContext) -> TableWrite:
    columns = context.columns_of(branch.target)
    return TableWrite(branch.target, match_columns(branch.source, columns), branch.rows)


# UPDATE


def read_update(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read UPDATE, also of several tables, through an alias, or through a CTE."""
    scope = QueryScope(context.outer(node))
    context.walker.sources.from_clause(node, scope)
    target = _changed_table(node.this, node, scope, context)
    for join in node.this.args.get("joins") or ():
        context.walker.sources.join(join, scope)
    merge(scope.rows, context.where(node, scope))
    targets = _targets(node, target, context)
    written = [
        read_assignments(assignments, table, scope, scope.rows, context)
        for table, assignments in targets.items()
    ]
    new = Relation([item for write in written for item in write.columns], scope.rows)
    written += read_output_into(node, context, new, context.existing(target))
    return StatementEffect("UPDATE", _inputs(list(targets), written, context), written)


def _inputs(
    targets: list[TableName], written: Sequence[TableWrite], context: StatementContext
) -> list[TableName]:
    """Return the tables that are read. A changed table is one of them if another depends on it."""
    used = {
        key[0]
        for write in written
        for deps in (write.rows, *(c.deps for c in write.columns if isinstance(c, Column)))
        for key in deps
        if key[0] != write.table and write.table in targets
    }
    read = [name for name in context.inputs() if name not in targets or name in used]
    return list(dict.fromkeys([*read, *(name for name in targets if name in used)]))


def _targets(
    node: exp.Expression, target: TableName, context: StatementContext
) -> dict[TableName, list[exp.Expression]]:
    """Return the assignments to each table: `SET a.x = …, b.y = …` changes two."""
    tables = {context.walker.alias(table): table for table in _tables_of(node)}
    targets: dict[TableName, list[exp.Expression]] = {}
    for assignment in node.expressions:
        left = assignment.this if isinstance(assignment, exp.Binary) else None
        name = (
            context.walker.name(left.args["table"])
            if left is not None and _is_qualified(left)
            else ""
        )
        table = tables.get(name)
        owner = context.walker.table_name(table) if table is not None else target
        targets.setdefault(owner, []).append(assignment)
    return targets or {target: []}


def _is_qualified(node: object) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.args.get("table"), exp.Identifier)


def _tables_of(node: exp.Expression) -> Iterator[exp.Table]:
    """Yield the tables that are joined to the first: a MySQL UPDATE may change them too."""
    if isinstance(node.this, exp.Table):
        for join in node.this.args.get("joins") or ():
            if isinstance(join.this, exp.Table):
                yield join.this


def _changed_table(
    node: exp.Expression, statement: exp.Expression, scope: QueryScope, context: StatementContext
) -> TableName:
    """Return the table that is changed; T-SQL may name it by an alias in FROM, or by a CTE."""
    walker = context.walker
    if not isinstance(node, exp.Table):  # Oracle: UPDATE (SELECT …) SET …
        shown = node.find(exp.Table)
        rows, scope.rows = scope.rows, {}
        walker.sources.add(node, scope)
        scope.rows = rows
        return walker.table_name(shown) if shown is not None else ()
    name = walker.table_name(node)
    alias = walker.alias(node)
    if len(name) == 1:
        for table in statement.find_all(exp.Table):
            if table is not node and table.alias and walker.alias(table) == name[0]:
                return _behind_cte(walker.table_name(table), statement, context)
        real = _behind_cte(name, statement, context)
        if real != name:
            scope.sources[alias] = scope.find_cte(name[0]) or context.existing(real)
            return real
    if alias not in scope.sources:
        scope.sources[alias] = context.existing(name)
    return name


def _behind_cte(name: TableName, statement: exp.Expression, context: StatementContext) -> TableName:
    """Return the table behind a CTE: changing the CTE changes its rows."""
    clause = as_node(statement.args.get("with_"))
    for cte in clause.expressions if clause is not None and len(name) == 1 else ():
        if context.walker.name(cte.args["alias"].this) == name[0]:
            table = cte.this.find(exp.Table)
            if table is not None:
                return context.walker.table_name(table)
    return name


# DELETE


def read_delete(node: exp.Expression, context: StatementContext) -> StatementEffect:
    """Read DELETE: it writes no column, but joins and filters decide which rows remain."""
    scope = QueryScope(context.outer(node))
    for item in _listed(node.args.get("using")):
        context.walker.sources.add(item, scope)
    named = [t for t in _listed(node.args.get("tables")) if isinstance(t, exp.Table)]
    table = as_node(node.this) or (named[0] if named else None)  # BigQuery: DELETE t WHERE …
    if table is None:
        return StatementEffect("DELETE", context.inputs(), [])
    target = _changed_table(table, node, scope, context)
    for join in table.args.get("joins") or ():
        context.walker.sources.join(join, scope)
    merge(scope.rows, context.where(node, scope))
    targets = _deleted_from(named, table, context) or [target]
    written = [TableWrite(name, [], scope.rows) for name in targets]
    deleted = Relation([], scope.rows)
    written += read_output_into(node, context, deleted, context.existing(targets[0]))
    return StatementEffect("DELETE", _inputs(targets, written, context), written)


def _deleted_from(
    named: Sequence[exp.Table], table: exp.Expression, context: StatementContext
) -> list[TableName]:
    """Return the tables of `DELETE a, b FROM …`, which are named by alias or by name."""
    known = {
        context.walker.alias(t): context.walker.table_name(t) for t in table.find_all(exp.Table)
    }
    return [known.get(context.walker.alias(t), context.walker.table_name(t)) for t in named]


def _listed(value: object) -> list[exp.Expression]:
    nodes = value if isinstance(value, list) else [value]
    return [item for item in nodes if isinstance(item, exp.Expression)]


def read_assignments(
    assignments: Sequence[exp.Expression],
    target: TableName,
    scope: QueryScope,
    rows: Deps,
    context: StatementContext,
) -> TableWrite:
    """Read the SET clause of UPDATE, MERGE or ON CONFLICT."""
    items: list[Item] = []
    for assignment in assignments:
        if isinstance(assignment, exp.Binary):
            items += _assigned_columns(assignment.this, assignment.expression, scope, context)
    return TableWrite(target, items, rows)


def _assigned_columns(
    left: exp.Expression, right: exp.Expression, scope: QueryScope, context: StatementContext
) -> Iterator[Item]:
    if isinstance(left, exp.Parameter):  # T-SQL: SET @x = …, or SET @x = a = …
        return
    if not isinstance(left, (exp.Tuple, exp.Paren)):
        yield context.walker.selects.item(right, _assigned_name(left, scope, context), scope)
        return
    names = [_assigned_name(part, scope, context) for part in left.expressions or [left.this]]
    if isinstance(right, (exp.Subquery, exp.Query)):
        relation = context.walker.query(right, scope).renamed(names)
        for item in relation.items:
            yield _in_row(item, relation.rows)
        return
    values = right.expressions or [right.this]
    for name, value in zip(names, values, strict=False):
        yield context.walker.selects.item(value, name, scope)


def _assigned_name(node: exp.Expression, scope: QueryScope, context: StatementContext) -> str:
    """Return the assigned column: `address` in `address.city`, unless `address` is a table."""
    while isinstance(node, (exp.Dot, exp.Bracket)):
        node = node.this
    if isinstance(node, exp.Column) and len(node.parts) == 2:
        first = context.walker.name(node.parts[0])
        if scope.find_source(first) is None and first != context.walker.name(node.this):
            return first
    return context.column_name(node)


def _in_row(item: Item, rows: Deps) -> Item:
    """Return a value of a subquery. It also depends on what decides the subquery's row."""
    return item if isinstance(item, Star) else item.with_deps(merge_all([item.deps, rows]))


def read_output_into(
    node: exp.Expression, context: StatementContext, new: Relation, old: Relation
) -> Iterator[TableWrite]:
    """Yield the writes of T-SQL's OUTPUT … INTO. Rows that are only returned are ignored."""
    returning = as_node(node.args.get("returning"))
    into = as_node(returning.args.get("into")) if returning is not None else None
    if returning is None or into is None:
        return
    scope = QueryScope()
    scope.sources["inserted"] = new
    scope.sources["deleted"] = old
    relation = Relation(context.walker.selects.items(returning.expressions, scope), new.rows)
    names = [context.column_name(column) for column in into.expressions]
    yield TableWrite(_output_table(into, context), relation.renamed(names).items, new.rows)


def _output_table(into: exp.Expression, context: StatementContext) -> tuple[str, ...]:
    if isinstance(into, exp.Table):
        return context.walker.table_name(into)
    if isinstance(into, exp.Identifier):
        return tuple(context.walker.name(into).split("."))  # one name: see text/rewrite.py
    if isinstance(into, exp.Column):
        return tuple(context.walker.name(part) for part in into.parts)
    if isinstance(into, exp.Parameter):
        return (f"@{into.name}",)
    return (into.name.lower() if isinstance(into, exp.Anonymous) else into.sql_name().lower(),)
