"""Tags as the catalog has them: where one was set, and where data took it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.propagation import ColumnEdge, propagate
from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.view import and_more
from downriver.impact.labels import read_tags
from downriver.model.answers import Direction
from downriver.model.governance import TaggedColumn, TagReach
from downriver.model.ids import ColumnId, DatasetId

if TYPE_CHECKING:
    from downriver.govern.surroundings import Surroundings
    from downriver.graph import GraphIndex
    from downriver.model.answers import BlindSpot, Trace
    from downriver.store import Reader

_COLUMNS = 100_000


class Tagged(NamedTuple):
    """What has a tag: columns as entities, and datasets as a whole."""

    columns: list[Entity]
    datasets: dict[int, DatasetId]


def find_tagged(graph: GraphIndex, reader: Reader, tag: str) -> Tagged:
    """Return everything that was given a tag."""
    columns: dict[int, Entity] = {}
    datasets: dict[int, DatasetId] = {}
    bodies = reader.facets_named("tags")
    names = reader.nodes(bodies)
    for node, body in bodies.items():
        dataset = names[node]
        if not isinstance(dataset, DatasetId):
            continue
        whole, by_column = read_tags(body)
        if tag in whole:
            datasets[graph.nodes.identities.canonical(node)] = dataset
        for field in sorted(field for field, tags in by_column.items() if tag in tags):
            found = reader.find_column(node, field)
            if found is not None:
                columns[found[0]] = Entity(ColumnId(dataset, found[1]), node, found[0])
    return Tagged(sorted(columns.values(), key=lambda entity: str(entity.id)), datasets)


def reach_of_tag(
    graph: GraphIndex, reader: Reader, tag: str, around: Surroundings, stale_days: int
) -> TagReach:
    """Return where a tag was set, where data took it, and where masking stopped it."""
    found = find_tagged(graph, reader, tag)
    question = Question(Direction.DOWNSTREAM, None, FOREVER, _COLUMNS, stale_days)
    traces = [trace(graph, reader, entity, question) for entity in found.columns]
    spread = propagate(
        [edge for each in traces for edge in _column_edges(each)],
        [each.root.id for each in traces],
    )
    spots = _distinct([spot for each in traces for spot in each.blind_spots])

    def told(paths: dict[str, tuple[str, ...]]) -> list[TaggedColumn]:
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
        reached=told(spread.reached),
        stopped=told(spread.stopped),
        complete=not spots,
        blind_spots=and_more(spots, len(spots)),
    )


def _column_edges(found: Trace) -> list[ColumnEdge]:
    return [
        ColumnEdge(e.source, e.target, e.type != "INDIRECT", e.subtype or "", e.masking)
        for e in found.edges
    ]


def _distinct(spots: list[BlindSpot]) -> list[BlindSpot]:
    known = {(spot.kind, spot.entity, spot.message): spot for spot in spots}
    return [known[key] for key in sorted(known)]
