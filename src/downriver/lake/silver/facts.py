"""Facts: events folded on the workers with the server's `fold`, then merged by key.

A task merges facts before it emits them. So a pipeline that ran a million times costs the shuffle
about as much as a pipeline that ran once.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from downriver.lake import schemas
from downriver.lake.schemas import FACT_KINDS, KIND_OF
from downriver.model.facts import (
    ClaimSeen,
    EdgeSeen,
    FacetRole,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
    Sighting,
    Span,
)
from downriver.model.ids import JobId, NodeId, NodeKind, RunId, node_kind
from downriver.openlineage import fold, parse_event
from downriver.openlineage.facets.column_lineage import parse_derivations
from downriver.openlineage.facets.dataset import schema_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from downriver.lake.storage.files import Folder
    from downriver.lake.storage.tables import StoredRun, TableStorage

DATASET, JOB = int(NodeKind.DATASET), int(NodeKind.JOB)

_MAX_FACTS = 50_000
_MAX_BODY_BYTES = 32 * 2**20
_MAX_EMITTED_KEYS = 500_000
_ROWS_PER_BATCH = 10_000

Row = tuple[Any, ...]


def fold_bodies(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fold event bodies into rows of facts, on a worker."""
    import pyarrow as pa

    schema = facts_schema()
    task = FactAccumulator()
    for batch in batches:
        for body in batch.column(0):
            task.add(body.as_py())
            if task.is_full:
                yield from _record_batches(task.take(), schema, pa)
    yield from _record_batches(task.take(), schema, pa)


class FactAccumulator:
    """The facts of one task, merged as the server merges a batch."""

    def __init__(self) -> None:
        self._facts = Facts.empty()
        self._size = 0
        self._emitted: set[Row | bytes] = set()  # keys of immutable rows

    def add(self, body: bytes) -> None:
        """Fold an event. Bronze contains only readable events."""
        facts = fold(parse_event(body))
        self._facts.update(facts)
        self._size += sum(map(len, facts.bodies.values()))

    @property
    def is_full(self) -> bool:
        """True when the merged facts should be emitted."""
        return len(self._facts.sightings) > _MAX_FACTS or self._size > _MAX_BODY_BYTES

    def take(self) -> Iterator[tuple[str, Row]]:
        """Yield the merged facts as (kind, row), and start with an empty state."""
        facts, self._facts, self._size = self._facts, Facts.empty(), 0
        if len(self._emitted) > _MAX_EMITTED_KEYS:
            self._emitted.clear()
        for sighting, span in facts.sightings.items():
            yield _sighting_row(sighting, _span(span))
        for run, fact in facts.runs.items():
            yield "run", _run_row(run, fact)
        yield from self._immutable_rows(facts)

    def _immutable_rows(self, facts: Facts) -> Iterator[tuple[str, Row]]:
        for digest, body in facts.bodies.items():
            if self._is_new(digest):
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
        if not self._is_new(key):
            return
        for derivation in parse_derivations(claim.facet, bodies[claim.digest], claim.dataset):
            how = (
                derivation.direct,
                derivation.subtype,
                derivation.description,
                derivation.masking,
                derivation.confidence,
            )
            source = (*_name(derivation.source.dataset), derivation.source.field)
            target = (*_name(derivation.target.dataset), derivation.target.field)
            evidence = (*_optional(claim.job), claim.facet, claim.digest)
            yield "derivation", (*evidence, *source, *target, *how)
            for end in (source, target):
                if self._is_new((DATASET, *end)):
                    yield "column", (DATASET, *end)

    def _columns(
        self, node: NodeId, digest: bytes, bodies: dict[bytes, bytes]
    ) -> Iterator[tuple[str, Row]]:
        if not self._is_new((*_kind_and_name(node), digest)):
            return
        for path in schema_paths(bodies[digest]):
            column = (*_kind_and_name(node), path)
            if self._is_new(column):
                yield "column", column

    def _is_new(self, key: Row | bytes) -> bool:
        if key in self._emitted:
            return False
        self._emitted.add(key)
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
    return facet.name == "schema" and facet.role is FacetRole.NODE


def _name(node: NodeId) -> tuple[str, str]:
    return (node.namespace, node.name)


def _optional(job: JobId | None) -> tuple[str | None, str | None]:
    return (None, None) if job is None else _name(job)


def _kind_and_name(node: NodeId) -> tuple[int, str, str]:
    return (int(node_kind(node)), node.namespace, node.name)


def _span(span: Span) -> Row:
    return (span.first.at, span.first.digest, span.last.at, span.last.digest, span.observed)


def facts_schema() -> pa.Schema:
    """Return the Arrow schema of folded facts: one struct column for each kind."""
    import pyarrow as pa

    from downriver.lake import schemas

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
            for kind, table in zip(FACT_KINDS, schemas.FACTS, strict=True)
        ]
    )


