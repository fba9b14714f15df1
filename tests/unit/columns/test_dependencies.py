"""The laws of dependencies: what is merged, raised and weakened."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from downriver.columns import (
    Certainty,
    DependencyKind,
    Deps,
    choose,
    direct,
    indirect,
    merge_all,
    source,
    weaken,
    window,
)

KINDS = st.sampled_from([int(kind) for kind in DependencyKind])
DIRECT_KINDS = st.sampled_from([int(kind) for kind in DependencyKind if kind < DependencyKind.JOIN])
INDIRECT_KINDS = st.sampled_from(
    [int(kind) for kind in DependencyKind if kind >= DependencyKind.JOIN]
)
KEYS = st.tuples(
    st.sampled_from([("a",), ("b",), ("db", "a")]), st.sampled_from("xyz"), KINDS, st.booleans()
)
DEPS = st.dictionaries(KEYS, st.sampled_from([int(each) for each in Certainty]), max_size=6)


@given(DEPS, DEPS, DEPS)
def test_merging_does_not_depend_on_order_or_repetition(one: Deps, other: Deps, third: Deps):
    merged = merge_all([one, other, third])
    assert merged == merge_all([third, one, other, one])
    assert merged == merge_all([one, merge_all([other, third])])


@given(DEPS, DEPS)
def test_merging_changes_no_argument(one: Deps, other: Deps):
    before = dict(one), dict(other)
    merge_all([one, other])
    assert (one, other) == before


@given(DEPS, DIRECT_KINDS)
def test_a_computed_value_keeps_indirect_dependencies(deps: Deps, kind: int):
    computed = direct(deps, kind)
    for table, column, own, _ in deps:
        expected = own if own >= DependencyKind.JOIN else max(own, kind)
        assert any(key[:3] == (table, column, expected) for key in computed)


@given(DEPS, DIRECT_KINDS, DIRECT_KINDS)
def test_two_computations_are_as_strong_as_the_stronger(deps: Deps, one: int, other: int):
    assert direct(direct(deps, one), other) == direct(deps, max(one, other))


@given(DEPS, INDIRECT_KINDS)
def test_a_value_that_is_only_looked_at_has_no_direct_dependency(deps: Deps, kind: int):
    looked_at = indirect(deps, kind)
    assert all(key[2] >= DependencyKind.JOIN and not key[3] for key in looked_at)
    assert {key[:2] for key in looked_at} == {key[:2] for key in deps}


@given(DEPS, st.sampled_from(list(Certainty)))
def test_weakened_dependencies_are_at_most_as_certain(deps: Deps, certainty: Certainty):
    weak = weaken(deps, certainty)
    assert weak.keys() == deps.keys()
    assert all(value >= certainty for value in weak.values())


def test_a_conditional_value_uses_its_branches_and_looks_at_its_conditions():
    chosen = choose([source(("t",), "flag")], [source(("t",), "a"), source(("t",), "b")])
    assert {(key[1], DependencyKind(key[2]).name) for key in chosen} == {
        ("flag", "CONDITIONAL"),
        ("a", "TRANSFORMATION"),
        ("b", "TRANSFORMATION"),
    }


def test_a_window_value_looks_at_its_keys():
    value = window(direct(source(("t",), "a"), DependencyKind.AGGREGATION), [source(("t",), "k")])
    assert {(key[1], DependencyKind(key[2]).name) for key in value} == {
        ("a", "AGGREGATION"),
        ("k", "WINDOW"),
    }
