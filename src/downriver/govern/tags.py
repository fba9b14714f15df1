"""Tags and how they propagate along column edges, and the paths to certified datasets."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.answers.view import limit_blind_spots
from downriver.model.answers import BlindSpot, Direction, is_complete
from downriver.model.governance import (
    CERTIFIED_TAGS,
    CertifiedPath,
    CertifiedPaths,
    Share,
    TaggedColumn,
    TagReach,
)
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.facets.description import TAGS, parse_tags

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.govern.entity_context import EntityContext
    from downriver.graph import GraphSnapshot
    from downriver.model.answers import Trace
    from downriver.store import CatalogReader

_CARRYING = frozenset({"IDENTITY", "TRANSFORMATION", ""})


class TagEdge(NamedTuple):
    """One column derives from another. The ids are those of the caller."""

    source: str
    target: str
    direct: bool
    subtype: str
    masking: bool


class TagSpread(NamedTuple):
    """The shortest path on which a tag reaches each column, and where masking stops it."""

    reached: dict[str, tuple[str, ...]]
    stopped: dict[str, tuple[str, ...]]


def carries(edge: TagEdge) -> bool:
    """Return whether a value propagates along an edge: copied or computed, and not masked."""
    return edge.direct and not edge.masking and edge.subtype.upper() in _CARRYING


def propagate(edges: Iterable[TagEdge], tagged: Iterable[str]) -> TagSpread:
    """Return the columns that a tag reaches, each with its shortest path.

    A column that is masked on one path and not on another is reached.
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
    return TagSpread(
        {column: path for column, path in reached.items() if column not in origins},
        {column: path for column, path in stopped.items() if column not in reached},
    )


def _by_source(edges: Iterable[TagEdge]) -> Mapping[str, list[TagEdge]]:
    leaving: dict[str, list[TagEdge]] = {}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    # Sorted, so that of two shortest paths the same one is always returned.
    return {source: sorted(found) for source, found in leaving.items()}


_COLUMNS = 100_000


class TaggedEntities(NamedTuple):
    """The columns and the whole datasets that have a tag."""

    columns: list[Entity]
    datasets: dict[int, DatasetId]


def find_tagged(graph: GraphSnapshot, reader: CatalogReader, tag: str) -> TaggedEntities:
    """Return the columns and datasets on which a tag was set."""
    columns: dict[int, Entity] = {}
    datasets: dict[int, DatasetId] = {}
    bodies = reader.facets.named("tags")
    names = reader.nodes.by_ids(bodies)
    for node, body in bodies.items():
        dataset = names[node]
        if not isinstance(dataset, DatasetId):
            continue
        whole, by_column = parse_tags(body)
        if tag in whole:
            datasets[graph.nodes.identities.canonical(node)] = dataset
        for field in sorted(field for field, tags in by_column.items() if tag in tags):
            found = reader.columns.find(node, field)
            if found is not None:
                columns[found[0]] = Entity(ColumnId(dataset, found[1]), node, found[0])
    return TaggedEntities(sorted(columns.values(), key=lambda entity: str(entity.id)), datasets)


def reach_of_tag(
    graph: GraphSnapshot, reader: CatalogReader, tag: str, around: EntityContext, stale_days: int
) -> TagReach:
    """Return where a tag was set, which columns it reaches, and where masking stops it."""
    found = find_tagged(graph, reader, tag)
    question = Question(Direction.DOWNSTREAM, None, FOREVER, _COLUMNS, stale_days)
    traces = [trace(graph, reader, entity, question) for entity in found.columns]
    spread = propagate(
        [edge for each in traces for edge in column_edges(each)],
        [each.root.id for each in traces],
    )
    spots = _distinct([spot for each in traces for spot in each.blind_spots])

    def tagged_columns(paths: dict[str, tuple[str, ...]]) -> list[TaggedColumn]:
        return [
            TaggedColumn(
                column=column,
                tag=tag,
                origin=path[0],
                path=list(path),
                owners=around.owners_of(column),
            )
            for column, path in sorted(paths.items())
        ]

    return TagReach(
        tag=tag,
        tagged=[each.root.id for each in traces],
        datasets=sorted(str(dataset) for dataset in found.datasets.values()),
        reached=tagged_columns(spread.reached),
        stopped=tagged_columns(spread.stopped),
        complete=is_complete(spots),
        blind_spots=limit_blind_spots(spots, len(spots)),
    )


def column_edges(found: Trace) -> list[TagEdge]:
    """Return the edges of a trace of columns."""
    return [
        TagEdge(e.source, e.target, e.type != "INDIRECT", e.subtype or "", e.masking)
        for e in found.edges
    ]


def _distinct(spots: list[BlindSpot]) -> list[BlindSpot]:
    known = {(spot.kind, spot.entity, spot.message): spot for spot in spots}
    return [known[key] for key in sorted(known)]


_WHOLE = 100_000


def certified_paths(
    graph: GraphSnapshot, reader: CatalogReader, around: EntityContext
) -> CertifiedPaths:
    """Return every certified dataset with the gaps in its upstream lineage."""
    nodes: set[int] = set()
    for tag in CERTIFIED_TAGS:
        nodes |= set(find_tagged(graph, reader, tag).datasets)
    display_names = graph.nodes.identities.display_names(nodes, reader)
    paths = [_path(Entity(display_names[node].id, node), around) for node in nodes]
    paths.sort(key=lambda path: (path.intact, path.dataset))
    intact = sum(path.intact for path in paths)
    return CertifiedPaths(integrity=Share.of(intact, len(paths)), datasets=paths)


def certified_integrity(
    graph: GraphSnapshot, reader: CatalogReader, moment: int, stale_days: int
) -> Share:
    """Return the share of the datasets certified at a moment whose upstream was complete then."""
    identities = graph.nodes.identities
    tagged = reader.facets.of_each(reader.facets.named(TAGS), (TAGS,), moment)
    certified = {
        identities.canonical(node)
        for node, facets in tagged.items()
        if parse_tags(facets.get(TAGS)).whole & set(CERTIFIED_TAGS)
    }
    names = identities.display_names(certified, reader)
    question = Question(Direction.UPSTREAM, None, moment, _WHOLE, stale_days)
    datasets = [n for n in certified if isinstance(names[n].id, DatasetId)]
    traces = [trace(graph, reader, Entity(names[n].id, n), question) for n in datasets]
    intact = sum(not (found.blind_spots or _nothing_upstream(found)) for found in traces)
    return Share.of(intact, len(traces))


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
    message = "no known upstream: no event contains its sources"
    return [BlindSpot(kind="no_upstream", entity=found.root.id, message=message)]
