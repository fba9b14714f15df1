"""Tags and how they propagate along column edges, and the paths to certified datasets."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.answers.node_facts import labels_of, sent_labels
from downriver.graph.answers.view import limit_blind_spots
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import BlindSpot, Direction, is_complete
from downriver.model.governance import (
    CERTIFIED_TAGS,
    PII_TAG,
    CertifiedPath,
    CertifiedPaths,
    ColumnTags,
    DatasetTags,
    Share,
    TaggedColumn,
    TagReach,
)
from downriver.model.ids import TAG_RECORDS, ColumnId, DatasetId, JobId
from downriver.openlineage.facets.description import (
    PROPAGATION,
    TAGS,
    parse_propagation,
    parse_tags,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.govern.entity_context import EntityContext
    from downriver.graph import GraphSnapshot
    from downriver.model.answers import Trace, TraceNode
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
    bodies = reader.facets.named(TAGS)
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
    graph: GraphSnapshot,
    reader: CatalogReader,
    tag: str,
    around: EntityContext,
    stale_days: int,
    as_of: int = FOREVER,
) -> TagReach:
    """Return where a tag is set, the columns that it reaches, and where masking stops it.

    `as_of` is a moment of the lineage. Tags have no history: they are those of the present.
    """
    found = find_tagged(graph, reader, tag)
    traces = trace_downstream(graph, reader, found.columns, stale_days, as_of)
    spread = spread_over(traces)
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


def trace_downstream(
    graph: GraphSnapshot,
    reader: CatalogReader,
    columns: Iterable[Entity],
    stale_days: int,
    as_of: int = FOREVER,
) -> list[Trace]:
    """Return the downstream traces of columns with a tag."""
    question = Question(Direction.DOWNSTREAM, None, as_of, _COLUMNS, stale_days)
    return [trace(graph, reader, entity, question) for entity in columns]


def spread_over(traces: list[Trace]) -> TagSpread:
    """Return the reach of a tag from the roots of traces."""
    edges = [edge for each in traces for edge in column_edges(each)]
    return propagate(edges, [each.root.id for each in traces])


def propagating_tags(reader: CatalogReader) -> frozenset[str]:
    """Return the tags that propagate along column lineage: `pii`, and those declared so."""
    records = reader.directory.records(TAG_RECORDS)
    facets = reader.facets.of_each(records, (PROPAGATION,))
    declared = {
        name
        for number, name in records.items()
        if parse_propagation(facets.get(number, {}).get(PROPAGATION))
    }
    return frozenset({PII_TAG, *declared})


def tags_reaching(
    graph: GraphSnapshot, reader: CatalogReader, columns: Iterable[Entity], stale_days: int
) -> set[str]:
    """Return the propagating tags that reach one of these columns."""
    tags = {tag: find_tagged(graph, reader, tag).columns for tag in propagating_tags(reader)}
    if not any(tags.values()):
        return set()
    question = Question(Direction.UPSTREAM, None, FOREVER, _COLUMNS, stale_days)
    traces = [trace(graph, reader, column, question) for column in columns]
    edges = [edge for each in traces for edge in column_edges(each)]
    wanted = {each.root.id for each in traces}
    own = _set_on(graph, reader, {node.id: node for each in traces for node in each.nodes}.values())
    return {
        tag
        for tag in tags
        if wanted & propagate(edges, [c for c, of in own.items() if tag in of]).reached.keys()
    }


def tags_of_dataset(
    graph: GraphSnapshot, reader: CatalogReader, entity: Entity, stale_days: int
) -> DatasetTags:
    """Return the tags of a dataset and its columns, and which propagating tags reach a column."""
    display = graph.nodes.identities.display_names([entity.node], reader)[entity.node]
    question = Question(Direction.UPSTREAM, None, FOREVER, _COLUMNS, stale_days)
    columns = _columns(graph, reader, entity)
    traces = [trace(graph, reader, column, question) for column in columns]
    edges = [edge for each in traces for edge in column_edges(each)]
    places = {node.id: node for each in traces for node in each.nodes}
    own = _set_on(graph, reader, places.values())
    propagates = sorted(propagating_tags(reader))
    reached: dict[str, list[TaggedColumn]] = {}
    for tag in propagates:
        spread = propagate(edges, [column for column, tags in own.items() if tag in tags])
        for column, path in spread.reached.items():
            found = TaggedColumn(column=column, tag=tag, origin=path[0], path=list(path))
            reached.setdefault(column, []).append(found)
    names = {each.root.id: each.root.field or "" for each in traces}
    spots = _distinct([spot for each in traces for spot in each.blind_spots])
    group = sorted(graph.nodes.identities.group(entity.node))
    labels = labels_of(reader, group)
    return DatasetTags(
        dataset=str(display.id),
        tags=labels.tags,
        owners=labels.owners,
        description=labels.description,
        sent=sent_labels(reader, group),
        columns=[
            ColumnTags(column=c, tags=sorted(own.get(c, ())), reached=reached.get(c, []))
            for c in sorted(names, key=lambda c: names[c].casefold())
        ],
        propagates=propagates,
        complete=is_complete(spots),
        blind_spots=limit_blind_spots(spots, len(spots)),
    )


def _columns(graph: GraphSnapshot, reader: CatalogReader, entity: Entity) -> list[Entity]:
    """Return the columns of a dataset under all of its names, or the one column asked for."""
    if isinstance(entity.id, ColumnId):
        return [entity]
    found: dict[str, Entity] = {}
    if not isinstance(entity.id, DatasetId):
        return []
    for node in graph.nodes.identities.group(entity.node):
        for field in reader.columns.list_names(node):
            known = reader.columns.find(node, field)
            if known is not None:
                column = Entity(ColumnId(entity.id, known[1]), node, known[0])
                found.setdefault(field.casefold(), column)
    return list(found.values())


def _set_on(
    graph: GraphSnapshot, reader: CatalogReader, places: Iterable[TraceNode]
) -> dict[str, frozenset[str]]:
    """Return the tags that were set on columns, under any name of their dataset."""
    columns = [place for place in places if place.field is not None]
    datasets = {DatasetId(place.namespace, place.name) for place in columns}
    numbers = reader.nodes.find_each(datasets)
    groups = {name: graph.nodes.identities.group(number) for name, number in numbers.items()}
    of = reader.facets.of_each({node for group in groups.values() for node in group}, (TAGS,))
    tags = {node: parse_tags(facets.get(TAGS)).by_column for node, facets in of.items()}
    return {
        place.id: frozenset().union(
            *(
                tags[node].get((place.field or "").casefold(), frozenset())
                for node in groups.get(DatasetId(place.namespace, place.name), ())
                if node in tags
            )
        )
        for place in columns
    }


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


def find_badges(
    graph: GraphSnapshot, reader: CatalogReader, entities: Iterable[str]
) -> dict[str, list[str]]:
    """Return the tags that are shown beside the name of an entity, for those that have any.

    They are the tags of a source of truth, and those that propagate.
    """
    identities = graph.nodes.identities
    shown = [*CERTIFIED_TAGS, *sorted(propagating_tags(reader))]
    resolved = {
        name: entity
        for name in dict.fromkeys(entities)
        if (entity := find_entity(name, reader, identities)) is not None
        and not isinstance(entity.id, JobId)
    }
    groups = {entity.node: identities.group(entity.node) for entity in resolved.values()}
    numbers = {number for group in groups.values() for number in group}
    facets = reader.facets.of_each(numbers, ("tags",))
    badges: dict[str, list[str]] = {}
    for name, entity in resolved.items():
        found: set[str] = set()
        for number in groups[entity.node]:
            tags = parse_tags(facets.get(number, {}).get("tags"))
            if isinstance(entity.id, ColumnId):
                found |= tags.by_column.get(entity.id.field.casefold(), frozenset())
            else:
                found |= tags.whole
        if listed := [tag for tag in shown if tag in found]:
            badges[name] = listed
    return badges
