"""From an analysed plan to what each of its columns, and its rows, depend on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.spark.plan import table_changes
from downriver.capture.spark.plan.expressions import PlanExpressions, PlanScope
from downriver.capture.spark.plan.relations import (
    PlanColumn,
    PlanRelation,
    close_loop,
    compared,
    joined,
    one_upon_another,
    open_loop,
    seen_through_nothing,
    side_by_side,
)
from downriver.capture.spark.plan.tree import PlanNode, fold_tree, is_tree, parse_tree
from downriver.columns.dependencies import DependencyKind, Deps, direct, indirect

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.spark.actions import PlanDetails

    Source = Callable[[PlanNode], PlanRelation]
    Operator = Callable[
        ["PlanWalker", PlanNode, Sequence[PlanRelation], PlanScope | None], PlanRelation
    ]

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


class PlanWalker:
    """Follows columns through a plan; `source` says what comes out of a leaf.

    `opaque` collects the names of code that could not be read.
    """

    def __init__(self, source: Source, asides: PlanDetails) -> None:
        self._source = source
        self.expanded = asides.expanded
        self.opaque: dict[str, None] = {}
        self.expressions = PlanExpressions(self.relation, self._saw_code, asides.own_casts)
        self.shared: dict[int, PlanRelation] = {}  # of WITH, by its number

    def relation(self, root: PlanNode, outer: PlanScope | None = None) -> PlanRelation:
        """Return what comes out of a plan."""
        return fold_tree(root, lambda node, inputs: self._apply(node, inputs, outer))

    def _apply(
        self, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
    ) -> PlanRelation:
        operator = _OPERATORS.get(node.kind)
        if operator is not None:
            return operator(self, node, inputs, outer)
        if node.kind in _PASSING and inputs:
            return inputs[0]
        if not inputs:
            return self._source(node)
        return self._unknown(node, inputs)

    def _unknown(self, node: PlanNode, inputs: Sequence[PlanRelation]) -> PlanRelation:
        self._saw_code(node.kind)
        output = node.trees("output")
        return seen_through_nothing(output, inputs) if output else side_by_side(inputs)

    def _saw_code(self, name: str) -> None:
        self.opaque[name] = None


def _project(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    scope = PlanScope(inputs, outer)
    items = node.trees("projectList")
    return PlanRelation([flow.expressions.column(item, scope) for item in items], inputs[0].rows)


def _filter(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    condition = node.tree("condition")
    if condition is None:
        return inputs[0]
    return inputs[0].steered(
        flow.expressions.of(condition, PlanScope(inputs, outer)), DependencyKind.FILTER
    )


def _join(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    both = side_by_side(inputs)
    condition = node.tree("condition") or node.tree("asOfCondition")
    if condition is not None:
        both = both.steered(
            flow.expressions.of(condition, PlanScope(inputs, outer)), DependencyKind.JOIN
        )
    how = node.fields.get("joinType") or {}
    if str(how.get("object", "")).rstrip("$").endswith(_LEFT_ONLY):
        return PlanRelation(inputs[0].columns, both.rows)
    exists = how.get("exists")
    if is_tree(exists):  # a column that tells whether there was a match
        flag = parse_tree(exists)
        return PlanRelation(
            [*inputs[0].columns, PlanColumn(flag.id, flag.name, both.rows)], inputs[0].rows
        )
    return both


def _lateral_join(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    right = node.tree("right")
    plan = None if right is None else right.tree("plan")
    if plan is None:
        return inputs[0]
    scope = PlanScope(inputs, outer)
    return _join(flow, node, [inputs[0], flow.relation(plan, scope)], outer)


def _aggregate(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    scope = PlanScope(inputs, outer)
    groups = flow.expressions.all_of(node.trees("groupingExpressions"), scope)
    items = node.trees("aggregateExpressions")
    columns = [flow.expressions.column(item, scope) for item in items]
    before = inputs[0].rows
    if inputs[0].ungrouped is not None and any(map(_pivots, items)):
        before = inputs[0].ungrouped  # the groups of one value each were only a step
    rows = joined([before, indirect(groups, DependencyKind.GROUP_BY)])
    return PlanRelation(columns, rows, ungrouped=before)


def _pivots(item: PlanNode) -> bool:
    aggregate = item.children[0] if item.kind == "Alias" else item
    return aggregate.kind == "AggregateExpression" and aggregate.children[0].kind == "PivotFirst"


def _window(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    scope = PlanScope(inputs, outer)
    made = [flow.expressions.column(item, scope) for item in node.trees("windowExpressions")]
    return PlanRelation([*inputs[0].columns, *made], inputs[0].rows)


def _generate(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    generator = node.tree("generator")
    output = node.trees("generatorOutput")
    scope = PlanScope(inputs, outer)
    if generator is not None and generator.kind == "Stack":
        return _stack(flow, generator, output, scope)
    used: Deps = {}
    if generator is not None:
        used = direct(flow.expressions.of(generator, scope), DependencyKind.TRANSFORMATION)
    made = [PlanColumn(attribute.id, attribute.name, used, generator) for attribute in output]
    # As many rows as the generator makes of each.
    return PlanRelation([*inputs[0].columns, *made], inputs[0].rows).steered(
        used, DependencyKind.JOIN
    )


def _stack(
    flow: PlanWalker, generator: PlanNode, output: Sequence[PlanNode], scope: PlanScope
) -> PlanRelation:
    """Values written one below another: always as many rows, every column its own values."""
    values = generator.children[1:]
    made = [
        PlanColumn(
            attribute.id, attribute.name, flow.expressions.all_of(values[at :: len(output)], scope)
        )
        for at, attribute in enumerate(output)
    ]
    below = scope.inputs[0]
    return PlanRelation([*below.columns, *made], below.rows)


def _expand(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    """Several rows from each: every output column is one of several expressions."""
    output = node.trees("output")
    given = node.fields.get("projections")
    if not given and output:
        given = [
            [msgspec.json.decode(value) for value in row]
            for row in flow.expanded.get(output[0].id, ())
        ]
    if not given:
        return seen_through_nothing(output, inputs)
    rows = [[parse_tree(item) for item in projection] for projection in given]
    scope = PlanScope(inputs, outer)
    columns = [
        PlanColumn(attribute.id, attribute.name, flow.expressions.all_of(values, scope))
        for attribute, values in zip(output, zip(*rows, strict=False), strict=False)
    ]
    return PlanRelation(columns, inputs[0].rows)


def _union(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    return one_upon_another(inputs)


def _set_operation(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    # What EXCEPT takes away decides which rows remain, but none of its values do.
    kept = inputs[0] if node.kind == "Except" else one_upon_another(inputs)
    rows = joined([*(relation.rows for relation in inputs), *compared(inputs)])
    return PlanRelation(kept.columns, rows)


def _distinct(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    return PlanRelation(inputs[0].columns, joined([inputs[0].rows, *compared(inputs)]))


def _deduplicate(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    keys = flow.expressions.all_of(node.trees("keys"), PlanScope(inputs, outer))
    return inputs[0].steered(keys, DependencyKind.GROUP_BY)


def _sort(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    return inputs[0].steered(
        flow.expressions.all_of(node.trees("order"), PlanScope(inputs, outer)), DependencyKind.SORT
    )


def _code(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    """Rows handed to Python: every output column may use every input column."""
    function = node.tree("functionExpr") or node.tree("func")
    flow.opaque[function.name if function is not None else node.kind] = None
    result = seen_through_nothing(node.trees("output"), inputs)
    groups = flow.expressions.all_of(node.trees("groupingAttributes"), PlanScope(inputs, outer))
    lengths = (node.fields.get("leftGroupingLen"), node.fields.get("rightGroupingLen"))
    sides = [  # of two inputs, the first columns of each are what they are grouped by
        column.deps
        for relation, length in zip(inputs, lengths, strict=False)
        if isinstance(length, int)
        for column in relation.columns[:length]
    ]
    rows = joined([result.rows, indirect(joined([groups, *sides]), DependencyKind.GROUP_BY)])
    return PlanRelation(result.columns, rows)


def _with(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    return inputs[-1]


def _shared_definition(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    flow.shared[int(node.fields["id"])] = inputs[0]
    return inputs[0]


def _shared_reference(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    defined = flow.shared.get(int(node.fields["cteId"]))
    output = node.trees("output")
    if defined is None:
        return PlanRelation([PlanColumn(attribute.id, attribute.name, {}) for attribute in output])
    columns = [
        column._replace(id=attribute.id, name=attribute.name)
        for attribute, column in zip(output, defined.columns, strict=False)
    ]
    return PlanRelation(columns, defined.rows)


def _loop(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
    ids = [int(each["id"]) for each in node.fields.get("outputAttrIds") or ()]
    return close_loop(int(node.fields["id"]), inputs[0], inputs[1], ids)


def _loop_reference(
    flow: PlanWalker, node: PlanNode, inputs: Sequence[PlanRelation], outer: PlanScope | None
) -> PlanRelation:
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
    "MergeIntoCommand": table_changes.merge,
    "UpdateCommand": table_changes.update,
    "DeleteCommand": table_changes.delete,
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
