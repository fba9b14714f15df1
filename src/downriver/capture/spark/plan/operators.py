"""Translates the operators of a plan into the column algebra.

Each operator is a function from a `PlanOperation` to the relation that the operator returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from downriver.capture.spark.plan import table_changes
from downriver.capture.spark.plan.expressions import PlanDefinition, PlanExpressions, PlanScope
from downriver.capture.spark.plan.known_origins import NOTHING_KNOWN
from downriver.capture.spark.plan.tree import PlanNode, fold_tree, is_tree, parse_tree
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Relation,
    TableName,
    aggregate,
    compare_rows,
    direct,
    distinct,
    filter_rows,
    indirect,
    join,
    merge,
    merge_all,
    opaque,
    project,
    sort,
    source,
    union,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.spark.actions import PlanDetails
    from downriver.capture.spark.plan.known_origins import KnownOrigins


class PlanLeaves(Protocol):
    """Reads the leaves of a plan."""

    def relation(self, node: PlanNode) -> Relation:
        """Return the columns of a leaf; each is its own source."""

    def file_name(self, node: PlanNode) -> Deps:
        """Return the names of a leaf's files, as a column of its dataset."""


# These operators change neither rows nor columns.
_PASSING = frozenset(
    {
        "CollectMetrics", "EventTimeWatermark", "GlobalLimit", "LocalLimit", "Offset",
        "PipeOperator", "RebalancePartitions", "Repartition", "RepartitionByExpression",
        "ResolvedHint", "ReturnAnswer", "Sample", "SubqueryAlias", "Tail",
        "UpdateEventTimeWatermarkColumn",
        "WithWindowDefinition",
    }
)  # fmt: skip
_LEFT_ONLY = ("LeftSemi", "LeftAnti")


class PlanWalker:
    """Follows columns through a plan. `read_leaf` returns the relation of a leaf.

    `opaque` collects the names of user code, which Downriver cannot analyse.
    """

    def __init__(
        self,
        leaves: PlanLeaves,
        details: PlanDetails,
        tables: str = "",
        known: KnownOrigins = NOTHING_KNOWN,
    ) -> None:
        self._leaves = leaves
        self.tables = tables  # the namespace of the names of views
        self.views: dict[TableName, None] = {}
        self.unknown: dict[str, None] = {}
        self.expanded = details.expanded
        self.opaque: dict[str, None] = {}
        self.collected: Deps = {}
        self.expressions = PlanExpressions(self, details.own_casts, known)
        self.shared: dict[int, Relation] = {}  # CTEs, by id

    def relation(self, root: PlanNode, outer: PlanScope | None = None) -> Relation:
        """Return the output of a plan."""
        return fold_tree(
            root, lambda node, inputs: self._apply(PlanOperation(self, node, inputs, outer))
        )

    def add_opaque(self, name: str) -> None:
        """Record code that cannot be analysed."""
        self.opaque[name] = None

    def add_collected(self, origins: Deps) -> None:
        """Record the origins of values that passed through the driver."""
        merge(self.collected, origins)

    def file_names(self, node: PlanNode) -> Deps:
        """Return the names of the files that an operator reads, as a column of each dataset."""
        waiting, file_nodes = [node], []
        while waiting:
            current = waiting.pop()
            waiting += current.children
            if not current.children:
                file_nodes.append(self._leaves.file_name(current))
        return merge_all(file_nodes)

    def _apply(self, operation: PlanOperation) -> Relation:
        kind = operation.node.kind
        translate = _OPERATORS.get(kind)
        if translate is not None:
            return translate(operation)
        if not operation.inputs:
            return self._leaves.relation(operation.node)
        return operation.inputs[0] if kind in _PASSING else _unknown(operation)


