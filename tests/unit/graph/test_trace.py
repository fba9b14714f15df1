"""What an answer lists, what it counts, and its blind spots."""

from __future__ import annotations

import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    copy_of,
    dataset,
    dataset_event,
    feeds,
    lineage_of,
    moment,
    render,
    run_event,
    schema,
    symlinks,
)


def depths(answer):
    return {node.name: node.depth for node in answer.nodes}


def spots(answer):
    return [(spot.kind, spot.entity) for spot in answer.blind_spots]


def steps(answer):
    return {
        (edge.source.rpartition(":")[2], edge.target.rpartition(":")[2]) for edge in answer.edges
    }


# Depth


def test_depth_counts_jobs_and_a_job_is_as_deep_as_what_it_writes(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"]), run_event("k", ["b"], ["c"])])
    assert depths(lineage.trace("a")) == {"a": 0, "j": 1, "b": 1, "k": 2, "c": 2}
    assert depths(lineage.trace("c", "upstream")) == {"c": 0, "k": -1, "b": -1, "j": -2, "a": -2}
    assert depths(lineage.trace("b", "both")) == {"b": 0, "j": -1, "a": -1, "k": 1, "c": 1}


def test_the_neighbours_of_a_job_are_at_depth_one(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"]), run_event("k", ["b"], ["c"])])
    assert depths(lineage.trace("job:j", "both")) == {"j": 0, "a": -1, "b": 1, "k": 2, "c": 2}


def test_depth_zero_shows_the_root_and_counts_the_rest(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"])])
    answer = lineage.trace("a", depth=0)
    assert (depths(answer), answer.edges, answer.omitted_count) == ({"a": 0}, [], 2)


def test_a_depth_limit_keeps_every_edge_between_the_nodes_it_shows(lineage):
    lineage.ingest([run_event("j", ["a", "b"], ["b"]), run_event("k", ["a"], ["c"])])
    lineage.ingest([run_event("j", ["c"]), run_event("l", ["b"], ["d"])])
    answer = lineage.trace("a", depth=1)
    assert depths(answer) == {"a": 0, "j": 1, "k": 1, "b": 1, "c": 1}
    assert steps(answer) == {("a", "j"), ("j", "b"), ("b", "j"), ("a", "k"), ("k", "c"), ("c", "j")}
    assert answer.omitted_count == 2


def test_what_is_both_up_and_downstream_is_counted_once(lineage):
    cycle = ["a", "b", "c", "d", "e"]
    for one, other in zip(cycle, [*cycle[1:], "a"], strict=True):
        lineage.ingest([run_event(f"{one}{other}", [one], [other])])
    assert lineage.trace("a", "both").omitted_count == 0
    answer = lineage.trace("a", "both", depth=1)
    assert sorted(depths(answer)) == ["a", "ab", "b", "e", "ea"]
    assert answer.omitted_count == 4  # bc and c, de and d
    assert lineage.trace("a", "both", limit=3).omitted_count == 7


def test_an_answer_that_is_cut_keeps_the_nearest(lineage):
    lineage.ingest(
        [run_event("j", ["a"], ["b"]), run_event("k", ["b"], [f"c{n}" for n in range(9)])]
    )
    answer = lineage.trace("a", limit=4)
    assert {"a", "j", "b"} < depths(answer).keys()
    assert (len(answer.nodes), answer.omitted_count) == (4, 9)
    assert spots(answer) == [("node_limit", "dataset:db:a")]
    assert len(answer.edges) == 3


# The inputs that a job states


def test_a_job_with_explicit_lineage_feeds_only_the_stated_outputs(lineage):
    spelled_out = lineage_of(feeds("x", "a"), feeds("y", "b"))
    lineage.ingest([run_event("j", ["a", "b"], ["x", "y", "z"], lineage=spelled_out)])
    assert sorted(depths(lineage.trace("a"))) == ["a", "j", "x", "z"]
    assert sorted(depths(lineage.trace("y", "upstream"))) == ["b", "j", "y"]
    assert sorted(depths(lineage.trace("z", "upstream"))) == ["a", "b", "j", "z"]
    derives = [edge for edge in lineage.trace("a").edges if edge.kind == "derives"]
    assert [(edge.target, edge.job) for edge in derives] == [("dataset:db:x", "job:etl:j")]


def test_explicit_lineage_applies_to_every_name_of_an_output(lineage):
    written = dataset("path", symlinks=symlinks("x"))
    spelled_out = lineage_of(feeds("x", "a"))
    lineage.ingest([run_event("j", ["a", "b"], [written], lineage=spelled_out)])
    assert sorted(depths(lineage.trace("x", "upstream"))) == ["a", "j", "x"]
    assert sorted(depths(lineage.trace("b"))) == ["b", "j"]


def test_before_explicit_lineage_all_inputs_fed_all_outputs(lineage):
    lineage.ingest([run_event("j", ["a", "b"], ["x", "y"], day=1)])
    lineage.ingest([run_event("j", ["a"], ["x"], day=5, lineage=lineage_of(feeds("x", "a")))])
    assert sorted(depths(lineage.trace("b"))) == ["b", "j", "y"]
    assert sorted(depths(lineage.trace("b", as_of=moment(4)))) == ["b", "j", "x", "y"]


def test_a_job_with_an_empty_list_of_inputs_is_no_blind_spot(lineage):
    lineage.ingest([run_event("generate", [], ["x"], lineage=lineage_of(feeds("x")))])
    assert lineage.trace("x", "upstream").complete


# Time


def test_as_of_a_time_before_anything_was_seen_is_unknown_not_empty(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"], day=5)])
    answer = lineage.trace("a", as_of=moment(4))
    assert (depths(answer), answer.complete) == ({"a": 0}, False)
    assert spots(answer) == [("not_seen_yet", "dataset:db:a")]
    assert lineage.trace("a", as_of=moment(5)).complete


def test_as_of_a_time_when_its_inputs_were_unknown_a_job_is_a_blind_spot(lineage):
    lineage.ingest([run_event("j", [], ["b"], day=1), run_event("j", ["a"], ["b"], day=5)])
    assert lineage.trace("b", "upstream").complete
    assert spots(lineage.trace("b", "upstream", as_of=moment(2))) == [
        ("job_without_inputs", "job:etl:j")
    ]


def test_a_late_event_moves_the_time_from_which_an_edge_is_known(lineage):
    lineage.ingest([dataset_event("a"), run_event("j", ["a"], ["b"], day=5)])
    assert sorted(depths(lineage.trace("a", as_of=moment(3)))) == ["a"]
    lineage.ingest([run_event("j", ["a"], ["b"], day=2, run="late")])
    assert sorted(depths(lineage.trace("a", as_of=moment(3)))) == ["a", "b", "j"]


@pytest.mark.parametrize(("days", "status"), [(30, "active"), (31, "stale")])
def test_an_edge_is_stale_once_its_job_has_gone_on_without_it_for_30_days(lineage, days, status):
    lineage.ingest([run_event("j", ["a"], ["b"], day=1)])
    lineage.ingest([run_event("j", [], ["b"], day=1 + days)])
    answer = lineage.trace("a", "downstream")
    assert {edge.source: edge.status for edge in answer.edges} == {
        "dataset:db:a": status,
        "job:etl:j": "active",
    }
    assert answer.complete == (status == "active")


def test_an_edge_seen_again_is_no_longer_stale(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"], day=1), run_event("j", [], ["b"], day=90)])
    assert not lineage.trace("a").complete
    lineage.ingest([run_event("j", ["a"], day=91)])
    assert lineage.trace("a").complete


def test_an_edge_is_not_stale_as_of_a_time_when_it_was_fresh(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"], day=1), run_event("j", [], ["b"], day=90)])
    assert lineage.trace("a", as_of=moment(20)).complete
    assert spots(lineage.trace("a", as_of=moment(60))) == [("stale_edge", "dataset:db:a")]


def test_an_edge_that_no_job_carries_is_not_aged_by_others_of_its_kind(lineage):
    for day, (source, target) in ((1, "ab"), (90, "cd")):
        reported = {"inputs": feeds(target, source)["inputs"]}
        lineage.ingest([dataset_event(target, day=day, lineage=reported)])
    assert [edge.status for edge in lineage.trace("a").edges] == ["active"]
    assert lineage.trace("a").complete


def test_a_parent_that_only_runs_others_does_not_age_its_own_edges(lineage):
    lineage.ingest([run_event("dag", ["a"], ["b"], day=1)])
    parent = {"run": {"runId": "r"}, "job": {"namespace": "etl", "name": "dag"}}
    child = {
        "eventTime": moment(90),
        "run": {"runId": "c", "facets": {"parent": parent}},
        "job": {"namespace": "etl", "name": "dag.task"},
    }
    lineage.ingest([render(child)])
    assert lineage.trace("a").complete


# Columns whose lineage no event contains


def unknown_columns(answer):
    return [spot.message for spot in answer.blind_spots if spot.kind == "no_column_lineage"]


def test_lineage_that_names_only_datasets_is_a_blind_spot_of_a_column(lineage):
    lineage.ingest(
        [
            run_event("j", [], ["x"], lineage=lineage_of(feeds("x", "a"))),
            dataset_event("a", schema=schema("id")),
            dataset_event("x", schema=schema("id")),
        ]
    )
    expected = ["writes dataset:db:x, but the columns that it uses are unknown"]
    assert unknown_columns(lineage.trace("a.id")) == expected
    assert unknown_columns(lineage.trace("x.id", "upstream")) == expected


def test_so_is_a_dataset_that_names_only_the_datasets_it_is_derived_from(lineage):
    facet = {"inputs": feeds("x", "a")["inputs"]}
    lineage.ingest([dataset_event("x", lineage=facet, schema=schema("id"))])
    lineage.ingest([dataset_event("a", schema=schema("id"))])
    for answer in (lineage.trace("x.id", "upstream"), lineage.trace("a.id")):
        assert spots(answer) == [("no_column_lineage", "dataset:db:x")]


def test_an_empty_column_lineage_facet_is_a_blind_spot(lineage):
    lineage.ingest(
        [
            run_event("j", ["a"], [dataset("x", columnLineage=column_lineage())]),
            run_event(
                "k", ["a"], [dataset("y", columnLineage=column_lineage(id=[copied("a.id")]))]
            ),
        ]
    )
    assert unknown_columns(lineage.trace("a.id")) == [
        "writes dataset:db:x, but the columns that it uses are unknown"
    ]


def test_a_job_that_feeds_a_dataset_from_elsewhere_is_no_blind_spot(lineage):
    spelled_out = lineage_of(feeds("x", "b"))
    lineage.ingest([run_event("j", ["a", "b"], ["x"], lineage=spelled_out)])
    lineage.ingest([dataset_event("a", schema=schema("id"))])
    assert lineage.trace("a.id").complete


def test_column_lineage_stated_under_another_name_is_known(lineage):
    reported = dataset(
        "path", symlinks=symlinks("x"), columnLineage=column_lineage(id=[copied("a.id")])
    )
    lineage.ingest([run_event("j", [], [reported]), run_event("j", [], ["x"], day=2)])
    assert lineage.trace("x.id", "upstream").complete


def test_column_lineage_stated_by_a_dataset_applies_to_its_writers(lineage):
    lineage.ingest([run_event("j", ["a"], [dataset("x", schema=schema("id"))])])
    assert len(unknown_columns(lineage.trace("x.id", "upstream"))) == 1
    lineage.ingest([dataset_event("x", columnLineage=column_lineage(id=[copied("a.id")]))])
    assert lineage.trace("x.id", "upstream").complete


def test_column_lineage_stated_later_is_unknown_at_earlier_moments(lineage):
    reported = dataset("x", columnLineage=column_lineage(id=[copied("a.id")]))
    lineage.ingest([run_event("j", ["a"], ["x"], day=1), run_event("j", ["a"], [reported], day=5)])
    assert lineage.trace("a.id").complete
    answer = lineage.trace("a.id", as_of=moment(3))
    assert (len(answer.nodes), len(unknown_columns(answer))) == (1, 1)


def test_many_blind_spots_of_a_kind_are_summed_up(lineage):
    lineage.ingest([dataset_event("a", schema=schema("id"))])
    lineage.ingest([run_event(f"j{n}", ["a"], [f"x{n}"]) for n in range(70)])
    answer = lineage.trace("a.id")
    assert len(answer.blind_spots) == 51
    assert answer.blind_spots[-1].message == "and 20 more of this kind"


# Evidence


def test_equal_column_lineage_of_several_runs_is_one_edge(lineage):
    def reported(day, *more):
        facet = column_lineage(id=[copied("a.id")], **{field: [copied("a.id")] for field in more})
        return run_event("j", [], [dataset("x", columnLineage=facet)], day=day, run=f"run-{day}")

    lineage.ingest([reported(3), reported(1, "old"), reported(9, "new")])
    edges = [edge for edge in lineage.trace("a.id").edges if edge.target == "column:db:x:id"]
    assert [(edge.first_seen[:10], edge.last_seen[:10]) for edge in edges] == [
        ("2026-01-01", "2026-01-09")
    ]


def test_an_edge_has_the_description_of_the_last_run(lineage):
    def reported(day, description, masking):
        how = {"type": "DIRECT", "subtype": "TRANSFORMATION", "description": description}
        source = copied("a.id") | {"transformations": [{**how, "masking": masking}]}
        return run_event(
            "j", [], [dataset("x", columnLineage=column_lineage(id=[source]))], day=day
        )

    lineage.ingest([reported(2, "sha256", True), reported(1, "upper", False)])
    (edge,) = lineage.trace("a.id").edges
    assert (edge.description, edge.masking, edge.subtype) == ("sha256", True, "TRANSFORMATION")


def test_a_column_edge_its_job_no_longer_shows_is_stale(lineage):
    def reported(day, **fields):
        return run_event("j", [], [dataset("x", columnLineage=column_lineage(**fields))], day=day)

    lineage.ingest([reported(1, id=[copied("a.old")]), reported(60, id=[copied("a.new")])])
    assert [edge.status for edge in lineage.trace("a.old").edges] == ["stale"]
    assert spots(lineage.trace("a.old")) == [("stale_edge", "column:db:a:old")]
    assert lineage.trace("a.new").complete


def test_what_a_dataset_declares_of_itself_is_declared_not_observed(lineage):
    lineage.ingest([dataset_event("x", columnLineage=copy_of("a"))])
    (edge,) = lineage.trace("a").edges
    assert (edge.kind, edge.confidence, edge.job) == ("derives", "declared", None)
