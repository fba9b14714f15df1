"""How a tag travels: with the value, along column edges, until something masks it.

The rule is a function over edges alone, so that a server and a lake tell the same.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_CARRYING = frozenset({"IDENTITY", "TRANSFORMATION", ""})


class ColumnEdge(NamedTuple):
    """One column derives from another. Ids are whatever the caller calls columns."""

    source: str
    target: str
    direct: bool
    subtype: str
    masking: bool


class Spread(NamedTuple):
    """The shortest way by which a tag came to each column, and where masking kept it from one."""

    reached: dict[str, tuple[str, ...]]
    stopped: dict[str, tuple[str, ...]]


def carries(edge: ColumnEdge) -> bool:
    """Tell whether a value goes along an edge: copied or computed, not counted and not masked."""
    return edge.direct and not edge.masking and edge.subtype.upper() in _CARRYING


def propagate(edges: Iterable[ColumnEdge], tagged: Iterable[str]) -> Spread:
    """Return where a tag leads from the columns that have it, each with its shortest way.

    A column that is masked on one way and not on another is reached.
    """
    leaving = _by_source(edges)
    reached: dict[str, tuple[str, ...]] = {column: (column,) for column in sorted(set(tagged))}
    origins = set(reached)
    stopped: dict[str, tuple[str, ...]] = {}
    waiting = deque(reached)
    while waiting:
        column = waiting.popleft()
        for edge in leaving.get(column, ()):
            path = (*reached[column], edge.target)
            if carries(edge) and edge.target not in reached:
                reached[edge.target] = path
                waiting.append(edge.target)
            elif edge.direct and edge.masking:
                stopped.setdefault(edge.target, path)
    return Spread(
        {column: path for column, path in reached.items() if column not in origins},
        {column: path for column, path in stopped.items() if column not in reached},
    )


def _by_source(edges: Iterable[ColumnEdge]) -> Mapping[str, list[ColumnEdge]]:
    leaving: dict[str, list[ColumnEdge]] = {}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    # In one order whatever order they came in: of two shortest ways always the same is told.
    return {source: sorted(found) for source, found in leaving.items()}
