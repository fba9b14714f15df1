"""An expression as people would write it, for the description of an edge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.spark.plan import Node, fold_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST = 500
_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "Remainder": "%",
    "IntegralDivide": "div", "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<",
    "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "And": "AND",
    "Or": "OR", "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^",
}  # fmt: skip
_FIRST_CHILD = frozenset({"Alias", "AggregateExpression", "KnownNotNull", "AssertNotNull", "UpCast"})
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def render_expression(root: Node) -> str:
    """Return an expression as text, cut when it is long."""
    text = fold_tree(root, _render)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _render(node: Node, parts: Sequence[str]) -> str:
    return _text(node, [part[: _LONGEST + 1] for part in parts])


def _text(node: Node, parts: Sequence[str]) -> str:
    kind = node.kind
    if kind in {"AttributeReference", "NamedLambdaVariable"}:
        return node.name
    if kind == "Literal":
        return _literal(node)
    if kind in _FIRST_CHILD and parts:
        return parts[0]
    if kind in _INFIX and len(parts) == 2:
        return f"({parts[0]} {_INFIX[kind]} {parts[1]})"
    if kind == "Cast":
        return f"cast({parts[0]} as {_type(node.fields.get('dataType'))})"
    if kind == "CaseWhen":
        return _case(parts)
    if kind == "GetStructField":
        return f"{parts[0]}.{node.fields.get('name') or node.fields.get('ordinal')}"
    if kind in {"IsNull", "IsNotNull"}:
        return f"({parts[0]} is {'not ' if kind == 'IsNotNull' else ''}null)"
    if kind == "Not":
        return f"(not {parts[0]})"
    if kind == "WindowExpression":
        return f"{parts[0]} over ({parts[1]})"
    if kind == "WindowSpecDefinition":
        return ", ".join(part for part in parts if part)
    if kind == "SortOrder":
        descending = "Descending" in str(node.fields.get("direction"))
        return f"{parts[0]}{' desc' if descending else ''}"
    if kind in {"SpecifiedWindowFrame", "UnspecifiedFrame"}:
        return ""
    if kind in {"ScalarSubquery", "Exists", "ListQuery"}:
        return "(subquery)"
    return f"{_function(node)}({', '.join(parts)})"


def _function(node: Node) -> str:
    named = node.fields.get("name") if node.kind.endswith(("UDF", "UDAF")) else None
    return str(named or _WORD.sub("_", node.kind).lower())


def _literal(node: Node) -> str:
    value = node.fields.get("value")
    if value is None:
        return "null"
    return f"'{value}'" if node.fields.get("dataType") == "string" else str(value)


def _type(kind: object) -> str:
    return kind if isinstance(kind, str) else str(kind.get("type", "")) if isinstance(kind, dict) else ""


def _case(parts: Sequence[str]) -> str:
    paired = len(parts) // 2 * 2
    branches = [
        f"when {condition} then {value}"
        for condition, value in zip(parts[:paired:2], parts[1:paired:2], strict=True)
    ]
    otherwise = [f"else {parts[paired]}"] if len(parts) > paired else []
    return " ".join(["case", *branches, *otherwise, "end"])
