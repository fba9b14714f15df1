"""MERGE, UPDATE and DELETE of a table format: what of a table is given new values, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.plan.expressions import PlanScope
from downriver.capture.spark.plan.relations import PlanColumn, PlanRelation, joined
from downriver.columns.dependencies import DependencyKind, Deps, indirect

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.spark.plan.operators import PlanWalker
    from downriver.capture.spark.plan.tree import PlanNode

_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


def merge(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    """Every clause may give a column its value; all conditions decide on the rows."""
    source, target = _plan(flow, node, "source"), _plan(flow, node, "target")
    scope = PlanScope([source, target], outer)
    clauses = [clause for field in _CLAUSES for clause in node.trees(field)]
    given: dict[str, list[Deps]] = {}
    for name, value in _assignments(clauses, target):
        if not _keeps(value, name, target):
            given.setdefault(name, []).append(flow.expressions.of(value, scope))
    rows = joined(
        [
            source.rows,
            indirect(_condition(flow, node, scope), DependencyKind.JOIN),
            *(
                indirect(flow.expressions.of(condition, scope), DependencyKind.FILTER)
                for clause in clauses
                for condition in clause.children
                if condition.kind != "DeltaMergeAction"
            ),
        ]
    )
    columns = [
        PlanColumn(column.id, column.name, joined(given.get(column.name, ())))
        for column in target.columns
    ]
    return PlanRelation(columns, rows)


def update(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    """A column that is set to itself is only kept."""
    target = _plan(flow, node, "target")
    scope = PlanScope([target], outer)
    columns = [
        PlanColumn(
            column.id,
            column.name,
            {} if _keeps(value, column.name, target) else flow.expressions.of(value, scope),
        )
        for column, value in zip(target.columns, node.trees("updateExpressions"), strict=False)
    ]
    return PlanRelation(columns, indirect(_condition(flow, node, scope), DependencyKind.FILTER))


def delete(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    """No column gets a value; the condition decides which rows remain."""
    target = _plan(flow, node, "target")
    condition = _condition(flow, node, PlanScope([target], outer))
    return PlanRelation(
        [PlanColumn(column.id, column.name, {}) for column in target.columns],
        indirect(condition, DependencyKind.FILTER),
    )


def _plan(flow: PlanWalker, node: PlanNode, field: str) -> PlanRelation:
    plan = node.tree(field)
    return PlanRelation([]) if plan is None else flow.relation(plan)


def _condition(flow: PlanWalker, node: PlanNode, scope: PlanScope) -> Deps:
    condition = node.tree("condition")
    return {} if condition is None else flow.expressions.of(condition, scope)


def _assignments(
    clauses: Sequence[PlanNode], target: PlanRelation
) -> Iterator[tuple[str, PlanNode]]:
    """Yield the columns that clauses give values to, a field of a struct as its column."""
    names = {column.name for column in target.columns}
    for clause in clauses:
        for action in clause.children:
            if action.kind == "DeltaMergeAction":
                path = str(action.fields.get("targetColNameParts")).strip("[]")
                yield path if path in names else path.partition(",")[0], action.children[0]


def _keeps(value: PlanNode, name: str, target: PlanRelation) -> bool:
    own = target.find(value.id) if value.kind == "AttributeReference" else None
    return own is not None and own.name == name
