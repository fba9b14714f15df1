"""Copies a part of a catalog: the facts about some nodes, to merge into another store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.facts import (
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
)
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.column_lineage import parse_edges
from downriver.store.catalog.encoding import SPAN, read_body, read_node, read_span, rows_by_id

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from downriver.model.ids import NodeId
    from downriver.store.port import SqlQueries


class FactQueries:
    """Reads rows of the catalog back into the facts that they were written from."""

    def __init__(self, queries: SqlQueries) -> None:
        self._queries = queries

    def about(self, nodes: Collection[int], without_schema: Collection[int] = ()) -> Facts:
        """Return the facts about these nodes and between them, without those about runs.

        The schema facets of the nodes in `without_schema` are left out.
        """
        facts = Facts.empty()
        ids = self._add_nodes(nodes, facts)
        self._add_edges(ids, facts)
        self._add_claims(ids, facts)
        self._add_facets(ids, frozenset(without_schema), facts)
        self._add_bodies(facts)
        _add_claimed_datasets(facts)
        return facts

    def _add_nodes(self, nodes: Iterable[int], facts: Facts) -> dict[int, NodeId]:
        sql = f"SELECT id, kind, namespace, name, {SPAN} FROM nodes WHERE id IN"
        ids: dict[int, NodeId] = {}
        for number, kind, namespace, name, *span in rows_by_id(self._queries, sql, nodes):
            ids[number] = read_node(kind, namespace, name)
            facts.sightings[NodeSeen(ids[number])] = read_span(span)
        return ids

    def _add_edges(self, ids: dict[int, NodeId], facts: Facts) -> None:
        sql = f"SELECT kind, source, target, via, {SPAN} FROM edges WHERE source IN"
        for kind, source, target, via, *span in rows_by_id(self._queries, sql, ids):
            if target not in ids or (via and via not in ids):
                continue
            job = ids[via] if via else None
            assert job is None or isinstance(job, JobId)  # noqa: S101
            edge = EdgeSeen(EdgeKind(kind), ids[source], ids[target], job)
            facts.sightings[edge] = read_span(span)

    def _add_claims(self, ids: dict[int, NodeId], facts: Facts) -> None:
        sql = f"SELECT job, dataset, facet, digest, {SPAN} FROM claims WHERE dataset IN"
        for job, dataset, facet, digest, *span in rows_by_id(self._queries, sql, ids):
            if job and job not in ids:
                continue
            made_by = ids[job] if job else None
            target = ids[dataset]
            assert isinstance(target, DatasetId)  # noqa: S101
            assert made_by is None or isinstance(made_by, JobId)  # noqa: S101
            claim = ClaimSeen(made_by, target, facet, bytes(digest))
            facts.sightings[claim] = read_span(span)

    def _add_facets(
        self, ids: dict[int, NodeId], without_schema: frozenset[int], facts: Facts
    ) -> None:
        sql = f"""
            SELECT role, node, name, digest, {SPAN} FROM facets WHERE role = 0 AND run = 0
            AND node IN
        """.strip()
        for role, node, name, digest, *span in rows_by_id(self._queries, sql, ids):
            if name == "schema" and node in without_schema:
                continue
            facet = FacetSeen(FacetRole(role), ids[node], None, name, bytes(digest))
            facts.sightings[facet] = read_span(span)

    def _add_bodies(self, facts: Facts) -> None:
        digests = {
            seen.digest for seen in facts.sightings if isinstance(seen, FacetSeen | ClaimSeen)
        }
        for digest in digests:
            for (body,) in self._queries.rows(
                "SELECT body FROM bodies WHERE digest = ?", (digest,)
            ):
                facts.bodies[digest] = read_body(body)


def _add_claimed_datasets(facts: Facts) -> None:
    """Add the datasets that only claims name: a claim refers to its datasets as nodes."""
    for seen, span in list(facts.sightings.items()):
        if isinstance(seen, ClaimSeen):
            for dataset in parse_edges(
                seen.facet, facts.bodies[seen.digest], seen.dataset
            ).datasets:
                facts.sightings.setdefault(NodeSeen(dataset), span)
