"""The rows that an Expand makes of each row (ROLLUP, unpivot): a plan's JSON leaves them out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from downriver.capture.spark.java import Java, each, ids, simple_name

_NUMBERED = re.compile(r"^(\d+) [ :+-]*Expand \[", re.MULTILINE)
_MOST_ROWS = 1_000  # asked for one by one


def has_expands(plan_text: str) -> bool:
    """Tell whether a plan, as its numbered text, makes several rows of one."""
    return _NUMBERED.search(plan_text) is not None


def add_projections(plan_json: str, plan: Java, plan_text: str, jvm: Java) -> str:
    """Return a plan's JSON with what its Expands make: of each row, the trees of its columns.

    Those of plans inside expressions stay as they are.
    """
    found = (plan.apply(int(number)) for number in _NUMBERED.findall(plan_text))
    expands = {tuple(ids(node.output())): node for node in found if simple_name(node) == "Expand"}
    nodes: list[dict[str, Any]] = msgspec.json.decode(plan_json)
    for node in nodes:
        expand = expands.get(_output_ids(node)) if node["class"].endswith(".Expand") else None
        if expand is not None and expand.projections().size() <= _MOST_ROWS:
            node["projections"] = _projections(expand, jvm)
    return msgspec.json.encode(nodes).decode()


def _projections(expand: Java, jvm: Java) -> list[Any]:
    """Return of each row one tree, whose children are its columns: one round trip, not many."""
    wrap = jvm.org.apache.spark.sql.catalyst.expressions.CreateArray
    return [msgspec.json.decode(str(wrap(row).toJSON())) for row in each(expand.projections())]


def _output_ids(node: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(tree[0]["exprId"]["id"]) for tree in node["output"])
