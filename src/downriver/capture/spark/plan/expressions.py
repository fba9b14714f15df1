"""Catalyst expressions: their dependencies, and their text in SQL-like form."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from downriver.capture.spark.plan.known_origins import NOTHING_KNOWN
from downriver.capture.spark.plan.tree import PlanNode, fold_tree
from downriver.columns import (
    NOTHING,
    Column,
    DependencyKind,
    Deps,
    Relation,
    choose,
    count,
    direct,
    first_known,
    indirect,
    merge_all,
    null_if,
    window,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.spark.plan.known_origins import KnownOrigins

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


class PlanDefinition(NamedTuple):
    """The Catalyst expression that computes a column."""

    expression: PlanNode

    def text(self) -> str:
        """Return the expression as SQL-like text: as Spark printed it, if only that is known."""
        printed = str(self.expression.fields.get("text") or "")
        return _shorten(printed) if printed else render_expression(self.expression)


class PlanScope(NamedTuple):
    """The columns an expression may use: of its operator's inputs, then of the outer query."""

    inputs: Sequence[Relation]
    outer: PlanScope | None = None
    operator: PlanNode | None = None

    def find(self, expr_id: int) -> Column | None:
        """Return a column by its id, from the innermost relation that has it."""
        scope: PlanScope | None = self
        while scope is not None:
            for relation in scope.inputs:
                column = relation.find_number(expr_id)
                if column is not None:
                    return column
            scope = scope.outer
        return None


class PlanReader(Protocol):
    """The part of a plan reader that expressions use."""

    def relation(self, root: PlanNode, outer: PlanScope | None = None) -> Relation:
        """Return the output of the plan of a subquery."""

    def add_opaque(self, name: str) -> None:
        """Record code that cannot be analysed."""

    def add_collected(self, origins: Deps) -> None:
        """Record the origins of values that passed through the driver."""

    def file_names(self, node: PlanNode) -> Deps:
        """Return the names of the files that an operator reads."""


