"""MERGE, UPDATE and DELETE of Delta: which columns get new values, and from what."""

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
