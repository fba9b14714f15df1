"""Walks through datasets and jobs, compared with a simple reference."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
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

pytestmark = pytest.mark.usefixtures("walks")

QUESTIONS = [*((depth, MOMENTS[0]) for depth in DEPTHS), (None, MOMENTS[1]), (1, MOMENTS[2])]


def assert_traces_agree(story, folder, smallest_fold, questions, every=1):
    reference = Reference([event for batch in story for event in batch])
    with told(story, folder, smallest_fold) as (index, reader):
        for node in sorted(reference.facts.nodes)[::every]:
            entity = node_entity(node, reader)
            for downstream in (True, False):
                for depth, as_of in questions:
                    asked = {"downstream": downstream, "depth": depth, "as_of": as_of}
                    answer = ask(index, reader, entity, **asked)
                    assert said(answer) == reference.trace(node, **asked)


@settings(max_examples=40, deadline=None)
@given(event_lists, folds)
def test_a_trace_equals_the_reference(tmp_path_factory, story, smallest_fold):
    assert_traces_agree(story, tmp_path_factory.mktemp("story"), smallest_fold, QUESTIONS)


@pytest.mark.parametrize("smallest_fold", [0, 4096])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_graph_that_gets_wide_edges_later_traces_as_the_reference(tmp_path, seed, smallest_fold):
    questions = [(None, MOMENTS[0]), (2, MOMENTS[0]), (None, MOMENTS[1])]
    assert_traces_agree(wide_story(seed), tmp_path, smallest_fold, questions, every=29)
