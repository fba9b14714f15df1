"""Following the data through datasets and jobs, compared with a reference that spells it out."""

from __future__ import annotations

from hypothesis import given, settings
from tests.unit.graph.reference import Reference
from tests.unit.graph.stories import DEPTHS, MOMENTS, ask, folds, node_entity, said, stories, told


@settings(max_examples=60, deadline=None)
@given(stories, folds)
def test_a_trace_finds_what_the_events_say(tmp_path_factory, story, smallest_fold):
    reference = Reference([event for batch in story for event in batch])
    folder = tmp_path_factory.mktemp("story")
    with told(story, folder, smallest_fold) as (index, reader):
        for node in sorted(reference.facts.nodes):
            entity = node_entity(node, reader)
            for downstream in (True, False):
                for depth, as_of in [
                    *((d, MOMENTS[0]) for d in DEPTHS),
                    (None, MOMENTS[1]),
                    (1, MOMENTS[2]),
                ]:
                    asked = {"downstream": downstream, "depth": depth, "as_of": as_of}
                    answer = ask(index, reader, entity, **asked)
                    assert said(answer) == reference.trace(node, **asked)
