"""The place of each node in the parsed statements of a script.

sqlglot compares nodes by content, so two equal expressions of a script are the same dictionary key.
Their places differ.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import exp

_PLACE = "place"
_LATER_PLACES = count(-1, -1)  # for nodes that are created while a script is read


def number_nodes(trees: Iterable[exp.Expression]) -> None:
    """Give every node of a parsed script its place. Do this once, before the script is shared."""
    nodes = (node for tree in trees for node in tree.walk())
    for place, node in enumerate(nodes):
        node.meta[_PLACE] = place


def place_of(node: exp.Expression) -> int:
    """Return the place of a node. A node from outside the parsed script gets a new place."""
    place: int | None = node.meta.get(_PLACE)
    if place is None:
        place = node.meta[_PLACE] = next(_LATER_PLACES)
    return place
