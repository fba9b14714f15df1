"""Entities: search, details, neighbours and diagnosis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.errors import InvalidRequestError
from downriver.graph import Entity, Question, trace, trace_numbered
from downriver.graph.answers.diagnosis import DiagnosisBuilder
from downriver.graph.answers.entity_lists import list_derivations, relate
from downriver.graph.answers.job_roles import count_readers
from downriver.graph.answers.job_runs import last_filled, list_last_runs, writers_of_all
from downriver.graph.answers.node_facts import sent_labels
from downriver.graph.names.assets import Assets
from downriver.graph.names.entity_ids import entity_id
from downriver.graph.names.short_names import ShortNames
from downriver.model.answers import Direction, is_complete
from downriver.model.flows import (
    ColumnDerivations,
    ColumnInfo,
    EntityDetails,
    EntityLineage,
    EntityPage,
    EntitySummary,
    Popular,
    PopularDataset,
)
from downriver.model.governance import Diagnosis
from downriver.model.ids import DEFAULT_NAMESPACE, ColumnId, JobId
from downriver.openlineage.facets.custom import parse_flows
from downriver.openlineage.facets.dataset import SCHEMA, schema_columns
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    TAGS,
    parse_description,
    parse_owners,
    parse_tags,
)
from downriver.openlineage.wire import render_time
from downriver.service.limits import MOST_COUNTED, MOST_RELATED
from downriver.service.session import now
from downriver.service.trace import parse_question

if TYPE_CHECKING:
    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.identities import DisplayName
    from downriver.model.ids import NodeId
    from downriver.service.session import StoreSession

_NEIGHBOURS = 200
_RUNS = 5
_WAY = 2000  # nodes on the way back from a metric


class EntityApi:
    """Entities: search, details, neighbours, diagnosis."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def related(
        self,
        entity: str,
        direction: Direction | str = Direction.BOTH,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        limit: int = MOST_RELATED,
    ) -> EntityLineage:
        """Return the upstream and downstream entities of one, nearest first."""
        question = parse_question(direction, depth, as_of, limit)
        with self._session.reading(question.as_of) as view:
            return self._related(self._session.resolve(entity, view), question, view)

    def _related(self, entity: Entity, question: Question, view: CatalogSnapshot) -> EntityLineage:
        answer, numbers = trace_numbered(view.graph, view.reader, entity, question)
        return relate(
            answer,
            numbers,
            question.direction.value,
            reader=view.reader,
            identities=view.graph.nodes.identities,
            namespace=DEFAULT_NAMESPACE,
        )

    def search(self, text: str, *, limit: int = 20, cursor: str | None = None) -> EntityPage:
        """Find datasets and jobs whose names contain all the words of `text`."""
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is less than 1")
        start = parse_cursor(cursor)
        with self._session.reading() as view:
            names = self._session.search_index(view).names
            matches = names.search(text.split(), limit, start, MOST_COUNTED)
            nodes = view.reader.nodes.by_ids(matches.ids)
            assets = Assets(view.reader, view.graph.nodes)
            assets.load(nodes)
            entities = [
                _summary(nodes[number], number, assets) for number in matches.ids if number in nodes
            ]
        after = start + len(matches.ids)
        complete = matches.all_counted and after >= matches.total
        return EntityPage(
            entities=entities,
            total=matches.total,
            cursor=None if complete or not matches.ids else str(after),
            complete=complete,
            total_is_exact=matches.all_counted,
        )

    def details(self, entity: str, *, as_of: str | None = None) -> EntityDetails:
        """Return the details of a dataset or job, now or at a past moment."""
        question = parse_question(Direction.BOTH, 1, as_of, _NEIGHBOURS)
        with self._session.reading(question.as_of) as view:
            resolved = self._session.resolve(entity, view)
            if isinstance(resolved.id, ColumnId):
                raise InvalidRequestError(
                    "entity_id", f"{resolved.id} is a column; name its dataset"
                )
            near = self._related(resolved, question, view)
            return self._details(resolved.id, resolved.node, near, view, question.until)

    def _details(
        self,
        node: NodeId,
        number: int,
        near: EntityLineage,
        view: CatalogSnapshot,
        until: int | None,
    ) -> EntityDetails:
        identities = view.graph.nodes.identities
        names = identities.group(number)
        display = identities.display_names([number], view.reader)[number]
        of_names = facets_by_name(names, display, view, until)
        facets = {name: body for some in reversed(of_names) for name, body in some.items()}
        summary = _summary(node, number, Assets(view.reader, view.graph.nodes))
        tags, _ = parse_tags(facets.get(TAGS))
        span = view.reader.nodes.span(number)
        jobs = [node] if isinstance(node, JobId) else writers_of_all(view, names)
        filled = None if isinstance(node, JobId) else last_filled(view.reader, jobs, until)
        spots = [spot for spot in near.blind_spots if spot.kind != "depth_limit"]
        return EntityDetails(
            entity_id=summary.entity_id,
            id=summary.id,
            name=summary.name,
            kind=summary.kind,
            type=summary.type,
            namespace=summary.namespace,
            description=parse_description(facets.get(DOCUMENTATION)),
            columns=_columns(of_names),
            owners=list(parse_owners(facets.get(OWNERSHIP))),
            tags=sorted(tags),
            aliases=[str(alias) for alias in display.aliases],
            upstream=near.upstream,
            downstream=near.downstream,
            flows=[flow.flow() for flow in parse_flows(facets)],
            runs=list_last_runs(view.reader, jobs, _RUNS, until),
            first_seen=render_time(span.first.at),
            last_seen=render_time(span.last.at if until is None else min(span.last.at, until)),
            last_updated=None if filled is None else render_time(filled),
            sent=sent_labels(view.reader, names) if until is None else None,
            complete=is_complete(spots),
            blind_spots=spots,
        )

    def most_read(self, limit: int = 10) -> Popular:
        """Return the datasets that the most jobs read."""
        with self._session.reading() as view:
            identities = view.graph.nodes.identities
            counted = self._first(count_readers(view.graph.nodes), limit, view)
            names = identities.display_names([node for node, _ in counted], view.reader)
            labels = ShortNames.of_ids(str(names[node].id) for node, _ in counted)
            assets = Assets(view.reader, view.graph.nodes)
            assets.load(names)
            return Popular(
                datasets=[
                    PopularDataset(
                        id=str(names[node].id),
                        label=labels[str(names[node].id)],
                        type=assets.type_of(names[node].id, node),
                        readers=readers,
                    )
                    for node, readers in counted
                ]
            )

    def _first(
        self, counted: list[tuple[int, int]], limit: int, view: CatalogSnapshot
    ) -> list[tuple[int, int]]:
        """Return the first nodes of a list by count. Equal ones are in the order of their names."""
        if len(counted) <= limit:
            ties, above = counted, []
        else:
            least = counted[limit - 1][1] if limit else 0
            above = [(node, count) for node, count in counted if count > least]
            ties = [(node, count) for node, count in counted if count == least]
        names, identities = self._session.search_index(view).names, view.graph.nodes.identities
        ordered = []
        for group in (above, ties):
            counts = dict(group)
            members, _ = identities.every_name(np.array([*counts], np.int32))
            flags = np.zeros(names.last_id + 1, np.bool_)
            flags[members] = True
            nodes = dict.fromkeys(map(identities.canonical, names.first(flags, len(members))))
            ordered += sorted(((node, counts[node]) for node in nodes), key=lambda item: -item[1])
        return ordered[:limit]

    def column_lineage(self, dataset: str, column: str) -> ColumnDerivations:
        """Return the columns that a column derives from, one entry for each job that writes it."""
        with self._session.reading() as view:
            entity = self._session.resolve_column(dataset, column, view)
            answer = trace(
                view.graph, view.reader, entity, parse_question(Direction.UPSTREAM, 1, None, 10_000)
            )
            # The question does not include the upstream of the sources.
            spots = [spot for spot in answer.blind_spots if spot.kind != "depth_limit"]
            return ColumnDerivations(
                list_derivations(answer), complete=is_complete(spots), blind_spots=spots
            )

    def diagnose(self, dataset: str, column: str) -> Diagnosis:
        """Trace a metric that looks wrong back to its sources, with the places to check first."""
        upstream = parse_question(Direction.UPSTREAM, None, None, _WAY)
        with self._session.reading() as view:
            entity = self._session.resolve_column(dataset, column, view)
            whole = Entity(entity.id, entity.node)
            diagnosing = DiagnosisBuilder(
                trace(view.graph, view.reader, entity, upstream),
                trace(view.graph, view.reader, whole, upstream),
                view,
                now(),
            )
            metric = entity.id
            if not isinstance(metric, ColumnId):
                raise InvalidRequestError("column", f"{column!r} is not a column")
            return diagnosing.diagnose(metric, metric.dataset.name)


