"""Nodes in an order in which each comes after what it depends on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.capture.dbt.nodes import Node


def in_order(nodes: Mapping[str, Node]) -> list[Node]:
    """Return nodes after their parents. A cycle, which dbt forbids, is cut where it is met."""
    done: dict[str, Node] = {}
    for key in nodes:
        _visit(key, nodes, done)
    return list(done.values())


def _visit(key: str, nodes: Mapping[str, Node], done: dict[str, Node]) -> None:
    waiting = [(key, False)]
    begun: set[str] = set()
    while waiting:
        current, parents_done = waiting.pop()
        if current in done or current not in nodes:
            continue
        if parents_done:
            done[current] = nodes[current]
        elif current not in begun:
            begun.add(current)
            waiting.append((current, True))
            waiting += [(parent, False) for parent in nodes[current].depends_on]
