"""Any order, any repetition, any batches: the same events end in the same catalog."""

from __future__ import annotations

import tempfile
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.openlineage import DATABASE, JOBS, Json, parsed, run_event

from downriver.model.facts import (
    ClaimSeen,
    EdgeKind,
    EdgeSeen,
    EventRef,
    EvidenceRank,
    FacetSeen,
    Facts,
    NodeSeen,
    RunFact,
    RunState,
    Span,
)
from downriver.openlineage import Event, fold
from downriver.store import open_store

if TYPE_CHECKING:
    from downriver.store import Store

T = TypeVar("T")

# Few values of everything, so that events are about the same entities.
NAMES = st.sampled_from(["a", "b", "c", "B"])
COLUMNS = st.sampled_from(["x", "y", "z", ""])
JOB_NAMES = st.sampled_from(["load", "clean"])
RUNS = st.sampled_from(["1", "2"])
# Four moments, the first two in several spellings.
TIMES = st.sampled_from(
    [
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T01:00:00+01:00",
        "2026-01-01T00:00:00.000000999Z",
        "2026-01-01",
        "2026-01-01T00:00:01Z",
        "2026-01-01T00:00:01.000+0000",
        "2026-01-02T00:00:00Z",
        "2025-12-31T23:59:59.999999Z",
    ]
)
STATES = st.sampled_from(["START", "RUNNING", "COMPLETE", "FAIL", "ABORT", "OTHER", None])
DELETED = st.just({"_deleted": True})


def lists(items: st.SearchStrategy[T], most: int = 2) -> st.SearchStrategy[list[T]]:
    return st.lists(items, max_size=most)


def some_of(**parts: st.SearchStrategy) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=parts)


def identifiers(names: st.SearchStrategy[str], namespace: str) -> st.SearchStrategy[Json]:
    return st.builds(lambda name: {"namespace": namespace, "name": name}, names)


datasets_named = identifiers(NAMES, DATABASE)
jobs_named = identifiers(JOB_NAMES, JOBS)

transformations = st.fixed_dictionaries(
    {"type": st.sampled_from(["DIRECT", "INDIRECT"])},
    optional={"subtype": st.sampled_from(["IDENTITY", "FILTER"]), "masking": st.booleans()},
)
inputs = st.builds(
    lambda named, rest: named | {"type": "DATASET"} | rest,
    datasets_named,
    some_of(field=COLUMNS, transformations=lists(transformations)),
)
schemas = st.builds(lambda names: {"fields": [{"name": n} for n in names]}, lists(COLUMNS, 3))
column_lineages = st.builds(
    lambda fields, wide: {"fields": fields, "dataset": wide},
    st.dictionaries(COLUMNS, st.builds(lambda i: {"inputFields": i}, lists(inputs)), max_size=2),
    lists(inputs, 1),
)
lineages = some_of(
    inputs=lists(inputs),
    fields=st.dictionaries(COLUMNS, st.builds(lambda i: {"inputs": i}, lists(inputs)), max_size=2),
)
job_lineages = st.builds(
    lambda entries: {"entries": entries},
    lists(
        st.builds(
            lambda named, entry: named | {"type": "DATASET"} | entry, datasets_named, lineages
        )
    ),
)
symlinks = st.builds(lambda named: {"identifiers": named}, lists(datasets_named))
renames = st.builds(
    lambda old: {"lifecycleStateChange": "RENAME", "previousIdentifier": old}, datasets_named
)
dataset_facets = some_of(
    schema=schemas | DELETED,
    columnLineage=column_lineages | DELETED,
    lineage=lineages | DELETED,
    symlinks=symlinks | DELETED,
    lifecycleStateChange=renames,
    downriver_same=st.builds(
        lambda other, same: {"other": other, "same": same}, datasets_named, st.booleans()
    ),
    tags=st.builds(lambda n: {"n": n}, st.integers(0, 2)) | DELETED,
)
run_facets = some_of(
    parent=st.builds(lambda job: {"job": job, "run": {"runId": "p"}}, jobs_named),
    jobDependencies=st.builds(
        lambda up, down: {"upstream": [{"job": up}], "downstream": [{"job": down}]},
        jobs_named,
        jobs_named,
    ),
    errorMessage=st.just({"message": "boom"}),
)
datasets = st.builds(
    lambda named, facets, rest: named | {"facets": facets} | rest,
    datasets_named,
    dataset_facets,
    some_of(outputFacets=st.just({"outputStatistics": {"rowCount": 1}})),
)
run_events = st.builds(
    run_event,
    JOB_NAMES,
    RUNS,
    STATES,
    TIMES,
    inputs=st.none() | lists(datasets),
    outputs=st.none() | lists(datasets),
    job_facets=some_of(lineage=job_lineages | DELETED, sql=st.just({"query": "select 1"})),
    run_facets=run_facets,
)
job_events = st.builds(
    lambda event: {key: value for key, value in event.items() if key not in ("run", "eventType")},
    run_events,
)
dataset_events = st.builds(lambda at, table: {"eventTime": at, "dataset": table}, TIMES, datasets)
events = run_events | run_events | job_events | dataset_events


