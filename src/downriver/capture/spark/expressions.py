"""From a Catalyst expression to what its value depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.spark.plan import Node, fold_tree
from downriver.capture.spark.relations import Column, Relation, joined
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
    ) -> None:
        self._relation_of = relation_of
        self._opaque = opaque

    def column(self, node: Node, scope: Scope) -> Column:
        """Return an item of a select list as a column."""
        inner = node.children[0] if node.kind == "Alias" else node
        if inner.kind == "AttributeReference":
            found = scope.find(inner.id)
            if found is not None:
                return found._replace(id=node.id, name=node.name)
        fields = None
        if inner.kind == "CreateNamedStruct":
            fields = tuple(self.of(value, scope) for value in inner.children[1::2])
        return Column(node.id, node.name, self.of(inner, scope), inner, fields)

    def of(self, root: Node, scope: Scope) -> Deps:
        """Return what the value of an expression depends on."""
        return fold_tree(
            root, lambda node, inputs: self._combine(node, inputs, scope), _children_that_matter
        )

    def all_of(self, nodes: Sequence[Node], scope: Scope) -> Deps:
        """Return what the values of several expressions depend on."""
        return joined(self.of(node, scope) for node in nodes)

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
        child = node.children[0]
        at = int(node.fields.get("ordinal", 0))
        if child.kind == "AttributeReference":
            column = scope.find(child.id)
            if column is not None and column.fields is not None and at < len(column.fields):
                return column.fields[at]
        if child.kind == "CreateNamedStruct":
            return inputs[0]  # only that field was walked
        return at_least(inputs[0], Kind.TRANSFORMATION)

    def _subquery(self, node: Node, scope: Scope) -> Deps:
        plan = node.tree("plan")
        if plan is None:
            return NOTHING
        relation = self._relation_of(plan, scope)
        if node.kind == "Exists":
            return relation.rows
        return joined([at_least(relation.value(), Kind.TRANSFORMATION), relation.rows])


def _children_that_matter(node: Node) -> Sequence[Node]:
    if node.kind == "GetStructField" and node.children[0].kind == "CreateNamedStruct":
        values = node.children[0].children[1::2]
        at = int(node.fields.get("ordinal", 0))
        return values[at : at + 1] or node.children
    if node.kind in {"ScalarSubquery", "ListQuery", "LateralSubquery", "Exists"}:
        return ()  # what they refer to outside is found from inside their plan
    return node.children


def _chosen(conditions: Sequence[Deps], values: Sequence[Deps]) -> Deps:
    """Return what a value depends on that is one of several, chosen by conditions."""
    return joined(
        [
            *(at_least(value, Kind.TRANSFORMATION) for value in values),
            *(steering(condition, Kind.CONDITIONAL) for condition in conditions),
        ]
    )
