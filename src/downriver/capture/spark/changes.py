"""MERGE, UPDATE and DELETE of a table format: what of a table is given new values, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.expressions import Scope
from downriver.capture.spark.relations import Column, Relation, joined
from downriver.capture.sql.deps import Deps, Kind, steering

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.spark.operators import Flow
    from downriver.capture.spark.plan import Node

_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")


def merge(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    """Every clause may give a column its value; all conditions decide on the rows."""
    source, target = _plan(flow, node, "source"), _plan(flow, node, "target")
    scope = Scope([source, target], outer)
    clauses = [clause for field in _CLAUSES for clause in node.trees(field)]
    given: dict[str, list[Deps]] = {}
    for name, value in _assignments(clauses, target):
        if not _keeps(value, name, target):
            given.setdefault(name, []).append(flow.expressions.of(value, scope))
    rows = joined(
        [
            source.rows,
            steering(_condition(flow, node, scope), Kind.JOIN),
            *(
                steering(flow.expressions.of(condition, scope), Kind.FILTER)
                for clause in clauses
                for condition in clause.children
                if condition.kind != "DeltaMergeAction"
            ),
        ]
    )
    columns = [
        Column(column.id, column.name, joined(given.get(column.name, ())))
        for column in target.columns
    ]
    return Relation(columns, rows)


def update(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    """A column that is set to itself is only kept."""
    target = _plan(flow, node, "target")
    scope = Scope([target], outer)
    columns = [
        Column(
            column.id,
            column.name,
            {} if _keeps(value, column.name, target) else flow.expressions.of(value, scope),
        )
        for column, value in zip(target.columns, node.trees("updateExpressions"), strict=False)
    ]
    return Relation(columns, steering(_condition(flow, node, scope), Kind.FILTER))


def delete(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    """No column gets a value; the condition decides which rows remain."""
    target = _plan(flow, node, "target")
    condition = _condition(flow, node, Scope([target], outer))
    return Relation(
        [Column(column.id, column.name, {}) for column in target.columns],
        steering(condition, Kind.FILTER),
    )


def _plan(flow: Flow, node: Node, field: str) -> Relation:
    plan = node.tree(field)
    return Relation([]) if plan is None else flow.relation(plan)


def _condition(flow: Flow, node: Node, scope: Scope) -> Deps:
    condition = node.tree("condition")
    return {} if condition is None else flow.expressions.of(condition, scope)


def _assignments(clauses: Sequence[Node], target: Relation) -> Iterator[tuple[str, Node]]:
    """Yield the columns that clauses give values to, a field of a struct as its column."""
    names = {column.name for column in target.columns}
    for clause in clauses:
        for action in clause.children:
            if action.kind == "DeltaMergeAction":
                path = str(action.fields.get("targetColNameParts")).strip("[]")
                yield path if path in names else path.partition(",")[0], action.children[0]


def _keeps(value: Node, name: str, target: Relation) -> bool:
    own = target.find(value.id) if value.kind == "AttributeReference" else None
    return own is not None and own.name == name