@st.composite
def retellings(draw: st.DrawFn) -> tuple[list[Event], list[list[Event]]]:
    """Draw events, and the same ones as they may arrive: shuffled, repeated and in batches."""
    new = draw(st.lists(events, min_size=1, max_size=5))
    # A repeated run of the pipeline reports the same at another time.
    later = draw(st.lists(st.tuples(st.sampled_from(new), TIMES), max_size=3))
    told = [parsed(event) for event in [*new, *(event | {"eventTime": at} for event, at in later)]]
    repeated = draw(st.lists(st.sampled_from(told), max_size=4))
    arriving = draw(st.permutations(told + repeated))
    cuts = sorted(draw(st.sets(st.integers(1, len(arriving)), max_size=3)))
    return told, [arriving[a:b] for a, b in pairwise([0, *cuts, len(arriving)])]


def merged(batch: list[Event]) -> Facts:
    facts = Facts.empty()
    for event in batch:
        facts.update(fold(event))
    return facts


thorough = settings(deadline=None, max_examples=200)
stores = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@thorough
@given(retellings())
def test_facts_are_the_same_however_events_arrive(retelling):
    told, arriving = retelling
    by_batch = Facts.empty()
    for batch in arriving:
        by_batch.update(merged(batch))
    assert by_batch == merged(told)


def catalog(store: Store, batches: list[list[Event]]) -> dict:
    for batch in batches:
        store.append(batch)
    with store.reader() as reader:
        return reader.dump()


def rebuilt(store: Store) -> dict:
    store.rebuild(lambda done, total: None)
    return catalog(store, [])


@settings(stores, max_examples=40)
@given(retellings())
def test_the_catalog_is_the_same_however_events_arrive(retelling):
    told, arriving = retelling
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(str(Path(folder) / "told"))) as one,
        closing(open_store(str(Path(folder) / "arriving"))) as other,
    ):
        expected = catalog(one, [told])
        assert catalog(other, arriving) == expected
        assert rebuilt(other) == expected


@settings(stores, max_examples=8)
@given(retellings())
def test_the_catalog_in_postgresql_is_the_one_in_sqlite(postgres_url, retelling):
    told, arriving = retelling
    schema = f"order_{uuid4().hex}"
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(folder)) as sqlite,
        psycopg.connect(postgres_url, autocommit=True) as admin,
    ):
        admin.execute(f"CREATE SCHEMA {schema}")
        with closing(open_store(f"{postgres_url}?options=-csearch_path%3D{schema}")) as postgres:
            assert catalog(postgres, arriving) == catalog(sqlite, [told])
            assert rebuilt(postgres) == catalog(sqlite, [])
        admin.execute(f"DROP SCHEMA {schema} CASCADE")


def test_the_generated_events_do_collide():
    """The properties above hold trivially for unrelated events; these events are related."""
    met = set()

    @settings(thorough, derandomize=True, database=None, max_examples=600)
    @given(retellings())
    def collect(retelling):
        facts = merged(retelling[0])
        for seen, span in facts.sightings.items():
            if span.first.at < span.last.at:
                met.add(repr(seen.kind) if isinstance(seen, EdgeSeen) else type(seen))
            elif span.first.digest < span.last.digest:
                met.add("two events at one moment")
        runs = [fact for fact in facts.runs.values() if fact.span.first != fact.span.last]
        met.update(repr(fact.state) for fact in runs)

    collect()
    assert met >= {NodeSeen, FacetSeen, ClaimSeen, "two events at one moment"}
    assert met >= {*map(repr, EdgeKind), *map(repr, RunState)}


refs = st.builds(EventRef, st.integers(0, 3), st.binary(min_size=1, max_size=1))
certainties = st.sampled_from(EvidenceRank)
spans = st.builds(lambda a, b, sure: Span(min(a, b), max(a, b), sure), refs, refs, certainties)
run_facts = st.builds(
    RunFact, st.sampled_from(RunState), st.integers(0, 3), st.none() | st.integers(0, 3), spans
)


@pytest.mark.parametrize("values", [spans, run_facts], ids=["Span", "RunFact"])
class TestMerging:
    def test_order_does_not_matter(self, values):
        @thorough
        @given(values, values)
        def commutative(a, b):
            assert a.merge(b) == b.merge(a)

        commutative()

    def test_grouping_does_not_matter(self, values):
        @thorough
        @given(values, values, values)
        def associative(a, b, c):
            assert a.merge(b).merge(c) == a.merge(b.merge(c))

        associative()

    def test_repetition_does_not_matter(self, values):
        @thorough
        @given(values, values)
        def idempotent(a, b):
            assert a.merge(a) == a
            assert a.merge(b).merge(b) == a.merge(b)

        idempotent()
