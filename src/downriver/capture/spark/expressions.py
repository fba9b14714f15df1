"""From a Catalyst expression to what its value depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.spark.plan import Node, fold_tree
from downriver.capture.spark.relations import Column, Field, Relation, joined
from downriver.capture.sql.deps import NOTHING, Deps, Kind, at_least, steering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SAME_VALUE = frozenset(
    {
        "Alias", "AssertNotNull", "KnownNotNull", "KnownNullable", "KnownFloatingPointNormalized",
        "NormalizeNaNAndZero", "PromotePrecision", "SortOrder", "TempResolvedColumn", "UpCast",
        "WindowSpecDefinition", "NamedExpression", "OuterReference", "LateralColumnAliasReference",
    }
)  # fmt: skip
_MASKING = frozenset(
    {"AesEncrypt", "Crc32", "HiveHash", "Mask", "Md5", "Murmur3Hash", "Sha1", "Sha2", "XxHash64"}
)
_CODE = frozenset({"PythonUDF", "ScalaUDF", "HiveSimpleUDF", "HiveGenericUDF", "PythonUDTF"})
_AGGREGATING_CODE = frozenset({"PythonUDAF", "HiveUDAFFunction", "ScalaUDAF", "ScalaAggregator"})
_GROUPED_PANDAS = (202, 252)  # evalType of a Python function that aggregates a group


class Scope(NamedTuple):
    """The columns an expression may name: those of its operator's inputs, then those around."""

    inputs: Sequence[Relation]
    outer: Scope | None = None

    def find(self, expr_id: int) -> Column | None:
        """Return a column by its id, from the nearest relation that has it."""
        scope: Scope | None = self
        while scope is not None:
            for relation in scope.inputs:
                found = relation.find(expr_id)
                if found is not None:
                    return found
            scope = scope.outer
        return None


class Expressions:
    """Computes dependencies; plans inside expressions go back to `relation_of`."""

    def __init__(
        self,
        relation_of: Callable[[Node, Scope | None], Relation],
        opaque: Callable[[str], None],
        own_casts: frozenset[int],
    ) -> None:
        self._relation_of = relation_of
        self._opaque = opaque
        self._own_casts = own_casts

    def column(self, node: Node, scope: Scope) -> Column:
        """Return an item of a select list as a column."""
        inner = self._without_own_casts(node)
        if inner.kind == "AttributeReference":
            found = scope.find(inner.id)
            if found is not None:
                return found._replace(id=node.id, name=node.name)
        return Column(node.id, node.name, self.of(inner, scope), inner, self._fields(inner, scope))

    def of(self, root: Node, scope: Scope) -> Deps:
        """Return what the value of an expression depends on."""
        return fold_tree(
            root, lambda node, inputs: self._combine(node, inputs, scope), _children_that_matter
        )

    def all_of(self, nodes: Sequence[Node], scope: Scope) -> Deps:
        """Return what the values of several expressions depend on."""
        return joined(self.of(node, scope) for node in nodes)

    def _without_own_casts(self, node: Node) -> Node:
        """Return what a select list's item holds, without what Spark put around to fit a type."""
        if node.kind != "Alias":
            return node
        inner = node.children[0]
        if inner.kind == "CheckOverflowInTableInsert" or _is_length_check(inner):
            inner = inner.children[0]
        if inner.kind == "Cast" and node.id in self._own_casts:
            return inner.children[0]
        return inner

    def _combine(self, node: Node, inputs: Sequence[Deps], scope: Scope) -> Deps:
        match node.kind:
            case "AttributeReference":
                found = scope.find(node.id)
                return NOTHING if found is None else found.deps
            case "OuterReference":
                named = node.tree("e")
                return NOTHING if named is None else self.of(named, scope)
            case "GetStructField":
                return self._field(node, inputs, scope)
            case "If":
                return _chosen(inputs[:1], inputs[1:])
            case "CaseWhen":
                paired = len(inputs) // 2 * 2
                return _chosen(inputs[:paired:2], [*inputs[1:paired:2], *inputs[paired:]])
            case "AggregateExpression":
                return _chosen(inputs[1:], [at_least(inputs[0], Kind.AGGREGATION)])
            case "PivotFirst":
                return _chosen(inputs[:1], [at_least(inputs[1], Kind.AGGREGATION)])
            case "WindowExpression":
                used = at_least(inputs[0], Kind.TRANSFORMATION)
                return joined([used, steering(inputs[1], Kind.WINDOW)])
            case "MaxBy" | "MinBy":
                return joined(
                    [at_least(inputs[0], Kind.AGGREGATION), steering(inputs[1], Kind.SORT)]
                )
            case "ScalarSubquery" | "ListQuery" | "LateralSubquery" | "Exists":
                return self._subquery(node, scope)
        return self._used(node, joined(inputs))

    def _used(self, node: Node, deps: Deps) -> Deps:
        if node.kind in _CODE or node.kind in _AGGREGATING_CODE:
            self._opaque(node.name or str(node.fields.get("udfName") or "a function"))
            aggregates = (
                node.kind in _AGGREGATING_CODE or node.fields.get("evalType") in _GROUPED_PANDAS
            )
            return at_least(deps, Kind.AGGREGATION if aggregates else Kind.TRANSFORMATION)
        if node.kind in _SAME_VALUE:
            return deps
        return at_least(deps, Kind.TRANSFORMATION, masked=node.kind in _MASKING)

    def _field(self, node: Node, inputs: Sequence[Deps], scope: Scope) -> Deps:
        """A field of a struct that the plan itself built comes from that field's value alone."""
        field = self._built_field(node, scope)
        return at_least(inputs[0], Kind.TRANSFORMATION) if field is None else field.deps

    def _built_field(self, node: Node, scope: Scope) -> Field | None:
        fields = self._fields(node.children[0], scope)
        at = int(node.fields.get("ordinal", 0))
        return fields[at] if fields is not None and at < len(fields) else None

    def _fields(self, node: Node, scope: Scope) -> tuple[Field, ...] | None:
        """Return the fields of a struct whose making the plan shows."""
        match node.kind:
            case "AttributeReference":
                column = scope.find(node.id)
                return None if column is None else column.fields
            case "CreateNamedStruct":
                return tuple(
                    Field(self.of(value, scope), self._fields(value, scope))
                    for value in node.children[1::2]
                )
            case "GetStructField":
                field = self._built_field(node, scope)
                return None if field is None else field.fields
        return None

    def _subquery(self, node: Node, scope: Scope) -> Deps:
        plan = node.tree("plan")
        if plan is None:
            return NOTHING
        relation = self._relation_of(plan, scope)
        if node.kind == "Exists":
            return relation.rows
        return joined([at_least(relation.value(), Kind.TRANSFORMATION), relation.rows])


def _children_that_matter(node: Node) -> Sequence[Node]:
    if node.kind in {"ScalarSubquery", "ListQuery", "LateralSubquery", "Exists"}:
        return ()  # what they refer to outside is found from inside their plan
    return node.children


def _is_length_check(node: Node) -> bool:
    return (
        node.kind == "StaticInvoke"
        and node.fields.get("functionName") == "varcharTypeWriteSideCheck"
    )


def _chosen(conditions: Sequence[Deps], values: Sequence[Deps]) -> Deps:
    """Return what a value depends on that is one of several, chosen by conditions."""
    return joined(
        [
            *(at_least(value, Kind.TRANSFORMATION) for value in values),
            *(steering(condition, Kind.CONDITIONAL) for condition in conditions),
        ]
    )
