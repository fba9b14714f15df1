"""The reach in the lake equals the walks of the server."""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import closing

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.openlineage import parsed
from tests.unit.openlineage.test_order_free import events

from downriver.graph.snapshot import GraphIndex
from downriver.graph.walk.node_walk import reach_nodes
from downriver.lake.reach.closure import count_in_process
from downriver.lake.reach.counts import (
    count_column_reach,
    count_marked_columns,
    count_marked_upstream,
    count_node_reach,
    dataset_representatives,
)
from downriver.model.ids import JobId
from downriver.store import open_store


def ints(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def numbered(reader) -> tuple[dict, dict]:
    """Return nodes and links as Spark would number them, by the ids of a store."""
    rows = list(reader.changes.edges(0))
    ids = {end for row in rows for end in row[2:4]}
    nodes = reader.nodes.by_ids(ids)
    kinds = ints(isinstance(nodes[i], JobId) for i in sorted(ids))
    links = {
        "kind": ints(row[1] for row in rows),
        "source": ints(row[2] for row in rows),
        "target": ints(row[3] for row in rows),
        "last_at": ints(row[6] for row in rows),
    }
    return {"node": ints(sorted(ids)), "kind": kinds}, links


@settings(deadline=None, max_examples=60)
@given(st.lists(events, min_size=1, max_size=8))
def test_the_reach_of_every_dataset_equals_the_walks_of_the_server(told):
    with tempfile.TemporaryDirectory() as folder, closing(open_store(folder)) as store:
        store.append([parsed(event) for event in told])
        with GraphIndex(store).reading() as (index, reader):
            numbers, links = numbered(reader)
            found = count_node_reach(numbers, links, count_in_process)
            for at, node in enumerate(found["node"].tolist()):
                for way in ("downstream", "upstream"):
                    counted = (found[f"{way}_datasets"][at], found[f"{way}_jobs"][at])
                    assert counted == walked(index, reader, node, way == "downstream")
            check_marked_upstream(index, reader, numbers, links)


def walked(index, reader, node: int, downstream: bool) -> tuple[int, int]:
    others = walked_to(index, node, downstream)
    kinds = Counter(type(found) for found in reader.nodes.by_ids(others).values())
    jobs = kinds.pop(JobId, 0)
    return sum(kinds.values()), jobs


def walked_to(index, node: int, downstream: bool) -> set[int]:
    root = index.nodes.identities.canonical(node)
    reached = reach_nodes(index.nodes, root, downstream=downstream)
    return set(reached.nodes.tolist()) - {root}


def check_marked_upstream(index, reader, numbers, links) -> None:
    """Mark datasets by their numbers, and compare how many with which mark lie upstream."""
    marks = np.where(numbers["kind"] == 0, numbers["node"] % 4, 0)
    found = count_marked_upstream(numbers, links, marks, count_in_process)
    merged: Counter[int] = Counter()
    for node, mark in zip(numbers["node"].tolist(), marks.tolist(), strict=True):
        merged[index.nodes.identities.canonical(node)] |= mark
    for at, node in enumerate(found["node"].tolist()):
        upstream = walked_to(index, node, downstream=False)
        expected = Counter(merged[other] for other in upstream if merged[other])
        counted = {m: int(found[f"with_{m}"][at]) for m in range(1, 4) if f"with_{m}" in found}
        assert {m: n for m, n in counted.items() if n} == dict(expected)


STAR = 0


def columns(fields: dict[int, list[int]], *steps: tuple[int, int, int, int, bool]) -> dict:
    """Return how far each (dataset, field) reaches, downstream and upstream, and how deep."""
    pairs = [(dataset, field) for dataset, held in fields.items() for field in held]
    names = ("source", "source_field", "target", "target_field", "copies")
    links = {
        name: ints(values) for name, values in zip(names, zip(*steps, strict=True), strict=True)
    }
    links["copies"] = links["copies"].astype(bool)
    nodes = ints(sorted({*fields, *links["source"].tolist(), *links["target"].tolist()}))
    same = {"node": nodes, "representative": nodes}
    table = {"dataset": ints(d for d, _ in pairs), "field": ints(f for _, f in pairs)}
    found = count_column_reach(table, links, same, count_in_process)
    counts = zip(
        *(found[name].tolist() for name in ("downstream_columns", "upstream_columns")),
        *(found[name].tolist() for name in ("downstream_depth", "upstream_depth")),
        strict=True,
    )
    keys = zip(found["dataset"].tolist(), found["field"].tolist(), strict=True)
    return dict(zip(keys, counts, strict=True))


def test_a_chain_of_columns():
    found = columns({1: [1, 2], 2: [1], 3: [1]}, (1, 1, 2, 1, False), (2, 1, 3, 1, False))
    assert found == {
        (1, 1): (2, 0, 2, 0),
        (1, 2): (0, 0, 0, 0),
        (2, 1): (1, 1, 1, 1),
        (3, 1): (0, 2, 0, 2),
    }


def test_a_filter_column_reaches_every_column_of_the_filtered_dataset():
    found = columns({1: [1, 2], 2: [1, 2, 3]}, (1, 2, 2, STAR, False))
    assert found[1, 2] == (3, 0, 1, 0)
    assert found[1, 1] == (0, 0, 0, 0)
    assert found[2, 3] == (0, 1, 0, 1)


def test_every_column_feeds_the_star_of_its_dataset():
    found = columns({1: [1, 2], 2: [1]}, (1, STAR, 2, 1, False))
    assert found[1, 1] == found[1, 2] == (1, 0, 1, 0)
    assert found[2, 1] == (0, 2, 0, 1)


def test_a_dataset_without_known_columns_counts_as_one():
    found = columns({1: [1], 3: [1]}, (1, 1, 2, STAR, False), (2, STAR, 3, 1, False))
    assert found == {(1, 1): (2, 0, 2, 0), (3, 1): (0, 2, 0, 2)}


def test_a_copy_maps_each_field_to_the_same_name_even_without_a_schema():
    found = columns({1: [1, 2], 3: [1]}, (1, STAR, 2, STAR, True), (2, STAR, 3, STAR, True))
    assert found[1, 1] == found[1, 2] == (2, 0, 2, 0)
    assert found[3, 1] == (0, 2, 0, 2)


Step = tuple[int, int, int, int, bool]


Column = tuple[int, int]


def reference(fields: dict[int, list[int]], steps: list[Step]) -> dict[Column, set[Column]]:
    """Return the columns that each column reaches, with itself, by a simple walk."""
    known = {(dataset, field) for dataset, held in fields.items() for field in held}
    known |= {end for a, x, b, y, _ in steps for end in ((a, x), (b, y)) if end[1] != STAR}
    copies = [(a, b) for a, _, b, _, copy in steps if copy]
    while new := {(b, f) for a, b in copies for d, f in known if d == a} - known:
        known |= new

    def arrived(dataset: int, field: int) -> set[tuple[int, int]]:
        of_dataset = {column for column in known if column[0] == dataset}
        return {(dataset, field)} if field != STAR else of_dataset or {(dataset, STAR)}

    def onward(at: tuple[int, int]) -> set[tuple[int, int]]:
        found = set()
        for a, x, b, y, copy in steps:
            if (a, x) == at or (a == at[0] and x == STAR):
                found |= arrived(b, at[1] if copy else y)
        return found

    counts = {}
    for begin in {(d, f) for d, held in fields.items() for f in held if f != STAR}:
        reached, waiting = {begin}, [begin]
        while waiting:
            new = onward(waiting.pop()) - reached
            reached |= new
            waiting += new
        counts[begin] = reached
    return counts


datasets = st.integers(1, 5)
some_fields = st.integers(0, 3)
steps = st.tuples(datasets, some_fields, datasets, some_fields, st.booleans()).map(
    lambda step: (step[0], STAR, step[2], STAR, True) if step[4] else step
)


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(datasets, st.lists(st.integers(1, 3), unique=True), min_size=1),
    st.lists(steps, min_size=1, max_size=10),
)
def test_the_reach_of_every_column_equals_a_walk(fields, taken):
    found = columns(fields, *taken)
    reached = {column: len(others) - 1 for column, others in reference(fields, taken).items()}
    assert {column: counts[0] for column, counts in found.items()} == reached


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(datasets, st.lists(st.integers(1, 3), unique=True, min_size=1), min_size=1),
    st.lists(steps, min_size=1, max_size=10),
    st.data(),
)
def test_marked_columns_upstream_are_those_that_reach_the_column(fields, taken, data):
    reached = reference(fields, taken)
    marked = data.draw(st.sets(st.sampled_from(sorted(reached))))
    names = ("source", "source_field", "target", "target_field", "copies")
    links = dict(zip(names, map(ints, zip(*taken, strict=True)), strict=True))
    links["copies"] = links["copies"].astype(bool)
    nodes = ints(sorted({*fields, *links["source"].tolist(), *links["target"].tolist()}))
    table = {"dataset": ints(d for d, _ in reached), "field": ints(f for _, f in reached)}
    marks = {"dataset": ints(d for d, _ in marked), "field": ints(f for _, f in marked)}
    found = count_marked_columns(
        table, links, {"node": nodes, "representative": nodes}, marks, count_in_process
    )
    counted = zip(found["dataset"].tolist(), found["field"].tolist(), strict=True)
    assert dict(zip(counted, found["marked"].tolist(), strict=True)) == {
        column: sum(column in reached[other] for other in marked - {column}) for column in reached
    }


def test_no_known_columns_give_empty_counts():
    nothing = ints([])
    table = {"dataset": nothing, "field": nothing}
    links = dict.fromkeys(("source", "source_field", "target", "target_field"), nothing)
    links["copies"] = nothing.astype(bool)
    same = {"node": nothing, "representative": nothing}
    assert (
        count_column_reach(table, links, same, count_in_process)["downstream_columns"].tolist()
        == []
    )
    found = count_marked_columns(table, links, same, table, count_in_process)
    assert found["marked"].tolist() == []


def test_aliases_of_a_dataset_have_one_representative():
    numbers = {"node": ints([10, 20, 30]), "kind": ints([0, 0, 0])}
    links = {
        "kind": ints([5, 3]),
        "source": ints([10, 20]),
        "target": ints([20, 30]),
        "last_at": ints([1, 1]),
    }
    assert dataset_representatives(numbers, links)["representative"].tolist() == [10, 10, 30]
    found = count_node_reach(numbers, links, count_in_process)
    assert found["downstream_datasets"].tolist() == [1, 1, 0]
    assert found["upstream_datasets"].tolist() == [0, 0, 1]
