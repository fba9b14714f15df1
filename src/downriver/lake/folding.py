"""The server's fold on Arrow batches: events in, facts out.

What one task has merged it does not send twice, so a pipeline that ran a million times costs the
shuffle about as much as one that ran once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.events import fold, parse_event
from downriver.events.derivations import read_derivations
from downriver.events.facets import schema_paths
from downriver.model.facts import (
    ClaimSeen,
    EdgeSeen,
    FacetSeen,
    Facts,
    NodeSeen,
    Role,
    RunFact,
    Sighting,
    Span,
)
from downriver.model.ids import JobId, NodeId, RunId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

DATASET, JOB = 0, 1

_MOST_FACTS = 50_000
_MOST_BODIES = 32 * 2**20
_REMEMBERED = 500_000
_ROWS = 10_000

# The columns of a fact: one for each kind, of which a row fills one.
KINDS = ("node", "edge", "run", "facet", "claim", "column", "derivation", "body")

Row = tuple[Any, ...]


def fold_bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn events, as sent, into rows of facts."""
    import pyarrow as pa

    schema = facts_schema()
    task = Folding()
    for batch in batches:
        for body in batch.column(0):
            task.add(body.as_py())
            if task.is_full:
                yield from _record_batches(task.take(), schema, pa)
    yield from _record_batches(task.take(), schema, pa)


class Folding:
    """The facts of one task, merged as the server merges a batch."""

    def __init__(self) -> None:
        self._facts = Facts.empty()
        self._size = 0
        self._told: set[Row | bytes] = set()  # what never changes and has been sent

    def add(self, body: bytes) -> None:
        """Fold an event in. Bronze holds only events that can be read."""
        facts = fold(parse_event(body))
        self._facts.update(facts)
        self._size += sum(map(len, facts.bodies.values()))

    @property
    def is_full(self) -> bool:
        """True when it is time to hand on what was merged."""
        return len(self._facts.sightings) > _MOST_FACTS or self._size > _MOST_BODIES

    def take(self) -> Iterator[tuple[str, Row]]:
        """Yield (kind, row) of all that was merged, and begin anew."""
        facts, self._facts, self._size = self._facts, Facts.empty(), 0
        if len(self._told) > _REMEMBERED:
            self._told.clear()
        for sighting, span in facts.sightings.items():
            yield _sighting_row(sighting, _span(span))
        for run, fact in facts.runs.items():
            yield "run", _run_row(run, fact)
        yield from self._unchanging(facts)

    def _unchanging(self, facts: Facts) -> Iterator[tuple[str, Row]]:
        for digest, body in facts.bodies.items():
            if self._is_news(digest):
                yield "body", (digest, body)
        for sighting in facts.sightings:
            if isinstance(sighting, ClaimSeen):
                yield from self._derivations(sighting, facts.bodies)
            elif isinstance(sighting, FacetSeen) and _is_schema(sighting):
                yield from self._columns(sighting.node, sighting.digest, facts.bodies)

    def _derivations(
        self, claim: ClaimSeen, bodies: dict[bytes, bytes]
    ) -> Iterator[tuple[str, Row]]:
        key = (*_optional(claim.job), *_name(claim.dataset), claim.facet, claim.digest)
        if not self._is_news(key):
            return
        for found in read_derivations(claim.facet, bodies[claim.digest], claim.dataset):
            how = (
                found.direct,
                found.subtype,
                found.description,
                found.masking,
                found.confidence,
            )
            source = (*_name(found.source.dataset), found.source.field)
            target = (*_name(found.target.dataset), found.target.field)
            said = (*_optional(claim.job), claim.facet, claim.digest)
            yield "derivation", (*said, *source, *target, *how)
            for end in (source, target):
                if self._is_news((DATASET, *end)):
                    yield "column", (DATASET, *end)

    def _columns(
        self, node: NodeId, digest: bytes, bodies: dict[bytes, bytes]
    ) -> Iterator[tuple[str, Row]]:
        if not self._is_news((*_kind_and_name(node), digest)):
            return
        for path in schema_paths(bodies[digest]):
            column = (*_kind_and_name(node), path)
            if self._is_news(column):
                yield "column", column

    def _is_news(self, key: Row | bytes) -> bool:
        if key in self._told:
            return False
        self._told.add(key)
        return True


def _sighting_row(sighting: Sighting, span: Row) -> tuple[str, Row]:
    match sighting:
        case NodeSeen(node):
            return "node", (*_kind_and_name(node), *span)
        case EdgeSeen(kind, source, target, via):
            return "edge", (int(kind), *_name(source), *_name(target), *_optional(via), *span)
        case FacetSeen(role, node, run, name, digest):
            of_run = (None, None, None) if run is None else (*_name(run.job), run.run)
            return "facet", (int(role), *_kind_and_name(node), *of_run, name, digest, *span)
        case ClaimSeen(job, dataset, facet, digest):
            return "claim", (*_optional(job), *_name(dataset), facet, digest, *span)


def _run_row(run: RunId, fact: RunFact) -> Row:
    state = (int(fact.state), fact.state_at, fact.started_at)
    return (*_name(run.job), run.run, *state, *_span(fact.span))


def _is_schema(facet: FacetSeen) -> bool:
    return facet.name == "schema" and facet.role is Role.NODE


def _name(node: NodeId) -> tuple[str, str]:
    return (node.namespace, node.name)


def _optional(job: JobId | None) -> tuple[str | None, str | None]:
    return (None, None) if job is None else _name(job)


def _kind_and_name(node: NodeId) -> tuple[int, str, str]:
    return (JOB if isinstance(node, JobId) else DATASET, node.namespace, node.name)


def _span(span: Span) -> Row:
    return (span.first.at, span.first.digest, span.last.at, span.last.digest, span.observed)


def facts_schema() -> pa.Schema:
    """Return the type of rows of facts: a column a kind, each holding that table's columns."""
    import pyarrow as pa

    from downriver.lake import tables

    types = {
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "STRING": pa.string(),
        "BINARY": pa.binary(),
        "BOOLEAN": pa.bool_(),
    }
    return pa.schema(
        [
            (kind, pa.struct([(name, types[of]) for name, of in table.columns]))
            for kind, table in zip(KINDS, tables.FACTS, strict=True)
        ]
    )


def _record_batches(
    rows: Iterable[tuple[str, Row]], schema: pa.Schema, pa: Any
) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches, each of one kind."""
    waiting: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    for kind, row in rows:
        waiting[kind].append(row)
        if len(waiting[kind]) == _ROWS:
            yield _record_batch(kind, waiting[kind], schema, pa)
            waiting[kind] = []
    for kind, remaining in waiting.items():
        if remaining:
            yield _record_batch(kind, remaining, schema, pa)


def _record_batch(kind: str, rows: list[Row], schema: pa.Schema, pa: Any) -> pa.RecordBatch:
    fields = list(schema.field(kind).type)
    columns = [
        pa.array(values, field.type)
        for field, values in zip(fields, zip(*rows, strict=True), strict=True)
    ]
    of_kind = pa.StructArray.from_arrays(columns, fields=fields)
    empty = {other: pa.nulls(len(rows), schema.field(other).type) for other in KINDS}
    return pa.RecordBatch.from_arrays(
        [of_kind if other == kind else empty[other] for other in KINDS], schema=schema
    )