class PlanOperation(NamedTuple):
    """An operator of a plan, with the relations it reads and the scope of the outer query."""

    walker: PlanWalker
    node: PlanNode
    inputs: Sequence[Relation]
    outer: PlanScope | None

    @property
    def scope(self) -> PlanScope:
        """The columns that the operator's expressions may use."""
        return PlanScope(self.inputs, self.outer, self.node)

    def columns(self, field: str) -> list[Column]:
        """Return the columns that a select list in a field computes."""
        expressions, scope = self.walker.expressions, self.scope
        return [expressions.column(item, scope) for item in self.node.trees(field)]

    def deps(self, field: str) -> Deps:
        """Return the dependencies of the expressions in a field."""
        return self.walker.expressions.all_of(self.node.trees(field), self.scope)

    def condition(self, *fields: str) -> Deps:
        """Return the dependencies of the condition in the first of these fields that has one."""
        for field in fields:
            condition = self.node.tree(field)
            if condition is not None:
                return self.walker.expressions.of(condition, self.scope)
        return NOTHING


class GroupedRelation(Relation):
    """The output of an aggregation. `ungrouped` are the dependencies of the rows before it."""

    __slots__ = ("ungrouped",)

    def __init__(self, grouped: Relation, ungrouped: Deps) -> None:
        super().__init__(grouped.items, grouped.rows)
        self.ungrouped = ungrouped


def _make_columns(attributes: Sequence[PlanNode]) -> list[Column]:
    """Return columns without dependencies, with the names and ids of attributes."""
    return [Column(each.name, NOTHING, number=each.id) for each in attributes]


def _unknown(operation: PlanOperation) -> Relation:
    operation.walker.unknown[operation.node.kind] = None
    output = operation.node.trees("output")
    return opaque(operation.inputs, _make_columns(output)) if output else join(operation.inputs)


def _project(operation: PlanOperation) -> Relation:
    return project(operation.inputs[0], operation.columns("projectList"))


def _filter(operation: PlanOperation) -> Relation:
    return filter_rows(operation.inputs[0], operation.condition("condition"))


def _join(operation: PlanOperation) -> Relation:
    left = operation.inputs[0]
    both = join(operation.inputs, operation.condition("condition", "asOfCondition"))
    how = operation.node.fields.get("joinType") or {}
    if str(how.get("object", "")).rstrip("$").endswith(_LEFT_ONLY):
        return Relation(left.items, both.rows)
    exists = how.get("exists")
    if is_tree(exists):  # an existence join adds a boolean column
        flag = parse_tree(exists)
        return project(left, [*left.items, Column(flag.name, both.rows, number=flag.id)])
    return both


def _lateral_join(operation: PlanOperation) -> Relation:
    right = operation.node.tree("right")
    plan = None if right is None else right.tree("plan")
    left = operation.inputs[0]
    if plan is None:
        return left
    relation = operation.walker.relation(plan, operation.scope)
    return _join(operation._replace(inputs=[left, relation]))


def _aggregate(operation: PlanOperation) -> Relation:
    relation = operation.inputs[0]
    if isinstance(relation, GroupedRelation) and any(
        map(_is_pivot, operation.node.trees("aggregateExpressions"))
    ):
        relation = Relation(relation.items, relation.ungrouped)  # Spark groups twice for a pivot
    keys, columns = operation.deps("groupingExpressions"), operation.columns("aggregateExpressions")
    return GroupedRelation(aggregate(relation, keys, columns), relation.rows)


def _is_pivot(item: PlanNode) -> bool:
    value = item.children[0] if item.kind == "Alias" else item
    return value.kind == "AggregateExpression" and value.children[0].kind == "PivotFirst"


def _window(operation: PlanOperation) -> Relation:
    relation = operation.inputs[0]
    return project(relation, [*relation.items, *operation.columns("windowExpressions")])


def _number_rows(operation: PlanOperation) -> Relation:
    """Return the rows with the index that pandas-on-Spark generates for them."""
    relation, index = operation.inputs[0], operation.node.tree("sequenceAttr")
    return project(relation, [*_make_columns([index] if index else []), *relation.items])


