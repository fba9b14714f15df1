"""Several names of one dataset: which are joined, which is shown, and which are separated again."""

from __future__ import annotations

import itertools

import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    dataset_event,
    renamed_from,
    run_event,
    symlinks,
)

pytestmark = pytest.mark.usefixtures("walks")


def names_of(lineage, entity):
    """The displayed name, then the others."""
    root = lineage.trace(entity).root
    return [root.name, *(alias.removeprefix("dataset:db:") for alias in root.aliases)]


def symlinked(name, *others, day=1):
    return dataset_event(name, day=day, symlinks=symlinks(*others))


def renamed(old, new, day):
    return dataset_event(new, day=day, lifecycleStateChange=renamed_from(old))


def test_a_table_name_is_canonical_over_the_path_of_the_table(lineage):
    lineage.ingest([symlinked("a/path", "sales")])
    assert names_of(lineage, "a/path") == ["sales", "a/path"]


EVENTS = (
    symlinked("path", "table"),
    symlinked("copy", "table"),
    renamed("older", "table", day=2),
    run_event("j", ["older"], ["report"]),
)


@pytest.mark.parametrize("order", list(itertools.permutations(EVENTS)))
def test_names_are_joined_in_any_order_of_arrival(lineage, order):
    for event in order:
        lineage.ingest([event])
        with lineage.session.reading():
            pass  # the index is refreshed after each event
    assert names_of(lineage, "path") == ["table", "copy", "older", "path"]
    assert "report" in [node.name for node in lineage.trace("copy").nodes]


def test_an_empty_symlinks_facet_removes_all_aliases(lineage):
    lineage.ingest([symlinked("path", "table", day=1)])
    assert names_of(lineage, "path") == ["table", "path"]
    lineage.ingest([symlinked("path", day=2)])
    assert names_of(lineage, "path") == ["path"]
    assert names_of(lineage, "table") == ["table"]


def test_a_symlinks_facet_that_is_sent_again_changes_nothing(lineage):
    for day in (1, 2, 3):
        lineage.ingest([symlinked("path", "table", "view", day=day)])
        assert names_of(lineage, "path") == ["table", "path", "view"]


def test_a_late_symlinks_facet_does_not_undo_a_newer_one(lineage):
    lineage.ingest([symlinked("path", "new", day=5)])
    lineage.ingest([symlinked("path", "old", day=1)])
    assert names_of(lineage, "path") == ["new", "path"]
    assert names_of(lineage, "old") == ["old"]


def test_separating_one_name_keeps_the_others_joined(lineage):
    lineage.ingest([symlinked("p1", "table"), symlinked("p2", "table"), symlinked("p3", "table")])
    lineage.ingest([symlinked("p2", "other", day=2)])
    assert names_of(lineage, "table") == ["table", "p1", "p3"]
    assert names_of(lineage, "p2") == ["other", "p2"]


def test_the_newest_name_of_a_renamed_table_is_canonical(lineage):
    lineage.ingest([renamed("v1", "v2", day=1), renamed("v2", "v3", day=2)])
    assert names_of(lineage, "v1") == ["v3", "v1", "v2"]


def test_a_table_renamed_and_renamed_back_has_its_first_name(lineage):
    lineage.ingest([renamed("a", "b", day=1), renamed("b", "a", day=2)])
    assert names_of(lineage, "b") == ["a", "b"]


@pytest.mark.parametrize("backup", ["x__backup", "a_backup"])
def test_swapping_a_table_for_its_new_contents_keeps_its_name(lineage, backup):
    for day in (1, 2):
        lineage.ingest([renamed("x", backup, day=day * 10), renamed("tmp", "x", day=day * 10 + 1)])
        assert names_of(lineage, "x")[0] == "x"
        assert sorted(names_of(lineage, "tmp")) == sorted(["x", backup, "tmp"])


