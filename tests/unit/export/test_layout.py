"""Layers follow the flow in any graph. The same graph always has the same layout."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from downriver.export.pictures.layout import Layout, Link, Place, Slot, lay_out, spread

NAMES = [f"n{number}" for number in range(12)]
graphs = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=30)


def layer_of(layout: Layout, node: str) -> int:
    return layout.slots[node].layer


def test_a_node_comes_after_the_longest_path_that_leads_to_it():
    layout = lay_out("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    assert [layer_of(layout, node) for node in "abcd"] == [0, 1, 2, 3]


def test_a_source_is_drawn_next_to_what_reads_it():
    layout = lay_out("abcx", [("a", "b"), ("b", "c"), ("x", "c")])
    assert layer_of(layout, "x") == layer_of(layout, "b") == 1


def test_a_cycle_is_broken_where_the_flow_comes_back():
    layout = lay_out("sabc", [("s", "b"), ("b", "c"), ("c", "a"), ("a", "b")])
    assert [layer_of(layout, node) for node in "sbca"] == [0, 1, 2, 3]


def test_a_node_that_feeds_itself_stays_in_its_layer():
    layout = lay_out("ab", [("a", "a"), ("a", "b")])
    assert [layer_of(layout, node) for node in "ab"] == [0, 1]


def test_an_empty_graph_has_an_empty_layout():
    assert lay_out([], []) == Layout(slots={}, lanes={})


def test_a_long_edge_has_a_lane_in_each_layer_it_crosses():
    layout = lay_out("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
    assert [slot.layer for slot in layout.lanes["a", "d"]] == [1, 2]
    assert not set(layout.lanes["a", "d"]) & set(layout.slots.values())


def test_the_lanes_of_an_edge_that_goes_back_are_listed_from_its_source():
    layout = lay_out("abcd", [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    assert [slot.layer for slot in layout.lanes["d", "a"]] == [2, 1]


def test_a_tree_is_drawn_without_crossings():
    edges = [(f"{number // 3:03}", f"{number:03}") for number in range(1, 200)]
    layout = lay_out(sorted({node for edge in edges for node in edge}), edges)
    assert crossings(layout, edges) == 0


def test_parallel_chains_given_crosswise_are_untangled():
    edges = [("a1", "b4"), ("a2", "b3"), ("a3", "b2"), ("a4", "b1")]
    layout = lay_out(sorted({node for edge in edges for node in edge}), edges)
    assert crossings(layout, edges) == 0


def crossings(layout: Layout, edges: list[tuple[str, str]]) -> int:
    ends = [(layout.slots[source], layout.slots[target]) for source, target in edges]
    return sum(
        a[0].layer == b[0].layer and (a[0].order - b[0].order) * (a[1].order - b[1].order) < 0
        for a, b in combinations(ends, 2)
    )


@given(graphs)
def test_no_edge_stays_within_a_layer_and_no_slot_is_used_twice(edges):
    layout = lay_out(NAMES, edges)
    for source, target in edges:
        assert source == target or layer_of(layout, source) != layer_of(layout, target)
    taken = list(layout.slots.values())
    back = {edge for edge in layout.lanes if layer_of(layout, edge[0]) > layer_of(layout, edge[1])}
    # An edge and its reverse share their lanes.
    taken += [
        slot
        for edge, lane in layout.lanes.items()
        if edge not in back or edge[::-1] not in layout.lanes
        for slot in lane
    ]
    assert len(set(taken)) == len(taken)


@given(graphs)
def test_every_edge_points_forward_when_there_is_no_cycle(edges):
    forward = [
        (source, target) for source, target in edges if NAMES.index(source) < NAMES.index(target)
    ]
    layout = lay_out(NAMES, forward)
    assert all(layer_of(layout, source) < layer_of(layout, target) for source, target in forward)


@given(graphs, st.randoms())
def test_the_order_of_the_input_does_not_matter(edges, random):
    nodes, shuffled = NAMES * 2, [*edges, *edges]
    random.shuffle(nodes)
    random.shuffle(shuffled)
    assert lay_out(nodes, shuffled) == lay_out(NAMES, edges)


@given(graphs, st.lists(st.floats(1, 200), min_size=1))
@settings(deadline=None)
def test_slots_are_spread_in_their_order_without_overlap(edges, sizes):
    layout = lay_out(NAMES, edges)
    slots = sorted(layout.slots.values())
    heights = {slot: sizes[number % len(sizes)] for number, slot in enumerate(slots)}
    links = [Link(layout.slots[a], 1, layout.slots[b], 2) for a, b in edges if a != b]
    tops = spread(heights, links, gap=10)
    assert min(tops.values()) == 0
    for upper, lower in pairwise(slots):
        if upper.layer == lower.layer:
            assert tops[lower] - tops[upper] >= heights[upper] + 10 - 1e-6


def test_a_chain_is_drawn_as_a_straight_line():
    slots = [Slot(layer, 0) for layer in range(5)]
    heights = {slot: 10.0 + 7 * slot.layer for slot in slots}
    links = [Link(a, heights[a] / 2, b, heights[b] / 2) for a, b in pairwise(slots)]
    tops = spread(heights, links, gap=5)
    middles = [tops[slot] + heights[slot] / 2 for slot in slots]
    assert max(middles) - min(middles) < 1e-6


def test_a_chain_longer_than_the_call_stack_is_laid_out():
    nodes = [f"{number:05}" for number in range(20_000)]
    layout = lay_out(nodes, list(pairwise(nodes)))
    assert layer_of(layout, nodes[-1]) == 19_999


@pytest.mark.parametrize("count", [250, 500, 1_000, 2_000])
def test_lanes_grow_with_the_nodes_however_far_the_edges_reach(count):
    nodes = [f"{number:04}" for number in range(count)]
    layout = lay_out(nodes, [*pairwise(nodes), *((node, nodes[-1]) for node in nodes)])
    # The sweeps are few and pass each slot once: slots are the work. A lane for every edge here
    # would take some count * count / 2 of them.
    assert sum(map(len, layout.lanes.values())) <= 4 * count


def test_places_of_a_screen_are_kept() -> None:
    # On its own, the layout would put `b` between `a` and `c`, and cross no edges.
    edges = [("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("c", "b")]
    places = {
        "a": Place(0, 50.0),
        "b": Place(0, 10.0),
        "c": Place(3, 5.0),
        "d": Place(7, 5.0),
    }
    kept = lay_out(list(places), edges, places)
    assert kept.slots["b"] == Slot(0, 0)
    assert kept.slots["a"] == Slot(0, 1)
    assert [kept.slots[name].layer for name in "acd"] == [0, 1, 2]
    (lane,) = kept.lanes["a", "d"]
    assert lane.layer == 1


def test_places_are_not_kept_if_an_edge_would_stay_inside_a_layer() -> None:
    places = {"a": Place(0, 0.0), "b": Place(0, 1.0)}
    assert lay_out(["a", "b"], [("a", "b")], places) == lay_out(["a", "b"], [("a", "b")])
    assert lay_out(["a", "b"], [], {"a": places["a"]}) == lay_out(["a", "b"], [])