def _generate(operation: PlanOperation) -> Relation:
    relation, generator = operation.inputs[0], operation.node.tree("generator")
    output = operation.node.trees("generatorOutput")
    if generator is None:
        return project(relation, [*relation.items, *_make_columns(output)])
    if generator.kind == "Stack":
        return _stack(operation, generator, output)
    value = operation.walker.expressions.of(generator, operation.scope)
    used = direct(value, DependencyKind.TRANSFORMATION)
    columns = [
        Column(each.name, used, definition=PlanDefinition(generator), number=each.id)
        for each in output
    ]
    # The generator decides the number of rows for each input row: none for an empty array.
    return filter_rows(join([relation, Relation(columns)]), used)


def _stack(operation: PlanOperation, generator: PlanNode, output: Sequence[PlanNode]) -> Relation:
    """Return the output of stack(): a fixed number of rows, each column with its own values."""
    relation, values = operation.inputs[0], generator.children[1:]
    deps = [
        operation.walker.expressions.all_of(values[at :: len(output)], operation.scope)
        for at in range(len(output))
    ]
    return project(relation, [*relation.items, *_with_deps(output, deps)])


def _expand(operation: PlanOperation) -> Relation:
    """Return the output of Expand: each output column is one of several expressions."""
    output = operation.node.trees("output")
    projections = operation.node.fields.get("projections")
    if not projections and output:
        projections = [
            [msgspec.json.decode(value) for value in row]
            for row in operation.walker.expanded.get(output[0].id, ())
        ]
    if not projections:
        return opaque(operation.inputs, _make_columns(output))
    rows = [[parse_tree(item) for item in projection] for projection in projections]
    deps = [
        operation.walker.expressions.all_of(values, operation.scope)
        for values in zip(*rows, strict=False)
    ]
    return project(operation.inputs[0], _with_deps(output, deps))


def _with_deps(output: Sequence[PlanNode], deps: Sequence[Deps]) -> list[Column]:
    return [
        column.with_deps(known) for column, known in zip(_make_columns(output), deps, strict=False)
    ]


def _union(operation: PlanOperation) -> Relation:
    return union(operation.inputs)


def _set_operation(operation: PlanOperation) -> Relation:
    # The right side of EXCEPT decides which rows remain, but no value comes from it.
    inputs = operation.inputs
    kept = inputs[0] if operation.node.kind == "Except" else union(inputs)
    return compare_rows(kept, inputs)


def _distinct(operation: PlanOperation) -> Relation:
    return distinct(operation.inputs[0])


def _deduplicate(operation: PlanOperation) -> Relation:
    return distinct(operation.inputs[0], operation.deps("keys"))


def _sort(operation: PlanOperation) -> Relation:
    return sort(operation.inputs[0], operation.deps("order"))


def _code(operation: PlanOperation) -> Relation:
    """Return the output of Python code: every column may use every input column."""
    node, inputs = operation.node, operation.inputs
    function = node.tree("functionExpr") or node.tree("func")
    operation.walker.add_opaque(function.name if function is not None else node.kind)
    lengths = (node.fields.get("leftGroupingLen"), node.fields.get("rightGroupingLen"))
    cogroup_keys = [  # the first columns of each input of a cogroup
        column.deps
        for relation, length in zip(inputs, lengths, strict=False)
        if isinstance(length, int)
        for column in relation.columns[:length]
    ]
    keys = merge_all([operation.deps("groupingAttributes"), *cogroup_keys])
    return distinct(opaque(inputs, _make_columns(node.trees("output"))), keys)


def _object_code(operation: PlanOperation) -> Relation:
    """Return the output of Scala code: rows become objects, and objects become rows."""
    node = operation.node
    operation.walker.add_opaque("Scala code")
    attribute = node.tree("outputObjAttr")
    output = node.trees("serializer") or ([] if attribute is None else [attribute])
    return opaque(operation.inputs, _make_columns(output))


