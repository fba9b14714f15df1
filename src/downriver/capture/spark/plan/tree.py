"""The JSON form of Spark's plans: a tree is a list of nodes in pre-order.

Long jobs have deep plans, and long sums have deep expressions, so no function here recurses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Flat = list[dict[str, Any]]

T = TypeVar("T")


class PlanNode(NamedTuple):
    """An operator or an expression: the simple name of its class, its fields, its children."""

    kind: str
    fields: dict[str, Any]
    children: tuple[PlanNode, ...]

    def tree(self, field: str) -> PlanNode | None:
        """Return the tree in a field, if there is one."""
        value = self.fields.get(field)
        return parse_tree(value) if is_tree(value) else None

    def trees(self, field: str) -> list[PlanNode]:
        """Return the trees in a field that holds a sequence of them."""
        value = self.fields.get(field)
        if not isinstance(value, list):
            return []
        return [parse_tree(item) for item in value if is_tree(item)]

    @property
    def id(self) -> int:
        """Return the number that identifies a column in a plan; names may repeat."""
        ids = self.fields.get("exprId")
        return int(ids["id"]) if isinstance(ids, dict) else -1

    @property
    def name(self) -> str:
        """Return the name of a column, an alias or a function."""
        return str(self.fields.get("name", ""))


def is_tree(value: object) -> TypeGuard[Flat]:
    """Return whether a field's value is a tree."""
    return (
        isinstance(value, list)
        and bool(value)
        and isinstance(value[0], dict)
        and "num-children" in value[0]
    )


def parse_tree(flat: Flat) -> PlanNode:
    """Parse a tree from its list of nodes in pre-order."""
    done: list[PlanNode] = []
    for raw in reversed(flat):
        children = tuple(done.pop() for _ in range(raw["num-children"]))
        kind = str(raw["class"]).rpartition(".")[2].rpartition("$")
        done.append(PlanNode(kind[2] or kind[0], raw, children))
    return done.pop()


def fold_tree(
    root: PlanNode,
    combine: Callable[[PlanNode, Sequence[T]], T],
    children_of: Callable[[PlanNode], Sequence[PlanNode]] = lambda node: node.children,
) -> T:
    """Combine a tree from its leaves to its root, siblings in order."""
    done: list[T] = []
    waiting: list[tuple[PlanNode, int]] = [(root, -1)]
    while waiting:
        node, expected = waiting.pop()
        if expected < 0:
            children = children_of(node)
            waiting.append((node, len(children)))
            waiting.extend((child, -1) for child in reversed(children))
        else:
            start = len(done) - expected
            inputs = done[start:]
            del done[start:]
            done.append(combine(node, inputs))
    return done.pop()
