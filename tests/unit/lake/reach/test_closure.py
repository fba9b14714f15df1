"""Counts of reached items equal those of a walk from every vertex."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downriver.lake.reach import closure
from downriver.lake.reach.closure import (
    VertexItems,
    count_reached,
    longest_paths,
    strong_components,
    weak_components,
)


def ints(values) -> np.ndarray:
    return np.array(list(values), np.int64)


@st.composite
def graphs(draw: st.DrawFn):
    size = draw(st.integers(1, 14))
    vertex = st.integers(0, size - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=30))
    items = draw(st.lists(st.integers(-1, 5), min_size=size, max_size=size))
    kinds = draw(st.lists(st.integers(0, 1), min_size=6, max_size=6))
    return size, edges, items, kinds


def walked(size: int, edges) -> list[set[int]]:
    """Return what each vertex reaches, itself included."""
    found = []
    for begin in range(size):
        reached, waiting = {begin}, [begin]
        while waiting:
            vertex = waiting.pop()
            new = {b for a, b in edges if a == vertex} - reached
            reached |= new
            waiting += new
        found.append(reached)
    return found


@pytest.mark.parametrize("words", [1, 64])
def test_counts_equal_those_of_walking(words, monkeypatch):
    monkeypatch.setattr(closure, "_BLOCK_WORDS", words)
    monkeypatch.setattr(closure, "_WORD_BITS", 64 if words > 1 else 2)

    @settings(deadline=None, max_examples=300)
    @given(graphs())
    def equal(graph):
        size, edges, items, kinds = graph
        counted = count_reached(
            size,
            ints(a for a, _ in edges),
            ints(b for _, b in edges),
            VertexItems(ints(items), ints(kinds)),
        )
        for vertex, reached in enumerate(walked(size, edges)):
            others = {items[v] for v in reached} - {-1, items[vertex]}
            by_kind = [sum(kinds[item] == kind for item in others) for kind in (0, 1)]
            assert [int(counts[vertex]) for counts in counted] == by_kind[: len(counted)]

    equal()


@settings(deadline=None, max_examples=200)
@given(graphs())
def test_cycles_and_components_equal_those_of_walking(graph):
    size, edges, _, _ = graph
    source, target = ints(a for a, _ in edges), ints(b for _, b in edges)
    reached = walked(size, edges)
    cycle = strong_components(size, source, target).tolist()
    together = [[cycle[a] == cycle[b] for b in range(size)] for a in range(size)]
    assert together == [
        [b in reached[a] and a in reached[b] for b in range(size)] for a in range(size)
    ]
    both_lengths = walked(size, [*edges, *((b, a) for a, b in edges)])
    assert weak_components(size, source, target).tolist() == [min(found) for found in both_lengths]


def test_a_long_chain_is_condensed_level_by_level():
    size = 20_000
    chain = np.arange(size)
    lengths = longest_paths(size, chain[:-1], chain[1:], np.ones(size - 1, np.int64))
    assert lengths.tolist() == list(range(size - 1, -1, -1))


def test_the_longest_path_of_a_chain_a_diamond_and_a_cycle():
    chain = [(0, 1), (1, 2), (0, 2)]
    cycle = [(2, 3), (3, 4), (4, 3), (4, 5)]
    edges = chain + cycle
    weight = ints([1] * len(edges))
    lengths = longest_paths(6, ints(a for a, _ in edges), ints(b for _, b in edges), weight)
    assert lengths.tolist() == [4, 3, 2, 1, 1, 0]


def test_a_graph_without_edges():
    counted = count_reached(3, ints([]), ints([]), VertexItems(ints([0, 1, -1]), ints([0, 0])))
    assert [counts.tolist() for counts in counted] == [[0, 0, 0]]
