"""Certified datasets: whether everything upstream of them is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.tags import find_tagged
from downriver.graph import Entity
from downriver.model.answers import BlindSpot, Direction
from downriver.model.governance import CertifiedPath, CertifiedPaths, Share

if TYPE_CHECKING:
    from downriver.govern.entity_context import EntityContext
    from downriver.graph import GraphSnapshot
    from downriver.model.answers import Trace
    from downriver.store import CatalogReader

CERTIFIED = ("certified", "canonical", "golden")  # tags that mark a source of truth
_WHOLE = 100_000


def certified_paths(
    graph: GraphSnapshot, reader: CatalogReader, around: EntityContext
) -> CertifiedPaths:
    """Return every certified dataset with the gaps in its upstream lineage."""
    nodes: set[int] = set()
    for tag in CERTIFIED:
        nodes |= set(find_tagged(graph, reader, tag).datasets)
    spoken = graph.nodes.identities.display_names(nodes, reader)
    paths = [_path(Entity(spoken[node].id, node), around) for node in nodes]
    paths.sort(key=lambda path: (path.intact, path.dataset))
    intact = sum(path.intact for path in paths)
    return CertifiedPaths(integrity=Share.of(intact, len(paths)), datasets=paths)


def _path(entity: Entity, around: EntityContext) -> CertifiedPath:
    found = around.trace(entity, Direction.UPSTREAM, _WHOLE)
    gaps = found.blind_spots or _nothing_upstream(found)
    return CertifiedPath(
        dataset=found.root.id,
        intact=not gaps,
        upstream=len(found.nodes) - 1,
        gaps=gaps,
        owners=around.owners(entity.node),
    )


def _nothing_upstream(found: Trace) -> list[BlindSpot]:
    if len(found.nodes) > 1:
        return []
    message = "no known upstream: no event names its sources"
    return [BlindSpot(kind="no_upstream", entity=found.root.id, message=message)]
