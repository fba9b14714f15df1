"""Jobs that report single statements of a task are shown as the task, and it lists them."""

from __future__ import annotations

import pytest
from tests.openlineage import DATABASE, JOBS, Json, dataset, encode, run_event

from downriver.service import Lineage
from downriver.service.views.graph_view import GraphParts

TASK, FIRST, SECOND = (f"job:{JOBS}:dag.load{end}" for end in ("", ".query.1", ".query.2"))
LATER = "2026-01-02T12:00:00Z"


def table(name: str) -> str:
    return f"dataset:{DATABASE}:{name}"


def statement(number: int, source: str, target: str, *, parent: str = "dag.load") -> Json:
    parent_facet = {"run": {"runId": "r"}, "job": {"namespace": JOBS, "name": parent}}
    return run_event(
        f"dag.load.query.{number}",
        f"q{number}",
        at=LATER,
        inputs=[dataset(source)],
        outputs=[dataset(target)],
        run_facets={"parent": parent_facet},
    )


def task(**datasets: list[Json]) -> Json:
    return run_event("dag.load", "r", **datasets)


def store(lineage: Lineage, *events: Json) -> None:
    lineage.session.ingest([encode(event) for event in events])


@pytest.fixture
def lineage(tmp_path):
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def queries(lineage):
    everything = {"inputs": [dataset("a")], "outputs": [dataset("b"), dataset("c")]}
    store(lineage, statement(1, "a", "b"), statement(2, "b", "c"), task(**everything))
    return lineage


def test_a_task_stands_for_its_statements_and_lists_them(queries):
    found = queries.trace(table("a"))
    jobs = {node.id: node.statements for node in found.nodes if node.kind == "job"}
    assert jobs == {TASK: [FIRST, SECOND]}
    edges = sorted((edge.source, edge.target) for edge in found.edges)
    assert edges == [(table(t), TASK) for t in "ab"] + [(TASK, table(t)) for t in "bc"]


def test_an_edge_has_the_evidence_of_the_task_and_of_its_statements(queries):
    (read,) = [edge for edge in queries.trace(table("a")).edges if edge.source == table("a")]
    assert (read.first_seen, read.last_seen) == ("2026-01-01T12:00:00Z", LATER)


def test_an_option_shows_them_apart(queries):
    found = queries.trace(table("a"), statements=True)
    assert {node.id for node in found.nodes if node.kind == "job"} == {TASK, FIRST, SECOND}
    assert not any(node.statements for node in found.nodes)


def test_a_task_without_datasets_of_its_own_is_shown(lineage):
    store(lineage, statement(1, "a", "b"), task())
    assert {node.id for node in lineage.trace(table("a")).nodes} == {table("a"), TASK, table("b")}


@pytest.mark.parametrize("own", [{}, {"inputs": [dataset("a")]}], ids=["bare", "with-input"])
def test_a_trace_of_the_task_follows_its_statements(lineage, own):
    store(lineage, statement(1, "a", "b"), statement(2, "b", "c"), task(**own))
    found = lineage.trace(TASK, "both")
    assert {node.id for node in found.nodes} == {TASK, *map(table, "abc")}
    assert found.root.statements == [FIRST, SECOND]
    edges = sorted((edge.source, edge.target) for edge in found.edges)
    assert edges == [(table(t), TASK) for t in "ab"] + [(TASK, table(t)) for t in "bc"]
    assert not found.blind_spots
    upstream = {node.id for node in lineage.trace(TASK, "upstream").nodes}
    assert upstream == {TASK, table("a"), table("b")}
    graph = lineage.graph(TASK)
    assert {node.id for node in graph.nodes} == {TASK, *map(table, "abc")}
    assert graph.total == 4


def test_a_trace_of_the_task_ends_at_its_depth(lineage):
    after = run_event("later", inputs=[dataset("c")], outputs=[dataset("d")])
    store(lineage, statement(1, "a", "b"), statement(2, "b", "c"), task(), after)
    found = lineage.trace(TASK, "downstream", depth=1)
    assert {node.id for node in found.nodes} == {TASK, table("b"), table("c")}
    assert [spot.kind for spot in found.blind_spots] == ["depth_limit"]


def test_a_trace_of_an_earlier_moment_has_no_later_statements(lineage):
    store(lineage, statement(1, "a", "b"), task())
    found = lineage.trace(TASK, "both", as_of="2026-01-01T18:00:00Z")
    assert [node.id for node in found.nodes] == [TASK]
    assert not found.root.statements


def test_a_statement_that_is_asked_for_is_shown(queries):
    assert queries.trace(FIRST).root.id == FIRST


@pytest.mark.parametrize("parent", ["dag", "other.load"])
def test_a_name_alone_makes_no_statement(lineage, parent):
    store(lineage, statement(1, "a", "b", parent=parent), task(inputs=[dataset("a")]))
    assert FIRST in {node.id for node in lineage.trace(table("a")).nodes}


def test_the_graph_joins_them_unless_statements_are_included(queries):
    joined = queries.graph(table("a"), depth=None)
    jobs = {node.id: node.statements for node in joined.nodes if node.kind == "job"}
    assert jobs == {TASK: [FIRST, SECOND]}
    apart = queries.graph(table("a"), depth=None, include=GraphParts(statements=True))
    assert {FIRST, SECOND} < {node.id for node in apart.nodes}


def test_kpis_count_the_task_once(queries):
    assert queries.govern.kpis().jobs == 1