def _view(operation: PlanOperation) -> Relation:
    """Return a view. Columns of a persisted view depend on it, and on the tables below it."""
    relation, node = operation.inputs[0], operation.node
    match node.fields:
        case {"isTempView": False, "desc": {"identifier": {"table": str(name), **rest}}}:
            view = (operation.walker.tables, f"{rest.get('database') or 'default'}.{name}")
        case _:
            return relation
    operation.walker.views[view] = None
    columns = [
        column.with_deps(merge_all([column.deps, source(view, column.name)]))
        for column in relation.columns
    ]
    return Relation(columns, relation.rows)


def _with(operation: PlanOperation) -> Relation:
    return operation.inputs[-1]


def _define_cte(operation: PlanOperation) -> Relation:
    relation = operation.inputs[0]
    operation.walker.shared[int(operation.node.fields["id"])] = relation
    return relation


def _read_cte(operation: PlanOperation) -> Relation:
    output = operation.node.trees("output")
    shared = operation.walker.shared.get(int(operation.node.fields["cteId"]))
    if shared is None:
        return Relation(_make_columns(output))
    columns = [
        column.with_name(each.name, each.id)
        for each, column in zip(output, shared.columns, strict=False)
    ]
    return project(shared, columns)


# Recursive WITH: inside the loop, its own columns are placeholders, which are replaced at the end.


def _read_loop(operation: PlanOperation) -> Relation:
    """Return the loop's rows as its own body reads them: a placeholder for each column."""
    table = _loop_table(operation.node.fields["loopId"])
    return Relation(
        [
            Column(each.name, source(table, str(at)), number=each.id)
            for at, each in enumerate(operation.node.trees("output"))
        ]
    )


def _loop(operation: PlanOperation) -> Relation:
    """Return the loop's rows: those of its anchor, and those that each iteration adds."""
    table = _loop_table(operation.node.fields["id"])
    anchor, body = operation.inputs
    known = [column.deps for column in anchor.columns]
    while True:
        more = [
            merge_all([deps, _without_placeholders(column.deps, table, known)])
            for deps, column in zip(known, body.columns, strict=False)
        ]
        if more == known:
            break
        known = more
    ids = [int(each["id"]) for each in operation.node.fields.get("outputAttrIds") or ()]
    columns = [
        Column(
            column.name,
            deps,
            definition=column.definition,
            number=ids[at] if at < len(ids) else column.number,
        )
        for at, (column, deps) in enumerate(zip(anchor.columns, known, strict=False))
    ]
    added = _without_placeholders(body.rows, table, known)
    return Relation(columns, merge_all([anchor.rows, added]))


def _loop_table(loop: object) -> TableName:
    return "\x00loop", str(loop)


def _without_placeholders(deps: Deps, table: TableName, known: Sequence[Deps]) -> Deps:
    """Replace dependencies on the loop's placeholders by what those columns depend on."""
    parts = [{key: certainty for key, certainty in deps.items() if key[0] != table}]
    for owner, column, kind, masked in deps:
        if owner == table and int(column) < len(known):
            inner = known[int(column)]
            is_direct = kind < DependencyKind.JOIN
            parts.append(direct(inner, kind, masked=masked) if is_direct else indirect(inner, kind))
    return merge_all(parts)


_OPERATORS: dict[str, Callable[[PlanOperation], Relation]] = {
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
    "CTERelationDef": _define_cte,
    "CTERelationRef": _read_cte,
    "UnionLoop": _loop,
    "UnionLoopRef": _read_loop,
    "View": _view,
    "AttachDistributedSequence": _number_rows,
    "AppendColumns": _object_code,
    "CoGroup": _object_code,
    "DeserializeToObject": _object_code,
    "FlatMapGroupsWithState": _object_code,
    "MapElements": _object_code,
    "MapGroups": _object_code,
    "MapPartitions": _object_code,
    "SerializeFromObject": _object_code,
    "MergeRows": table_changes.merged_rows,
    "ReplaceData": table_changes.changed_rows,
    "WriteDelta": table_changes.changed_rows,
    "DeleteFromTable": table_changes.deleted_rows,
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