class PlanExpressions:
    """Computes the dependencies of expressions. `plan` reads subqueries and files."""

    def __init__(
        self, plan: PlanReader, own_casts: frozenset[int], known: KnownOrigins = NOTHING_KNOWN
    ) -> None:
        self._plan = plan
        self._own_casts = own_casts
        self._known = known

    def column(self, node: PlanNode, scope: PlanScope) -> Column:
        """Return an item of a select list as a column."""
        inner = self._without_own_casts(node)
        if inner.kind == "AttributeReference":
            origin = scope.find(inner.id)
            if origin is not None:
                kept = origin.with_name(node.name, node.id)
                learned = self._known.learned(node.id)
                return kept.with_deps(merge_all([kept.deps, learned])) if learned else kept
        return Column(
            node.name,
            merge_all([self.of(inner, scope), self._known.learned(node.id)]),
            definition=PlanDefinition(inner),
            fields=self._fields(inner, scope),
            number=node.id,
        )

    def of(self, root: PlanNode, scope: PlanScope) -> Deps:
        """Return the dependencies of an expression's value."""
        return fold_tree(
            root, lambda node, inputs: self._combine(node, inputs, scope), _own_children
        )

    def all_of(self, nodes: Sequence[PlanNode], scope: PlanScope) -> Deps:
        """Return the dependencies of the values of several expressions."""
        return merge_all(self.of(node, scope) for node in nodes)

    def _without_own_casts(self, node: PlanNode) -> PlanNode:
        """Return the expression of a select item without the casts that Spark added itself."""
        if node.kind != "Alias":
            return node
        inner = node.children[0]
        if inner.kind == "CheckOverflowInTableInsert" or _is_length_check(inner):
            inner = inner.children[0]
        if inner.kind == "Cast" and node.id in self._own_casts:
            return inner.children[0]
        return inner

    def _combine(self, node: PlanNode, inputs: Sequence[Deps], scope: PlanScope) -> Deps:
        match node.kind:
            case "AttributeReference":
                origin = scope.find(node.id)
                return NOTHING if origin is None else origin.deps
            case "OuterReference":
                named = node.tree("e")
                return NOTHING if named is None else self.of(named, scope)
            case "GetStructField":
                return self._field(node, inputs, scope)
            case "If":
                _, value, otherwise = node.children
                if value.id >= 0 and value.id == otherwise.id:
                    return inputs[1]  # UPDATE of a table keeps its other columns like this
                return choose(inputs[:1], inputs[1:])
            case "CaseWhen":
                paired = len(inputs) // 2 * 2
                return choose(inputs[:paired:2], [*inputs[1:paired:2], *inputs[paired:]])
            case "AggregateExpression":
                return choose(inputs[1:], [direct(inputs[0], DependencyKind.AGGREGATION)])
            case "PivotFirst":
                return choose(inputs[:1], [direct(inputs[1], DependencyKind.AGGREGATION)])
            case "WindowExpression":
                return window(inputs[0], [inputs[1]])
            case "MaxBy" | "MinBy":
                return merge_all(
                    [
                        direct(inputs[0], DependencyKind.AGGREGATION),
                        indirect(inputs[1], DependencyKind.SORT),
                    ]
                )
            case "ScalarSubquery" | "ListQuery" | "LateralSubquery" | "Exists":
                return self._subquery(node, scope)
        return self._function(node, inputs, scope)

    def _function(self, node: PlanNode, inputs: Sequence[Deps], scope: PlanScope) -> Deps:
        match node.kind:
            case "Coalesce":
                return first_known(inputs)
            case "NullIf" if (tested := node.tree("left")) and (other := node.tree("right")):
                return null_if(self.of(tested, scope), self.of(other, scope))
            case "Count" | "CountIf" | "HyperLogLogPlusPlus":
                return count(merge_all(inputs))
            case "Literal":
                return self._collected([node])
            case "In":
                return self._in(node, inputs)
            case "InputFileName" | "InputFileBlockStart" | "InputFileBlockLength":
                return NOTHING if scope.operator is None else self._plan.file_names(scope.operator)
            case "Rank" | "DenseRank" | "PercentRank":
                return NOTHING  # their arguments are the order of the window
        return self._used(node, merge_all(inputs))

    def _in(self, node: PlanNode, inputs: Sequence[Deps]) -> Deps:
        """Return the dependencies of IN, with the origins of a list that the driver collected."""
        values = [child for child in node.children[1:] if child.kind == "Literal"]
        if len(values) > 1:
            inputs = [*inputs, self._collected(values)]
        return self._used(node, merge_all(inputs))

    def _collected(self, literals: Sequence[PlanNode]) -> Deps:
        """Return the origins of values, if the driver collected them from Spark."""
        origins = self._known.values(literals)
        if origins:
            self._plan.add_collected(origins)
        return origins

    def _used(self, node: PlanNode, deps: Deps) -> Deps:
        if node.kind in _CODE or node.kind in _AGGREGATING_CODE:
            self._plan.add_opaque(node.name or str(node.fields.get("udfName") or "a function"))
            aggregates = (
                node.kind in _AGGREGATING_CODE or node.fields.get("evalType") in _GROUPED_PANDAS
            )
            return direct(
                deps, DependencyKind.AGGREGATION if aggregates else DependencyKind.TRANSFORMATION
            )
        if node.kind in _SAME_VALUE:
            return deps
        return direct(deps, DependencyKind.TRANSFORMATION, masked=node.kind in _MASKING)

    def _field(self, node: PlanNode, inputs: Sequence[Deps], scope: PlanScope) -> Deps:
        """Return the dependencies of a struct field: only its value, if the plan builds it."""
        field = self._built_field(node, scope)
        return direct(inputs[0], DependencyKind.TRANSFORMATION) if field is None else field.deps

    def _built_field(self, node: PlanNode, scope: PlanScope) -> Column | None:
        fields = self._fields(node.children[0], scope)
        return None if fields is None else fields.get(str(node.fields.get("ordinal", 0)))

    def _fields(self, node: PlanNode, scope: PlanScope) -> dict[str, Column] | None:
        """Return the fields of a struct that the plan builds, by position."""
        match node.kind:
            case "AttributeReference":
                column = scope.find(node.id)
                return None if column is None else column.fields
            case "CreateNamedStruct":
                return {
                    str(at): Column("", self.of(value, scope), fields=self._fields(value, scope))
                    for at, value in enumerate(node.children[1::2])
                }
            case "GetStructField":
                field = self._built_field(node, scope)
                return None if field is None else field.fields
        return None

    def _subquery(self, node: PlanNode, scope: PlanScope) -> Deps:
        plan = node.tree("plan")
        if plan is None:
            return NOTHING
        relation = self._plan.relation(plan, scope)
        if node.kind == "Exists":
            return relation.rows
        return merge_all([direct(relation.value(), DependencyKind.TRANSFORMATION), relation.rows])


