"""An expression as people would write it, for the description of an edge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.spark.plan import Node, fold_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


def render_expression(root: Node) -> str:
    """Return an expression as text, cut when it is long."""
    text = fold_tree(root, _render)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _render(node: Node, parts: Sequence[str]) -> str:
    parts = [part[: _LONGEST + 1] for part in parts]
    if node.kind in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[node.kind]} {parts[1]})"
    if node.kind in _FIRST_CHILD and parts:
        return parts[0]
    writer = _WRITERS.get(node.kind)
    return writer(node, parts) if writer else f"{_function(node)}({', '.join(parts)})"


def _function(node: Node) -> str:
    named = node.fields.get("name") if node.kind.endswith(("UDF", "UDAF")) else None
    return str(named or _WORD.sub("_", node.kind).lower())


def _literal(node: Node) -> str:
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


def _sort_order(node: Node, parts: Sequence[str]) -> str:
    return f"{parts[0]} desc" if "Descending" in str(node.fields.get("direction")) else parts[0]


def _field(node: Node, parts: Sequence[str]) -> str:
    return f"{parts[0]}.{node.fields.get('name') or node.fields.get('ordinal')}"


_WRITERS: dict[str, Callable[[Node, Sequence[str]], str]] = {
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
