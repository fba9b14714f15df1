"""Limits facts to the namespaces that a key may read.

A dataset or job outside these namespaces is replaced by a node in the namespace `outside-scope`,
whose name is a keyed hash. The node is connected only to visible neighbours and has a blind spot.
So a walk that leaves the namespaces ends at a blind spot.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.facts import (
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    Sighting,
)
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.base import facet_digest
from downriver.openlineage.facets.column_lineage import parse_edges
from downriver.openlineage.facets.custom import BLIND_SPOTS, BlindSpotEntry, render_blind_spots

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.access import Scope
    from downriver.model.facts import Span
    from downriver.model.ids import NodeId

OUTSIDE = "outside-scope"  # the namespace of the nodes that stand for hidden ones
OUTSIDE_KIND = "outside_scope"
_BODY = bytes(
    render_blind_spots(
        [
            BlindSpotEntry(
                OUTSIDE_KIND,
                "is outside the namespaces of this API key: its name, code and further lineage are "
                "not shown; use a key for its namespace",
            )
        ]
    )
)
_DIGEST = facet_digest(_BODY)
_ID_PREFIXES = ("dataset:", "job:", "column:")


class Restriction:
    """Limits facts to a scope. `secret` keys the hashes, so that names cannot be guessed."""

    def __init__(self, scope: Scope, secret: bytes) -> None:
        self._scope = scope
        self._secret = secret
        self._token = lru_cache(65_536)(self._hash)

    def apply(self, facts: Facts) -> Facts:
        """Return the facts that a key with this scope may see."""
        limited = Facts.empty()
        for sighting, span in facts.sightings.items():
            for kept in self._limit_sighting(sighting, facts, limited):
                span_before = limited.sightings.get(kept)
                limited.sightings[kept] = span if span_before is None else span_before.merge(span)
        for run, fact in facts.runs.items():
            if self._scope.allows(run.job):
                limited.runs[run] = fact
        self._add_claimed(limited)
        return limited

    def _limit_sighting(
        self, sighting: Sighting, facts: Facts, limited: Facts
    ) -> Iterator[Sighting]:
        allows = self._scope.allows
        match sighting:
            case NodeSeen(node=node):
                if allows(node):
                    yield sighting
            case EdgeSeen():
                yield from self._edge(sighting, limited)
            case FacetSeen(node=node, run=run, digest=digest):
                if allows(node) and (run is None or allows(run.job)):
                    body = self._body(facts.bodies[digest], limited)
                    yield msgspec.structs.replace(sighting, digest=body)
            case ClaimSeen(job=job, dataset=dataset, digest=digest):
                if allows(dataset) and (job is None or allows(job)):
                    body = self._body(facts.bodies[digest], limited)
                    yield msgspec.structs.replace(sighting, digest=body)

    def _add_claimed(self, limited: Facts) -> None:
        """Add the datasets that only claims name: a claim refers to its datasets as nodes."""
        claims = [
            (seen, span) for seen, span in limited.sightings.items() if isinstance(seen, ClaimSeen)
        ]
        for seen, span in claims:
            named = parse_edges(seen.facet, limited.bodies[seen.digest], seen.dataset).datasets
            for dataset in named:
                limited.sightings.setdefault(NodeSeen(dataset), span)
                if dataset.namespace == OUTSIDE:
                    self._add_producer(dataset, limited, span)

    def _add_producer(self, dataset: DatasetId, limited: Facts, span: Span) -> None:
        for sighting in self._stand_in(dataset.name, limited):
            limited.sightings.setdefault(sighting, span)
        edge = EdgeSeen(EdgeKind.WRITES, JobId(OUTSIDE, dataset.name), dataset)
        limited.sightings.setdefault(edge, span)

    # Edges

    def _edge(self, edge: EdgeSeen, limited: Facts) -> Iterator[Sighting]:
        ends = (edge.source, edge.target, *([] if edge.via is None else [edge.via]))
        hidden = [node for node in ends if not self._scope.allows(node)]
        if not hidden:
            yield edge
            return
        source = edge.source if self._scope.allows(edge.source) else None
        target = edge.target if self._scope.allows(edge.target) else None
        if source is None and target is None:
            return
        match edge.kind:
            case EdgeKind.READS | EdgeKind.WRITES:
                yield from self._flow(source, target, hidden[0], limited)
            case EdgeKind.DERIVES:
                yield from self._flow(source, target, (edge.via or hidden[0]), limited)
            case EdgeKind.ALIAS | EdgeKind.RENAMED | EdgeKind.SAME:
                visible = source or target  # data flows both ways between names of one dataset
                yield from self._flow(visible, visible, hidden[0], limited)
            case EdgeKind.PARENT if source is not None:
                token = self._token(hidden[0])
                yield from self._stand_in(token, limited)
                yield EdgeSeen(EdgeKind.PARENT, source, JobId(OUTSIDE, token))
            case _:
                pass  # order without data, or a statement about a hidden dataset

    def _flow(
        self, source: NodeId | None, target: NodeId | None, hidden: NodeId, limited: Facts
    ) -> Iterator[Sighting]:
        """Yield the flow from a visible node to a hidden one, or from a hidden to a visible one."""
        token = self._token(hidden)
        job, dataset = JobId(OUTSIDE, token), DatasetId(OUTSIDE, token)
        yield from self._stand_in(token, limited)
        match source:
            case DatasetId():
                yield EdgeSeen(EdgeKind.READS, source, job)
                yield EdgeSeen(EdgeKind.WRITES, job, dataset)
            case JobId():
                yield EdgeSeen(EdgeKind.WRITES, source, dataset)
                yield EdgeSeen(EdgeKind.READS, dataset, job)
        match target:
            case DatasetId():
                yield EdgeSeen(EdgeKind.READS, dataset, job)
                yield EdgeSeen(EdgeKind.WRITES, job, target)
            case JobId():
                yield EdgeSeen(EdgeKind.WRITES, job, dataset)
                yield EdgeSeen(EdgeKind.READS, dataset, target)

    def _stand_in(self, token: str, limited: Facts) -> Iterator[Sighting]:
        """Yield the job and the dataset that stand for a hidden node, with their blind spot."""
        limited.bodies[_DIGEST] = _BODY
        job = JobId(OUTSIDE, token)
        yield NodeSeen(job)
        yield NodeSeen(DatasetId(OUTSIDE, token))
        yield FacetSeen(FacetRole.NODE, job, None, BLIND_SPOTS, _DIGEST)

    # Facets

    def _body(self, body: bytes, limited: Facts) -> bytes:
        """Add a facet without the names outside, and return its digest."""
        if b'"namespace"' in body or any(prefix.encode() in body for prefix in _ID_PREFIXES):
            try:
                content = msgspec.json.decode(body)
            except msgspec.DecodeError:
                content = None  # no other code can decode it
            masked = self._masked(content)
            if masked != content:
                body = msgspec.json.encode(masked)
        digest = facet_digest(body)
        limited.bodies[digest] = body
        return digest

    def _masked(self, value: Any) -> Any:
        match value:
            case {"namespace": str(namespace), "name": str(name), **others}:
                masked = {key: self._masked(inner) for key, inner in others.items()}
                if self._scope.allows(DatasetId(namespace, name)):
                    return {"namespace": namespace, "name": name, **masked}
                if "field" in masked:
                    masked["field"] = "hidden"
                token = self._token(DatasetId(namespace, name))
                return {"namespace": OUTSIDE, "name": token, **masked}
            case dict():
                return {key: self._masked(inner) for key, inner in value.items()}
            case list():
                return [self._masked(inner) for inner in value]
            case str() if value.startswith(_ID_PREFIXES):
                return value if self._allows_id(value) else f"{value.partition(':')[0]}:{OUTSIDE}"
            case _:
                return value

    def _allows_id(self, text: str) -> bool:
        """Return whether an id may be in the scope: a namespace may contain colons."""
        parts = text.split(":")
        return any(
            self._scope.allows(DatasetId(":".join(parts[1:end]), ""))
            for end in range(2, len(parts))
        )

    def _hash(self, node: NodeId) -> str:
        text = f"{node.namespace}\n{node.name}".encode()
        return hmac.new(self._secret, text, hashlib.sha256).hexdigest()[:12]
