"""Edges and keys are found the same, whether compressed or in the overlay for what is new."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from downriver.graph.index.adjacency import Adjacency
from downriver.graph.index.sorted_keys import SortedKeys, pair, pairs
from downriver.graph.index.vectors import Times, Vector
from downriver.graph.walk.result import VisitMarks, borrowed_marks

ids = st.integers(0, 5)
batches = st.lists(st.lists(st.tuples(ids, ids), max_size=8), max_size=6)
folds = st.sampled_from([0, 3, 4096])


@given(batches, folds, st.booleans())
def test_edges_are_found_at_both_ends(batches, smallest_fold, index_between):
    adjacency = Adjacency.empty(smallest_fold)
    leaving, entering = defaultdict(list), defaultdict(list)
    for batch in batches:
        for source, target in batch:
            number = sum(map(len, leaving.values()))
            leaving[source].append(number)
            entering[target].append(number)
        adjacency = adjacency.appended([s for s, _ in batch], [t for _, t in batch])
        if index_between:
            adjacency = adjacency.indexed()
    adjacency = adjacency.indexed()
    for rows, expected in ((adjacency.leaving, leaving), (adjacency.entering, entering)):
        one = rows.one_by_one()
        for node in range(7):
            assert list(one(node)) == expected[node]
            assert rows.of(np.array([node], np.int32)).tolist() == expected[node]


@given(batches, folds, st.lists(ids))
def test_edges_of_many_nodes_have_the_number_of_their_node(batches, smallest_fold, nodes):
    adjacency = Adjacency.empty(smallest_fold)
    edges = [edge for batch in batches for edge in batch]
    for batch in batches:
        adjacency = adjacency.appended([s for s, _ in batch], [t for _, t in batch]).indexed()
    found, places = adjacency.leaving.of_each(np.array(nodes, np.int32))
    expected = [
        (number, place)
        for place, node in enumerate(nodes)
        for number, (source, _) in enumerate(edges)
        if source == node
    ]
    assert sorted(zip(found.tolist(), places.tolist(), strict=True)) == sorted(expected)


@given(batches, folds, st.booleans())
def test_numbers_are_found_by_key(batches, smallest_fold, index_between):
    keys, expected = SortedKeys(smallest_fold), defaultdict(list)
    count = 0
    for batch in batches:
        high, low = (np.array([edge[end] for edge in batch], np.int32) for end in (0, 1))
        keys = keys.appended(pairs(high, low), np.arange(count, count + len(batch)))
        for edge in batch:
            expected[edge].append(count)
            count += 1
        if index_between:
            keys = keys.indexed()
    keys = keys.indexed()
    wanted = [(high, low) for high in range(7) for low in range(7)]
    found, places = keys.find_each(np.array([pair(*key) for key in wanted]))
    by_key = defaultdict(list)
    for number, place in zip(found.tolist(), places.tolist(), strict=True):
        by_key[wanted[place]].append(number)
    for key in wanted:
        assert by_key[key] == expected[key]
        assert keys.find(pair(*key)) == (expected[key] or [None])[0]
    for high in range(7):
        of_high = [n for (first, _), numbers in expected.items() if first == high for n in numbers]
        assert sorted(keys.having(high).tolist()) == sorted(of_high)


def test_a_vector_keeps_its_values_and_is_zero_elsewhere():
    vector: Vector[np.int64] = Vector.empty(np.int64)
    vector = vector.extended(range(10)).with_new([999], [7]).extended([8])
    assert vector[:10].tolist() == list(range(10))
    assert vector[10:999].sum() == 0
    assert vector[999:].tolist() == [7, 8]


appends = st.lists(st.tuples(st.integers(0, 20), st.lists(st.integers(1, 9), max_size=30)))


@given(appends)
def test_a_vector_never_changes_once_it_exists(appends):
    """Vectors share memory, also when one that is not the longest is extended."""
    vectors, expected = [Vector.empty(np.int64)], [[]]
    for which, values in appends:
        base = which % len(vectors)
        vectors.append(vectors[base].extended(values))
        expected.append(expected[base] + values)
    assert [vector.values.tolist() for vector in vectors] == expected


changes = st.dictionaries(st.integers(0, 15), st.integers(1, 99), max_size=6)


@given(st.lists(st.tuples(changes, st.lists(st.integers(1, 99), max_size=4)), max_size=8))
def test_times_that_readers_have_seen_never_change(loads):
    times, expected = Times.empty(), []
    seen = []
    for changed, added in loads:
        known = {number: at for number, at in changed.items() if number < len(expected)}
        numbers = np.array(list(known), np.int64)
        times = times.replaced(numbers, np.array(list(known.values()), np.int64))
        times = times.extended(added).settled()
        expected = [known.get(number, at) for number, at in enumerate(expected)] + added
        seen.append((times, expected))
    for times, expected in seen:
        assert times.values.tolist() == expected
        assert [times.at(number) for number in range(len(expected))] == expected


def test_many_changed_times_are_folded_and_the_old_ones_stay():
    before = Times.empty().extended(np.arange(10_000)).settled()
    numbers = np.arange(0, 10_000, 2)
    after = before.replaced(numbers, numbers * 10).settled()
    assert before.values.tolist() == list(range(10_000))
    assert after.at(42) == 420
    assert after.at(43) == 43


@given(batches, folds, st.lists(st.integers(0, 5), max_size=5))
def test_an_adjacency_never_changes_once_it_is_indexed(batches, smallest_fold, restarts):
    """Not by edges added later, and not by those of a load that failed half way."""
    versions, expected = [Adjacency.empty(smallest_fold)], [[]]
    for number, batch in enumerate(batches):
        base = restarts[number] % len(versions) if number < len(restarts) else -1
        sources, targets = [s for s, _ in batch], [t for _, t in batch]
        versions.append(versions[base].appended(sources, targets).indexed())
        expected.append([*expected[base], *batch])
    nodes = np.arange(7, dtype=np.int32)
    for adjacency, edges in zip(versions, expected, strict=True):
        one = adjacency.leaving.one_by_one()
        for node in range(7):
            leaving = [number for number, (source, _) in enumerate(edges) if source == node]
            assert list(one(node)) == leaving
        found, places = adjacency.entering.of_each(nodes)
        assert sorted(zip(found.tolist(), nodes[places].tolist(), strict=True)) == [
            (number, target) for number, (_, target) in enumerate(edges)
        ]


def test_an_edge_added_after_a_lookup_is_found_by_the_next_one():
    adjacency = Adjacency.empty(smallest_fold=2)
    for number in range(10):
        adjacency = adjacency.appended([1], [number]).indexed()
        assert adjacency.leaving.of(np.array([1], np.int32)).tolist() == list(range(number + 1))


def test_marks_of_earlier_walks_are_never_seen_again():
    marks = VisitMarks()
    for walk in range(1200):
        marks.restart()
        nodes = np.array([walk % 255, 999, 999], np.int32)
        assert sorted(marks.add(nodes).tolist()) == [walk % 255, 999]
        assert marks.add(nodes).tolist() == []


def test_two_walks_at_once_have_marks_of_their_own():
    with borrowed_marks() as one, borrowed_marks() as other:
        assert one is not other
