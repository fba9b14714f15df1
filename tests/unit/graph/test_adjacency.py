"""Edges and keys are found the same, whether compressed or in the overlay for what is new."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from downriver.graph.index.adjacency import Adjacency, GrowingArray
from downriver.graph.index.sorted_keys import SortedKeys, pair, pairs
from downriver.graph.walk.result import VisitMarks

ids = st.integers(0, 5)
batches = st.lists(st.lists(st.tuples(ids, ids), max_size=8), max_size=6)
folds = st.sampled_from([0, 3, 4096])


@given(batches, folds, st.booleans())
def test_edges_are_found_at_both_ends(batches, smallest_fold, look_between):
    adjacency = Adjacency(smallest_fold)
    leaving, entering = defaultdict(list), defaultdict(list)
    for batch in batches:
        for source, target in batch:
            number = sum(map(len, leaving.values()))
            leaving[source].append(number)
            entering[target].append(number)
        adjacency.extend([source for source, _ in batch], [target for _, target in batch])
        if look_between:
            adjacency.leaving.of(np.array([1], np.int32))
    for rows, expected in ((adjacency.leaving, leaving), (adjacency.entering, entering)):
        one = rows.one_by_one()
        for node in range(7):
            assert list(one(node)) == expected[node]
            assert rows.of(np.array([node], np.int32)).tolist() == expected[node]


@given(batches, folds, st.lists(ids))
def test_edges_of_many_nodes_tell_whose_they_are(batches, smallest_fold, nodes):
    adjacency = Adjacency(smallest_fold)
    edges = [edge for batch in batches for edge in batch]
    for batch in batches:
        adjacency.extend([source for source, _ in batch], [target for _, target in batch])
    found, places = adjacency.leaving.of_each(np.array(nodes, np.int32))
    expected = [
        (number, place)
        for place, node in enumerate(nodes)
        for number, (source, _) in enumerate(edges)
        if source == node
    ]
    assert sorted(zip(found.tolist(), places.tolist(), strict=True)) == sorted(expected)


@given(batches, folds, st.booleans())
def test_numbers_are_found_by_key(batches, smallest_fold, look_between):
    keys, expected = SortedKeys(smallest_fold), defaultdict(list)
    count = 0
    for batch in batches:
        high, low = (np.array([edge[end] for edge in batch], np.int32) for end in (0, 1))
        keys.extend(pairs(high, low), np.arange(count, count + len(batch)))
        for edge in batch:
            expected[edge].append(count)
            count += 1
        if look_between:
            keys.find(pair(1, 1))
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


def test_a_growing_array_keeps_what_was_put_in_and_is_zero_elsewhere():
    array: GrowingArray[np.int64] = GrowingArray(np.int64)
    array.extend(range(10))
    array.grow(1000)
    array.view[999] = 7
    array.extend([8])
    assert array.view[:10].tolist() == list(range(10))
    assert array.view[10:999].sum() == 0
    assert array.view[999:].tolist() == [7, 8]


def test_an_edge_added_after_a_lookup_is_found_by_the_next_one():
    adjacency = Adjacency(smallest_fold=2)
    for number in range(10):
        adjacency.extend([1], [number])
        assert adjacency.leaving.of(np.array([1], np.int32)).tolist() == list(range(number + 1))


def test_marks_of_earlier_walks_are_never_seen_again():
    marks = VisitMarks()
    for walk in range(1200):
        marks.restart()
        nodes = np.array([walk % 255, 999, 999], np.int32)
        assert sorted(marks.add(nodes).tolist()) == [walk % 255, 999]
        assert marks.add(nodes).tolist() == []