def _record_batches(
    rows: Iterable[tuple[str, Row]], schema: pa.Schema, pa: Any
) -> Iterator[pa.RecordBatch]:
    """Yield rows in batches of one kind."""
    pending: dict[str, list[Row]] = {kind: [] for kind in FACT_KINDS}
    for kind, row in rows:
        pending[kind].append(row)
        if len(pending[kind]) == _ROWS_PER_BATCH:
            yield _record_batch(kind, pending[kind], schema, pa)
            pending[kind] = []
    for kind, remaining in pending.items():
        if remaining:
            yield _record_batch(kind, remaining, schema, pa)


def _record_batch(kind: str, rows: list[Row], schema: pa.Schema, pa: Any) -> pa.RecordBatch:
    fields = list(schema.field(kind).type)
    columns = [
        pa.array(values, field.type)
        for field, values in zip(fields, zip(*rows, strict=True), strict=True)
    ]
    of_kind = pa.StructArray.from_arrays(columns, fields=fields)
    empty = {other: pa.nulls(len(rows), schema.field(other).type) for other in FACT_KINDS}
    return pa.RecordBatch.from_arrays(
        [of_kind if other == kind else empty[other] for other in FACT_KINDS], schema=schema
    )


_NEVER_NULL = {"column": "field", "derivation": "direct", "body": "digest"}

# Folded facts before they are merged: one struct column for each kind of fact.
FOLDED = schemas.LakeTable(
    "folded",
    tuple((kind, table.struct) for kind, table in zip(FACT_KINDS, schemas.FACTS, strict=True)),
)


def fold_events(events: DataFrame) -> DataFrame:
    """Return the facts of events, as rows of FOLDED."""
    return events.select("body").mapInArrow(fold_bodies, FOLDED.ddl)


def merge_facts(folded: DataFrame, before: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """Return the tables of facts by name: `before` merged with newly folded facts."""
    return {table.name: _merge(table, folded, before.get(table.name)) for table in schemas.FACTS}


def _merge(table: schemas.LakeTable, folded: DataFrame, before: DataFrame | None) -> DataFrame:
    rows = of_kind(folded, table)
    if before is not None:
        rows = rows.unionByName(table.select(before))
    return merge_rows(table, rows)


def of_kind(folded: DataFrame, table: schemas.LakeTable) -> DataFrame:
    """Return the folded facts of one table."""
    kind = KIND_OF[table.name]
    return folded.where(f.col(kind).isNotNull()).select(f"{kind}.*")


def fact_rows(
    storage: TableStorage, table: schemas.LakeTable, runs: Sequence[StoredRun]
) -> DataFrame:
    """Return the facts in some runs of a table, not merged."""
    frames = []
    if merged := [run for run in runs if not run.folded]:
        frames.append(storage.read(table, merged))
    if folded := [run for run in runs if run.folded]:
        frames.append(table.select(of_kind(storage.read(FOLDED, folded), table)))
    return reduce(lambda whole, part: whole.unionAll(part), frames)


def read_facts(
    storage: TableStorage, table: schemas.LakeTable, runs: Sequence[StoredRun]
) -> DataFrame:
    """Return the facts of a table, merged over its runs."""
    rows = fact_rows(storage, table, runs)
    return rows if len(runs) == 1 and not runs[0].folded else merge_rows(table, rows)


def count_folded(folder: Folder, path: str) -> dict[str, int]:
    """Return the number of facts of each table in folded facts, from the metadata of the files."""
    return {
        table.name: folder.count_values(path, f"{kind}.{_NEVER_NULL.get(kind, 'observed')}")
        for kind, table in zip(FACT_KINDS, schemas.FACTS, strict=True)
    }


def merge_rows(table: schemas.LakeTable, rows: DataFrame) -> DataFrame:
    """Return facts of one table, merged by their key."""
    return table.select(_merge_table(table, rows))


def _merge_table(table: schemas.LakeTable, rows: DataFrame) -> DataFrame:
    if table is schemas.RUNS:
        return _merge_runs(rows)
    if table is schemas.BODIES:
        return rows.groupBy("digest").agg(f.first("body").alias("body"))
    if "first_at" not in table.column_names:
        return rows.distinct()
    return _with_span(rows.groupBy(*table.key).agg(*_merged_span()))


def _merge_runs(rows: DataFrame) -> DataFrame:
    """Merge runs: final states have precedence, then later states, then higher state numbers."""
    ended = f.col("state") >= int(RunState.COMPLETE)
    tier = f.when(ended, int(RunState.COMPLETE)).otherwise(f.col("state"))
    merged = rows.groupBy(*schemas.RUNS.key).agg(
        f.max(f.struct(tier.alias("tier"), "state_at", "state")).alias("won"),
        f.min("started_at").alias("started_at"),
        *_merged_span(),
    )
    return _with_span(merged).withColumns(
        {"state": f.col("won.state"), "state_at": f.col("won.state_at")}
    )


def _merged_span() -> tuple[Column, ...]:
    return (
        f.min(f.struct("first_at", "first_event")).alias("first"),
        f.max(f.struct("last_at", "last_event")).alias("last"),
        f.max("observed").alias("observed"),
    )


def _with_span(merged: DataFrame) -> DataFrame:
    return merged.select("*", "first.*", "last.*")
