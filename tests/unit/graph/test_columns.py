"""Following the data through columns, compared with a reference that spells it out."""

from __future__ import annotations

from hypothesis import given, settings
from tests.unit.graph.reference import Reference
from tests.unit.graph.stories import DEPTHS, MOMENTS, ask, folds, node_entity, said, stories, told

from downriver.graph import Entity
from downriver.model.ids import ColumnId, DatasetId


@settings(max_examples=60, deadline=None)
@given(stories, folds)
def test_a_column_trace_finds_what_the_events_say(tmp_path_factory, story, smallest_fold):
    reference = Reference([event for batch in story for event in batch])
    folder = tmp_path_factory.mktemp("story")
    with told(story, folder, smallest_fold) as (index, reader):
        for dataset, field in sorted(c for c in reference.facts.columns if c[1] != "*"):
            node = node_entity(dataset, reader)
            number, _ = reader.find_column(node.node, field)
            column = ColumnId(DatasetId(dataset.namespace, dataset.name), field)
            entity = Entity(column, node.node, number)
            for downstream in (True, False):
                for depth, as_of in [*((d, MOMENTS[0]) for d in DEPTHS), (None, MOMENTS[1])]:
                    asked = {"downstream": downstream, "depth": depth, "as_of": as_of}
                    answer = ask(index, reader, entity, **asked)
                    expected = reference.trace_column((dataset, field), **asked)
                    expected.ranks.pop(answer.root.id)
                    assert said(answer) == expected
