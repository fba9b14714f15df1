"""What is written down: a trace, and what a format may ask about it besides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import NamedTuple

from downriver.model.answers import Trace, TraceEdge, TraceNode
from downriver.model.flows import ColumnDerivation
from downriver.model.ids import DatasetId


class Derived(NamedTuple):
    """A column with how it is made, and the columns it is made of."""

    field: str
    derivation: ColumnDerivation
    sources: list[tuple[DatasetId, str]]


class Piece(NamedTuple):
    """A trace; `find_event` returns an event of the log, `columns_of` how columns are made."""

    trace: Trace
    find_event: Callable[[str], bytes]
    columns_of: Callable[[TraceNode], list[Derived]]

    def upstreams(self) -> dict[str, list[TraceEdge]]:
        """Return for each dataset the edges that lead to it from datasets, jobs left out."""
        into_jobs: defaultdict[str, list[TraceEdge]] = defaultdict(list)
        for edge in self.trace.edges:
            if edge.kind == "reads":
                into_jobs[edge.target].append(edge)
        found: defaultdict[str, dict[str, TraceEdge]] = defaultdict(dict)
        for edge in self.trace.edges:
            if edge.kind == "derives" and edge.type is None:
                found[edge.target].setdefault(edge.source, edge)
            elif edge.kind == "writes":
                for read in into_jobs[edge.source]:
                    if read.source != edge.target:
                        found[edge.target].setdefault(read.source, read)
        return {target: list(edges.values()) for target, edges in sorted(found.items())}