def _own_children(node: PlanNode) -> Sequence[PlanNode]:
    if node.kind in {"ScalarSubquery", "ListQuery", "LateralSubquery", "Exists"}:
        return ()  # their plan is read with the outer scope
    return node.children


def _is_length_check(node: PlanNode) -> bool:
    return (
        node.kind == "StaticInvoke"
        and node.fields.get("functionName") == "varcharTypeWriteSideCheck"
    )


_LONGEST = 500
_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "IntegralDivide": "div", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<",
    "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "And": "AND",
    "Or": "OR", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip
_FIRST_CHILD = frozenset(
    {"Alias", "AggregateExpression", "KnownNotNull", "AssertNotNull", "UpCast"}
)
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render_expression(root: PlanNode) -> str:
    """Render an expression as text, truncated when it is long."""
    return _shorten(fold_tree(root, _render))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _render(node: PlanNode, parts: Sequence[str]) -> str:
    parts = [part[: _LONGEST + 1] for part in parts]
    if node.kind in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[node.kind]} {parts[1]})"
    if node.kind in _FIRST_CHILD and parts:
        return parts[0]
    writer = _WRITERS.get(node.kind)
    return writer(node, parts) if writer else f"{_function(node)}({', '.join(parts)})"


def _function(node: PlanNode) -> str:
    named = node.fields.get("name") if node.kind.endswith(("UDF", "UDAF")) else None
    return str(named or _WORD.sub("_", node.kind).lower())


def _literal(node: PlanNode) -> str:
    value = node.fields.get("value")
    if value is None:
        return "null"
    return f"'{value}'" if node.fields.get("dataType") == "string" else str(value)


def _type(kind: object) -> str:
    return (
        kind
        if isinstance(kind, str)
        else str(kind.get("type", ""))
        if isinstance(kind, dict)
        else ""
    )


def _case(parts: Sequence[str]) -> str:
    paired = len(parts) // 2 * 2
    branches = [
        f"when {condition} then {value}"
        for condition, value in zip(parts[:paired:2], parts[1:paired:2], strict=True)
    ]
    otherwise = [f"else {parts[paired]}"] if len(parts) > paired else []
    return " ".join(["case", *branches, *otherwise, "end"])


def _sort_order(node: PlanNode, parts: Sequence[str]) -> str:
    return f"{parts[0]} desc" if "Descending" in str(node.fields.get("direction")) else parts[0]


def _field(node: PlanNode, parts: Sequence[str]) -> str:
    return f"{parts[0]}.{node.fields.get('name') or node.fields.get('ordinal')}"


_WRITERS: dict[str, Callable[[PlanNode, Sequence[str]], str]] = {
    "AttributeReference": lambda node, _: node.name,
    "NamedLambdaVariable": lambda node, _: node.name,
    "Literal": lambda node, _: _literal(node),
    "Cast": lambda node, parts: f"cast({parts[0]} as {_type(node.fields.get('dataType'))})",
    "CaseWhen": lambda _, parts: _case(parts),
    "GetStructField": _field,
    "IsNull": lambda _, parts: f"({parts[0]} is null)",
    "IsNotNull": lambda _, parts: f"({parts[0]} is not null)",
    "Not": lambda _, parts: f"(not {parts[0]})",
    "WindowExpression": lambda _, parts: f"{parts[0]} over ({parts[1]})",
    "WindowSpecDefinition": lambda _, parts: ", ".join(part for part in parts if part),
    "SortOrder": _sort_order,
    "SpecifiedWindowFrame": lambda *_: "",
    "UnspecifiedFrame": lambda *_: "",
    "ScalarSubquery": lambda *_: "(subquery)",
    "Exists": lambda *_: "(subquery)",
    "ListQuery": lambda *_: "(subquery)",
}
