"""From an analysed plan to what each of its columns, and its rows, depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.spark.expressions import Expressions, Scope
from downriver.capture.spark.loops import close_loop, open_loop
from downriver.capture.spark.plan import Node, fold_tree, is_tree, parse_tree
from downriver.capture.spark.relations import (
    Column,
    Relation,
    compared,
    joined,
    one_upon_another,
    seen_through_nothing,
    side_by_side,
)
from downriver.capture.sql.deps import Deps, Kind, at_least, steering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Source = Callable[[Node], Relation]
    Operator = Callable[["Flow", Node, Sequence[Relation], Scope | None], Relation]

# Rows and columns go through unchanged.
_PASSING = frozenset(
    {
        "CollectMetrics", "EventTimeWatermark", "GlobalLimit", "LocalLimit", "Offset",
        "RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint",
        "ReturnAnswer", "Sample", "SubqueryAlias", "Tail", "UpdateEventTimeWatermarkColumn",
        "View", "WithWindowDefinition",
    }
)  # fmt: skip
_LEFT_ONLY = ("LeftSemi", "LeftAnti")


class Flow:
    """Follows columns through a plan; `source` says what comes out of a leaf.

    `opaque` collects the names of code that could not be read.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.opaque: dict[str, None] = {}
        self.expressions = Expressions(self.relation, self._saw_code)
        self.shared: dict[int, Relation] = {}  # of WITH, by its number

    def relation(self, root: Node, outer: Scope | None = None) -> Relation:
        """Return what comes out of a plan."""
        return fold_tree(root, lambda node, inputs: self._apply(node, inputs, outer))

    def _apply(self, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
        operator = _OPERATORS.get(node.kind)
        if operator is not None:
            return operator(self, node, inputs, outer)
        if node.kind in _PASSING and inputs:
            return inputs[0]
        if not inputs:
            return self._source(node)
        return self._unknown(node, inputs)

    def _unknown(self, node: Node, inputs: Sequence[Relation]) -> Relation:
        self._saw_code(node.kind)
        output = node.trees("output")
        return seen_through_nothing(output, inputs) if output else side_by_side(inputs)

    def _saw_code(self, name: str) -> None:
        self.opaque[name] = None


def _project(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    scope = Scope(inputs, outer)
    items = node.trees("projectList")
    return Relation([flow.expressions.column(item, scope) for item in items], inputs[0].rows)


def _filter(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    condition = node.tree("condition")
    if condition is None:
        return inputs[0]
    return inputs[0].steered(flow.expressions.of(condition, Scope(inputs, outer)), Kind.FILTER)


def _join(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    both = side_by_side(inputs)
    condition = node.tree("condition") or node.tree("asOfCondition")
    if condition is not None:
        both = both.steered(flow.expressions.of(condition, Scope(inputs, outer)), Kind.JOIN)
    how = node.fields.get("joinType") or {}
    if str(how.get("object", "")).rstrip("$").endswith(_LEFT_ONLY):
        return Relation(inputs[0].columns, both.rows)
    exists = how.get("exists")
    if is_tree(exists):  # a column that tells whether there was a match
        flag = parse_tree(exists)
        return Relation([*inputs[0].columns, Column(flag.id, flag.name, both.rows)], inputs[0].rows)
    return both


def _lateral_join(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    right = node.tree("right")
    plan = None if right is None else right.tree("plan")
    if plan is None:
        return inputs[0]
    scope = Scope(inputs, outer)
    return _join(flow, node, [inputs[0], flow.relation(plan, scope)], outer)


def _aggregate(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    scope = Scope(inputs, outer)
    groups = flow.expressions.all_of(node.trees("groupingExpressions"), scope)
    columns = [flow.expressions.column(item, scope) for item in node.trees("aggregateExpressions")]
    return Relation(columns, inputs[0].rows).steered(groups, Kind.GROUP_BY)


def _window(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    scope = Scope(inputs, outer)
    made = [flow.expressions.column(item, scope) for item in node.trees("windowExpressions")]
    return Relation([*inputs[0].columns, *made], inputs[0].rows)


def _generate(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    generator = node.tree("generator")
    used: Deps = {}
    if generator is not None:
        found = flow.expressions.of(generator, Scope(inputs, outer))
        used = at_least(found, Kind.TRANSFORMATION)
    made = [
        Column(attribute.id, attribute.name, used, generator)
        for attribute in node.trees("generatorOutput")
    ]
    # As many rows as the generator makes of each.
    return Relation([*inputs[0].columns, *made], inputs[0].rows).steered(used, Kind.JOIN)


def _expand(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    """Several rows from each: every output column is one of several expressions."""
    output = node.trees("output")
    rows = [parse_tree(row).children for row in node.fields["projections"] or ()]
    if not rows:
        return seen_through_nothing(output, inputs)
    scope = Scope(inputs, outer)
    columns = [
        Column(attribute.id, attribute.name, flow.expressions.all_of(values, scope))
        for attribute, values in zip(output, zip(*rows, strict=False), strict=False)
    ]
    return Relation(columns, inputs[0].rows)


def _union(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    return one_upon_another(inputs)


def _set_operation(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    # What EXCEPT takes away decides which rows remain, but none of its values do.
    kept = inputs[0] if node.kind == "Except" else one_upon_another(inputs)
    rows = joined([*(relation.rows for relation in inputs), *compared(inputs)])
    return Relation(kept.columns, rows)


def _distinct(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    return Relation(inputs[0].columns, joined([inputs[0].rows, *compared(inputs)]))


def _deduplicate(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    keys = flow.expressions.all_of(node.trees("keys"), Scope(inputs, outer))
    return inputs[0].steered(keys, Kind.GROUP_BY)


def _sort(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    return inputs[0].steered(
        flow.expressions.all_of(node.trees("order"), Scope(inputs, outer)), Kind.SORT
    )


def _code(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    """Rows handed to Python: every output column may use every input column."""
    function = node.tree("functionExpr") or node.tree("func")
    flow.opaque[function.name if function is not None else node.kind] = None
    result = seen_through_nothing(node.trees("output"), inputs)
    groups = flow.expressions.all_of(node.trees("groupingAttributes"), Scope(inputs, outer))
    return Relation(result.columns, joined([result.rows, steering(groups, Kind.GROUP_BY)]))


def _with(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    return inputs[-1]


def _shared_definition(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    flow.shared[int(node.fields["id"])] = inputs[0]
    return inputs[0]


def _shared_reference(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    defined = flow.shared.get(int(node.fields["cteId"]))
    output = node.trees("output")
    if defined is None:
        return Relation([Column(attribute.id, attribute.name, {}) for attribute in output])
    columns = [
        column._replace(id=attribute.id, name=attribute.name)
        for attribute, column in zip(output, defined.columns, strict=False)
    ]
    return Relation(columns, defined.rows)


def _loop(flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None) -> Relation:
    ids = [int(each["id"]) for each in node.fields.get("outputAttrIds") or ()]
    return close_loop(int(node.fields["id"]), inputs[0], inputs[1], ids)


def _loop_reference(
    flow: Flow, node: Node, inputs: Sequence[Relation], outer: Scope | None
) -> Relation:
    return open_loop(int(node.fields["loopId"]), node.trees("output"))


_OPERATORS: dict[str, Operator] = {
    "Project": _project,
    "Filter": _filter,
    "Join": _join,
    "AsOfJoin": _join,
    "LateralJoin": _lateral_join,
    "Aggregate": _aggregate,
    "Window": _window,
    "Generate": _generate,
    "Expand": _expand,
    "Union": _union,
    "Intersect": _set_operation,
    "Except": _set_operation,
    "Distinct": _distinct,
    "Deduplicate": _deduplicate,
    "DeduplicateWithinWatermark": _deduplicate,
    "Sort": _sort,
    "WithCTE": _with,
    "CTERelationDef": _shared_definition,
    "CTERelationRef": _shared_reference,
    "UnionLoop": _loop,
    "UnionLoopRef": _loop_reference,
    **dict.fromkeys(
        (
            "MapInPandas", "MapInArrow", "PythonMapInArrow", "FlatMapGroupsInPandas",
            "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow",
            "FlatMapGroupsInPandasWithState", "TransformWithStateInPandas",
            "TransformWithStateInPySpark", "ScriptTransformation",
        ),
        _code,
    ),
}  # fmt: skip