def test_a_reader_under_one_name_and_a_writer_under_another_are_joined(lineage):
    lineage.ingest([run_event("w", ["a"], [dataset("path", symlinks=symlinks("table"))])])
    lineage.ingest([run_event("r", ["table"], ["b"])])
    answer = lineage.trace("a")
    assert {node.name: node.depth for node in answer.nodes} == {
        "a": 0, "w": 1, "table": 1, "r": 2, "b": 2,
    }  # fmt: skip
    assert [edge.target for edge in answer.edges if edge.source == "job:etl:w"] == [
        "dataset:db:table"
    ]


def test_an_edge_seen_under_two_names_is_one_edge_over_both_their_times(lineage):
    lineage.ingest(
        [
            symlinked("path", "table"),
            run_event("r", ["path"], day=2),
            run_event("r", ["table"], day=9),
        ]
    )
    (edge,) = lineage.trace("table").edges
    assert (edge.source, edge.first_seen[:10], edge.last_seen[:10]) == (
        "dataset:db:table",
        "2026-01-02",
        "2026-01-09",
    )


def test_columns_of_one_table_under_two_names_are_the_same_columns(lineage):
    lineage.ingest(
        [
            symlinked("path", "table"),
            run_event("w", [], [dataset("path", columnLineage=column_lineage(x=[copied("a.x")]))]),
            run_event("r", [], [dataset("b", columnLineage=column_lineage(y=[copied("table.x")]))]),
        ]
    )
    assert [(node.name, node.field, node.depth) for node in lineage.trace("a.x").nodes] == [
        ("a", "x", 0),
        ("table", "x", 1),
        ("b", "y", 2),
    ]
    assert lineage.trace("path.x").root == lineage.trace("table.x").root


def test_a_table_of_very_many_paths_is_one_table(lineage):
    lineage.ingest([symlinked(f"day={number:04d}", "table") for number in range(300)])
    lineage.ingest([run_event("r", ["table"], ["b"])])
    assert len(lineage.trace("day=0123").root.aliases) == 300
    assert [node.name for node in lineage.trace("day=0299").nodes] == ["table", "b", "r"]


def as_of(lineage, entity, day):
    root = lineage.trace(entity, as_of=f"2026-01-{day:02}T23:00:00Z").root
    return [root.name, *(alias.removeprefix("dataset:db:") for alias in root.aliases)]


PAST = (
    symlinked("path", "old", day=2),
    renamed("a", "b", 3),
    symlinked("path", "new", day=4),
    renamed("b", "a", 6),
    symlinked("path", "new", day=8),
    symlinked("path", day=9),
)


@pytest.mark.parametrize("order", [PAST, PAST[::-1], PAST[3:] + PAST[:3]])
def test_names_at_a_moment_are_those_that_the_events_until_then_gave(lineage, order):
    for event in (dataset_event("path"), dataset_event("a"), dataset_event("b"), *order):
        lineage.ingest([event])
    expected = {1: ["path"], 2: ["old", "path"], 5: ["new", "path"], 8: ["new", "path"]}
    assert {day: as_of(lineage, "path", day) for day in expected} == expected
    assert as_of(lineage, "path", 9) == names_of(lineage, "path") == ["path"]
    renames = {1: ["a"], 3: ["b", "a"], 5: ["b", "a"], 6: ["a", "b"]}
    assert {day: as_of(lineage, "a", day) for day in renames} == renames


def test_the_names_at_a_moment_follow_events_that_arrive_later(lineage):
    lineage.ingest([symlinked("path", "table", day=5)])
    assert as_of(lineage, "path", 3) == as_of(lineage, "path", 3) == ["path"]
    lineage.ingest([symlinked("path", "early", day=2)])
    assert as_of(lineage, "path", 3) == ["early", "path"]
    assert as_of(lineage, "path", 1) == ["path"]


def test_a_statement_about_names_holds_from_its_time_on(lineage):
    lineage.ingest([symlinked("path", "table", day=2), symlinked("copy", "table", day=7)])
    assert as_of(lineage, "table", 1) == ["table"]
    assert as_of(lineage, "table", 5) == ["table", "path"]
    assert as_of(lineage, "table", 7) == ["table", "copy", "path"]
