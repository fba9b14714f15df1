"""Pieces of the graph, written down for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.graph.export import render
from downriver.model.answers import Direction
from downriver.model.flows import ExportAnswer
from downriver.service.answering import Answering

if TYPE_CHECKING:
    from downriver.model.answers import Trace

MOST_EXPORTED = 100_000


class Exporting(Answering):
    """Writes what lies around an entity in the formats of other tools."""

    def export(
        self,
        entity: str,
        output_format: str = "mermaid",
        direction: Direction | str = Direction.BOTH,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        limit: int = MOST_EXPORTED,
    ) -> ExportAnswer:
        """Return the graph around an entity in a format."""
        found: Trace = self.trace(entity, direction, depth=depth, as_of=as_of, limit=limit)
        return ExportAnswer(
            entity_id=entity,
            format=output_format,
            diagram=render(found, output_format),
            node_count=len(found.nodes),
            edge_count=len(found.edges),
            complete=found.complete,
            blind_spots=found.blind_spots,
        )
