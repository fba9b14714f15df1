"""Walks through columns: the meaning of `*`, the composition of derivations, and a reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from tests.unit.graph.events import (
    column_lineage,
    copied,
    copy_of,
    dataset,
    dataset_event,
    filtered_by,
    run_event,
    schema,
    source,
)
from tests.unit.graph.random_events import (
    DEPTHS,
    MOMENTS,
    ask,
    event_lists,
    folds,
    node_entity,
    said,
    told,
    wide_story,
)
from tests.unit.graph.reference import Reference

from downriver.graph import Entity
from downriver.model.ids import ColumnId, DatasetId

pytestmark = pytest.mark.usefixtures("walks")


def writes(name, *whole, **fields):
    """A job named after the dataset it fills, and where its columns come from."""
    facet = column_lineage(*whole, **fields)
    return run_event(f"make_{name}", [], [dataset(name, columnLineage=facet)])


def copies(name, *names):
    return run_event(f"make_{name}", [], [dataset(name, columnLineage=copy_of(*names))])


def depths(answer):
    return {f"{node.name}.{node.field}": node.depth for node in answer.nodes}


def kinds(answer):
    return {
        f"{node.name}.{node.field}": node.transformation or node.derivation
        for node in answer.nodes
        if node.depth
    }


# What `*` means


def test_a_filter_reaches_every_column_of_what_it_filters(lineage):
    lineage.ingest(
        [
            writes("b", filtered_by("a.country"), total=[copied("a.amount")]),
            writes("c", sum=[copied("b.total")]),
        ]
    )
    assert depths(lineage.trace("a.country")) == {
        "a.country": 0, "b.*": 1, "b.total": 1, "c.sum": 2,
    }  # fmt: skip
    assert depths(lineage.trace("c.sum", "upstream")) == {
        "c.sum": 0, "b.total": -1, "a.amount": -2, "a.country": -2,
    }  # fmt: skip


def test_select_star_takes_each_column_to_the_one_of_its_name(lineage):
    lineage.ingest([copies("b", "a"), writes("c", y=[copied("b.x")], z=[copied("b.other")])])
    assert depths(lineage.trace("c.y", "upstream")) == {"c.y": 0, "b.x": -1, "a.*": -2}
    lineage.ingest([dataset_event("a", schema=schema("x", "other"))])
    assert depths(lineage.trace("a.x")) == {"a.x": 0, "b.x": 1, "c.y": 2}
    assert depths(lineage.trace("c.y", "upstream")) == {"c.y": 0, "b.x": -1, "a.x": -2}


def test_a_column_keeps_its_name_through_select_star_over_tables_where_it_is_unknown(lineage):
    lineage.ingest(
        [
            dataset_event("raw", schema=schema("x", "y")),
            copies("stage", "raw"),
            copies("clean", "stage"),
            writes("mart", m=[copied("clean.x")], n=[copied("clean.y")]),
        ]
    )
    assert depths(lineage.trace("raw.x")) == {
        "raw.x": 0, "stage.*": 1, "clean.x": 2, "mart.m": 3,
    }  # fmt: skip
    assert depths(lineage.trace("mart.n", "upstream")) == {
        "mart.n": 0, "clean.y": -1, "stage.*": -2, "raw.y": -3,
    }  # fmt: skip
    assert kinds(lineage.trace("raw.x")) == dict.fromkeys(
        ["stage.*", "clean.x", "mart.m"], "IDENTITY"
    )


def test_what_filters_a_table_reaches_all_that_select_star_takes_from_it(lineage):
    lineage.ingest(
        [writes("b", filtered_by("a.country")), copies("c", "b"), writes("d", y=[copied("c.x")])]
    )
    assert depths(lineage.trace("a.country")) == {
        "a.country": 0, "b.*": 1, "c.*": 2, "c.x": 2, "d.y": 3,
    }  # fmt: skip
    assert set(kinds(lineage.trace("a.country")).values()) == {"INDIRECT"}


def test_counting_rows_uses_every_column(lineage):
    lineage.ingest(
        [writes("b", x=[copied("a.x")]), writes("c", n=[source("b.*", "DIRECT", "AGGREGATION")])]
    )
    assert depths(lineage.trace("a.x")) == {"a.x": 0, "b.x": 1, "c.n": 2}
    assert depths(lineage.trace("c.n", "upstream")) == {"c.n": 0, "b.*": -1, "b.x": -1, "a.x": -2}


def test_a_table_reached_both_by_name_and_as_a_whole_is_shown_once(lineage):
    lineage.ingest(
        [
            dataset_event("a", schema=schema("x")),
            run_event(
                "make_b",
                [],
                [dataset("b", columnLineage={**copy_of("a"), "dataset": [filtered_by("a.x")]})],
            ),
            writes("c", y=[copied("b.other")]),
        ]
    )
    answer = lineage.trace("a.x")
    assert depths(answer) == {"a.x": 0, "b.*": 1, "b.other": 1, "c.y": 2}
    # `b.*` may hold a copy of `a.x`; of `b.other` it is only known that it is filtered by it.
    assert kinds(answer) == {"b.*": "IDENTITY", "b.other": "INDIRECT", "c.y": "INDIRECT"}


# How derivations compose


@pytest.mark.parametrize(
    ("first", "second", "composed"),
    [
        (("DIRECT", "IDENTITY"), ("DIRECT", "IDENTITY"), "IDENTITY"),
        (("DIRECT", "IDENTITY"), ("DIRECT", "TRANSFORMATION"), "TRANSFORMATION"),
        (("DIRECT", "AGGREGATION"), ("DIRECT", "TRANSFORMATION"), "AGGREGATION"),
        (("DIRECT", ""), ("DIRECT", "IDENTITY"), "TRANSFORMATION"),
        (("INDIRECT", "JOIN"), ("DIRECT", "IDENTITY"), "INDIRECT"),
        (("DIRECT", "AGGREGATION"), ("INDIRECT", "SORT"), "INDIRECT"),
    ],
)
def test_a_path_is_as_indirect_as_its_worst_step(lineage, first, second, composed):
    lineage.ingest(
        [writes("b", x=[source("a.x", *first)]), writes("c", x=[source("b.x", *second)])]
    )
    assert kinds(lineage.trace("a.x"))["c.x"] == composed
    assert kinds(lineage.trace("c.x", "upstream"))["a.x"] == composed


def test_a_column_is_as_direct_as_its_best_path_even_if_that_is_longer(lineage):
    lineage.ingest(
        [
            writes("c", x=[filtered_by("a.x"), copied("b.x")]),
            writes("b", x=[source("a.x", "DIRECT", "AGGREGATION")]),
        ]
    )
    answer = lineage.trace("a.x")
    assert depths(answer)["c.x"] == 1
    assert kinds(answer)["c.x"] == "AGGREGATION"
    assert sorted(edge.type for edge in answer.edges) == ["DIRECT", "DIRECT", "INDIRECT"]


def test_a_column_that_is_both_up_and_downstream_is_shown_as_it_is_downstream(lineage):
    lineage.ingest([writes("b", x=[copied("a.x")]), writes("a", x=[filtered_by("b.x")])])
    answer = lineage.trace("a.x", "both")
    assert depths(answer) == {"a.x": 0, "b.x": 1}
    assert kinds(answer) == {"b.x": "IDENTITY"}


def test_a_column_that_feeds_itself_is_counted_once(lineage):
    lineage.ingest([writes("a", x=[source("a.x", "DIRECT", "TRANSFORMATION"), copied("b.x")])])
    answer = lineage.trace("a.x")
    assert depths(answer) == {"a.x": 0}
    assert [(edge.source, edge.target) for edge in answer.edges] == [("column:db:a:x",) * 2]


# The reference


QUESTIONS = [*((depth, MOMENTS[0]) for depth in DEPTHS), (None, MOMENTS[1])]


def assert_traces_agree(story, folder, smallest_fold, questions, every=1):
    reference = Reference([event for batch in story for event in batch])
    columns = sorted(column for column in reference.facts.columns if column[1] != "*")
    with told(story, folder, smallest_fold) as (index, reader):
        for dataset, field in columns[::every]:
            node = node_entity(dataset, reader)
            number, _ = reader.columns.find(node.node, field)
            column = ColumnId(DatasetId(dataset.namespace, dataset.name), field)
            entity = Entity(column, node.node, number)
            for downstream in (True, False):
                for depth, as_of in questions:
                    asked = {"downstream": downstream, "depth": depth, "as_of": as_of}
                    answer = ask(index, reader, entity, **asked)
                    expected = reference.trace_column((dataset, field), **asked)
                    expected.ranks.pop(answer.root.id)
                    assert said(answer) == expected


@settings(max_examples=40, deadline=None)
@given(event_lists, folds)
def test_a_column_trace_equals_the_reference(tmp_path_factory, story, smallest_fold):
    assert_traces_agree(story, tmp_path_factory.mktemp("story"), smallest_fold, QUESTIONS)


@pytest.mark.parametrize("smallest_fold", [0, 4096])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_graph_that_gets_wide_edges_later_traces_as_the_reference(tmp_path, seed, smallest_fold):
    questions = [(None, MOMENTS[0]), (2, MOMENTS[0])]
    assert_traces_agree(wide_story(seed), tmp_path, smallest_fold, questions, every=61)
