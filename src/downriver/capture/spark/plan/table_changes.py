"""MERGE, UPDATE and DELETE of tables: the changed columns, and the dependencies of new values.

Delta's commands have clauses. Spark rewrites the commands of other V2 tables, such as Iceberg's, to
a query of the rows that replace a file (copy on write) or that are added to it (merge on read).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.plan.expressions import PlanScope
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Relation,
    filter_rows,
    indirect,
    merge_all,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.spark.plan.operators import PlanOperation
    from downriver.capture.spark.plan.tree import PlanNode

_INSTRUCTIONS = ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions")
_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


def merge(operation: PlanOperation) -> Relation:
    """Return MERGE: a column depends on every clause that sets it, rows on all conditions."""
    expressions = operation.walker.expressions
    source, target = _plan(operation, "source"), _plan(operation, "target")
    scope = PlanScope([source, target], operation.outer)
    clauses = [clause for field in _CLAUSES for clause in operation.node.trees(field)]
    values: dict[str, list[Deps]] = {}
    for name, value in _assignments(clauses, target):
        if not _is_unchanged(value, name, target):
            values.setdefault(name, []).append(expressions.of(value, scope))
    conditions = [
        expressions.of(condition, scope)
        for clause in clauses
        for condition in clause.children
        if condition.kind != "DeltaMergeAction"
    ]
    matched = indirect(_condition(operation, scope), DependencyKind.JOIN)
    return filter_rows(
        Relation(
            [column.with_deps(merge_all(values.get(column.name, ()))) for column in _empty(target)],
            merge_all([source.rows, matched]),
        ),
        merge_all(conditions),
    )


def update(operation: PlanOperation) -> Relation:
    """Return UPDATE: a column that is set to itself is unchanged and has no dependencies."""
    target = _plan(operation, "target")
    scope = PlanScope([target], operation.outer)
    columns = [
        column
        if _is_unchanged(value, column.name, target)
        else column.with_deps(operation.walker.expressions.of(value, scope))
        for column, value in zip(
            _empty(target), operation.node.trees("updateExpressions"), strict=False
        )
    ]
    return filter_rows(Relation(columns), _condition(operation, scope))


def delete(operation: PlanOperation) -> Relation:
    """Return DELETE: no column gets a value, and rows depend on the condition."""
    target = _plan(operation, "target")
    scope = PlanScope([target], operation.outer)
    return filter_rows(Relation(_empty(target)), _condition(operation, scope))


def merged_rows(operation: PlanOperation) -> Relation:
    """Return the rows of a rewritten MERGE: each instruction has a condition and a row or two."""
    output = operation.node.trees("output")
    expressions, scope = operation.walker.expressions, operation.scope
    values: list[list[Deps]] = [[] for _ in output]
    conditions: list[Deps] = []
    for field in _INSTRUCTIONS:
        for instruction in operation.node.trees(field):
            conditions.append(expressions.of(instruction.children[0], scope))
            for at, value in enumerate(instruction.children[1:]):
                values[at % len(output)].append(expressions.of(value, scope))
    columns = [
        Column(each.name, merge_all(deps), number=each.id)
        for each, deps in zip(output, values, strict=True)
    ]
    return filter_rows(Relation(columns, operation.inputs[0].rows), merge_all(conditions))


def changed_rows(operation: PlanOperation) -> Relation:
    """Return the columns that a rewritten MERGE, UPDATE or DELETE gives new values."""
    target = _plan(operation, "originalTable")
    query = operation.inputs[0]
    new = {column.name: column.deps for column in query.columns}
    relation = Relation(
        [
            column.with_deps(_new_value(new.get(column.name, NOTHING), column.deps))
            for column in target.columns
        ],
        query.rows,
    )
    if operation.node.children[0].kind == "MergeRows":
        return relation  # its condition is that of the join below it
    return filter_rows(relation, _condition(operation, PlanScope([target], operation.outer)))


def deleted_rows(operation: PlanOperation) -> Relation:
    """Return DELETE by a condition: no column gets a value."""
    target = operation.inputs[0]
    return filter_rows(
        Relation(_empty(target)), _condition(operation, PlanScope([target], operation.outer))
    )


def _new_value(deps: Deps, own: Deps) -> Deps:
    """Return the dependencies of a new value; none if the column keeps its value."""
    changed = {key: certainty for key, certainty in deps.items() if key not in own}
    is_set = any(kind < DependencyKind.JOIN for _, _, kind, _ in changed)
    return changed if is_set else NOTHING


def _empty(target: Relation) -> list[Column]:
    """Return the columns of the target without dependencies."""
    return [Column(column.name, NOTHING, number=column.number) for column in target.columns]


def _plan(operation: PlanOperation, field: str) -> Relation:
    plan = operation.node.tree(field)
    return Relation([]) if plan is None else operation.walker.relation(plan)


def _condition(operation: PlanOperation, scope: PlanScope) -> Deps:
    condition = operation.node.tree("condition")
    return NOTHING if condition is None else operation.walker.expressions.of(condition, scope)


def _assignments(clauses: Sequence[PlanNode], target: Relation) -> Iterator[tuple[str, PlanNode]]:
    """Yield each column that a clause sets, with its value; a struct field counts as its column."""
    names = {column.name for column in target.columns}
    for clause in clauses:
        for action in clause.children:
            if action.kind == "DeltaMergeAction":
                path = str(action.fields.get("targetColNameParts")).strip("[]")
                yield path if path in names else path.partition(",")[0], action.children[0]


def _is_unchanged(value: PlanNode, name: str, target: Relation) -> bool:
    own = target.find_number(value.id) if value.kind == "AttributeReference" else None
    return own is not None and own.name == name
