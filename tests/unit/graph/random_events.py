"""Random small sets of events, and the comparison of the graph with the reference."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from tests.unit.graph import events as e
from tests.unit.graph.reference import Answer, Name

from downriver.graph import (
    FOREVER,
    CatalogSnapshot,
    Entity,
    GraphIndex,
    GraphSnapshot,
    Question,
    trace,
)
from downriver.graph.index.column_graph import INDIRECT
from downriver.model.answers import Direction, Trace
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage import parse_event
from downriver.openlineage.wire import parse_time
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.store import CatalogReader


DATASETS = ("a", "b", "c", "d", "e", "f")
JOBS = ("j", "k", "l")
FIELDS = ("x", "y", "*")
DEPTHS = (None, 0, 1, 2)
RANKS = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")

MOMENTS = (FOREVER, *(parse_time(e.moment(day), "day") for day in (1, 3)))

days = st.integers(1, 5)
names = st.sampled_from(DATASETS)
some_names = st.lists(names, max_size=3, unique=True)

_HOW = (("DIRECT", "IDENTITY"), ("DIRECT", "AGGREGATION"), ("DIRECT", ""), ("INDIRECT", "FILTER"))
sources = st.builds(
    lambda name, field, how: e.source(f"{name}.{field}", *how),
    names,
    st.sampled_from(FIELDS),
    st.sampled_from(_HOW),
)
fields = st.dictionaries(st.sampled_from(FIELDS), st.lists(sources, max_size=2), max_size=2)

column_lineages = st.one_of(
    st.builds(
        lambda whole, fields: e.column_lineage(*whole, **fields),
        st.lists(sources, max_size=1),
        fields,
    ),
    st.builds(lambda name: e.copy_of(name), names),
)
lineages = st.builds(
    lambda inputs, fields: {
        "inputs": e.feeds("", *inputs)["inputs"],
        "fields": {field: {"inputs": of} for field, of in fields.items()},
    },
    some_names,
    fields,
)
schemas = st.builds(lambda fields: e.schema(*fields), st.lists(st.sampled_from("xyz"), unique=True))
flow_facets = st.fixed_dictionaries(
    {}, optional={"columnLineage": column_lineages, "lineage": lineages}
)
any_facets = st.fixed_dictionaries(
    {},
    optional={
        "columnLineage": column_lineages,
        "lineage": lineages,
        "schema": schemas,
        "symlinks": st.builds(lambda names: e.symlinks(*names), st.lists(names, max_size=2)),
        "lifecycleStateChange": st.builds(e.renamed_from, names),
    },
)


def _datasets(facets: Any) -> Any:
    one = st.builds(lambda name, facets: e.dataset(name, **facets), names, facets)
    return st.lists(one, max_size=2, unique_by=lambda wire: wire["name"])


@st.composite
def run_events(draw: Any) -> bytes:
    entries = st.builds(lambda target, inputs: e.feeds(target, *inputs), names, some_names)
    job_facets = st.one_of(
        st.just({}), st.builds(lambda entry: {"lineage": e.lineage_of(entry)}, entries)
    )
    return e.run_event(
        draw(st.sampled_from(JOBS)),
        draw(some_names),
        draw(_datasets(st.one_of(st.just({}), flow_facets, any_facets))),
        day=draw(days),
        run=draw(st.sampled_from(["r1", "r2"])),
        **draw(job_facets),
    )


dataset_events = st.builds(
    lambda name, day, facets: e.dataset_event(name, day=day, **facets), names, days, any_facets
)
# Batches as they are written: what was loaded before, and what is new since, must agree.
event_lists = st.lists(
    st.lists(st.one_of(run_events(), run_events(), dataset_events), min_size=1, max_size=4),
    min_size=1,
    max_size=4,
)
# 0 compresses at every lookup, 2 keeps both an overlay and rows, the last never compresses.
folds = st.sampled_from([0, 2, 4096])


@contextmanager
def told(story: list[list[bytes]], folder: Path, smallest_fold: int) -> Iterator[CatalogSnapshot]:
    """Write events batch by batch, with an index that is refreshed after each batch."""
    store = SqliteStore(folder / "lineage.db")
    index = GraphIndex(store, smallest_fold=smallest_fold)
    for batch in story:
        store.append([parse_event(event) for event in batch])
        with index.reading():
            pass
    with index.reading() as view:
        yield view
    store.close()


def ask(
    index: GraphSnapshot,
    reader: CatalogReader,
    entity: Entity,
    *,
    downstream: bool,
    depth: int | None,
    as_of: int,
) -> Trace:
    direction = Direction.DOWNSTREAM if downstream else Direction.UPSTREAM
    return trace(index, reader, entity, Question(direction, depth, as_of, stale_days=9999))


def node_entity(node: Name, reader: CatalogReader) -> Entity:
    made = JobId if node.kind == "job" else DatasetId
    number = reader.nodes.find(made(node.namespace, node.name))
    assert number is not None
    return Entity(made(node.namespace, node.name), number)


def said(answer: Trace) -> Answer:
    """Return an answer in the types of the reference."""
    edges = {
        (x.source, x.target, x.kind, x.job, f"{x.type} {x.subtype or ''}" if x.type else None)
        for x in answer.edges
    }
    assert len(edges) == len(answer.edges)
    assert len({node.id for node in answer.nodes}) == len(answer.nodes)
    ranks = {
        node.id: RANKS.index(node.transformation) if node.transformation else INDIRECT
        for node in answer.nodes
        if node.kind == "column"
    }
    ranks.pop(answer.root.id, None)
    return Answer(
        {node.id: node.depth for node in answer.nodes}, edges, answer.omitted_count, ranks
    )


def wide_story(seed: int) -> list[list[bytes]]:
    """Layers of datasets, some of them far wider than a walk can follow one by one."""
    chance = random.Random(seed)
    layers = [
        [f"l{layer}_{n}" for n in range(size)] for layer, size in enumerate((2, 5, 90, 90, 9))
    ]
    written: list[bytes] = []
    for above, layer in zip(layers, [*layers[1:], layers[0]], strict=True):
        for name in layer:
            inputs = chance.sample(above, min(len(above), chance.choice((1, 1, 2, 5))))
            facet = e.column_lineage(
                **{
                    field: [
                        e.source(f"{one}.{chance.choice('xy')}", *chance.choice(_HOW))
                        for one in inputs
                    ]
                    for field in "xy"
                }
            )
            if chance.random() < 0.03:
                facet = e.copy_of(*inputs)
            written.append(
                e.run_event(f"to_{name}", inputs, [e.dataset(name, columnLineage=facet)])
            )
    if seed % 2:
        written.append(e.dataset_event("l2_1", symlinks=e.symlinks("l3_1")))
    chance.shuffle(written)
    return [written[:150], written[150:]]