def facets_by_name(
    names: list[int], display: DisplayName, view: CatalogSnapshot, until: int | None
) -> list[dict[str, bytes]]:
    """Return the facets of a dataset under each of its names, the displayed name first."""
    facets = view.reader.facets.of_each(names, until=until)
    known = view.reader.nodes.by_ids(names)
    order = sorted(names, key=lambda name: (known[name] != display.id, str(known[name])))
    return [facets.get(name, {}) for name in order]


def _columns(facets: list[dict[str, bytes]]) -> list[ColumnInfo]:
    """Return the columns in the order of the first schema, then the columns of other schemas."""
    columns: dict[str, ColumnInfo] = {}
    tagged = [parse_tags(bodies.get(TAGS)).by_column for bodies in facets]
    for bodies in facets:
        for column in schema_columns(bodies[SCHEMA]) if SCHEMA in bodies else ():
            tags = {tag for each in tagged for tag in each.get(column.path.casefold(), ())}
            info = ColumnInfo(
                name=column.path,
                type=column.type,
                description=column.description,
                tags=sorted(tags),
            )
            columns.setdefault(column.path, info)
    return list(columns.values())


def _summary(node: NodeId, number: int, assets: Assets) -> EntitySummary:
    return EntitySummary(
        entity_id=entity_id(node, DEFAULT_NAMESPACE),
        id=str(node),
        name=node.name,
        kind="job" if isinstance(node, JobId) else "dataset",
        type=assets.type_of(node, number),
        namespace=node.namespace,
    )


def parse_cursor(cursor: str | None) -> int:
    """Return the place at which the page of a cursor starts."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit()) or len(cursor) > 9:
        raise InvalidRequestError("cursor", f"{cursor!r} is not a cursor of an answer")
    return int(cursor)
