"""Properties of answers: names, completeness, identity, freshness, paths."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from downriver.errors import AmbiguousNameError, EntityNotFoundError, InvalidRequestError
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

DB = "postgres://db:5432"


def run(
    job: str,
    inputs: list[str],
    outputs: list[str],
    day: int = 1,
    facets: dict[str, Any] | None = None,
    namespace: str = DB,
) -> bytes:
    """Return a run of a job; `facets` are those of every output."""
    return json.dumps(
        {
            "eventTime": f"2026-01-{day:02d}T00:00:00Z" if day <= 31 else "2026-06-01T00:00:00Z",
            "eventType": "COMPLETE",
            "run": {"runId": f"{job}-{day}"},
            "job": {"namespace": "etl", "name": job},
            "inputs": [{"namespace": namespace, "name": name} for name in inputs],
            "outputs": [
                {"namespace": namespace, "name": name, "facets": facets or {}} for name in outputs
            ],
        }
    ).encode()


def derives(**fields: str) -> dict[str, Any]:
    """Return a columnLineage facet: output field = "dataset.field", copied."""
    return {
        "columnLineage": {
            "fields": {
                target: {
                    "inputFields": [
                        {
                            "namespace": DB,
                            "name": source.rpartition(".")[0],
                            "field": source.rpartition(".")[2],
                            "transformations": [{"type": "DIRECT", "subtype": "IDENTITY"}],
                        }
                    ]
                }
                for target, source in fields.items()
            }
        }
    }


def symlinks(*names: str) -> dict[str, Any]:
    return {
        "symlinks": {
            "identifiers": [{"namespace": "hive", "name": n, "type": "TABLE"} for n in names]
        }
    }


def renamed_from(old: str) -> dict[str, Any]:
    previous = {"namespace": DB, "name": old}
    change = {"lifecycleStateChange": "RENAME", "previousIdentifier": previous}
    return {"lifecycleStateChange": change}


def names(lineage: Lineage, entity: str, direction: str = "downstream", **more: Any) -> list[str]:
    return sorted(node.name for node in lineage.trace(entity, direction, **more).nodes)


# Names


@pytest.mark.parametrize(
    "written",
    [
        "wh.public.orders",
        "orders",
        "ORDERS",
        "public.orders",
        "table:orders",
        "dataset:wh.public.orders",
        f"dataset:{DB}:wh.public.orders",
        f"{DB}/wh.public.orders",
    ],
)
def test_what_people_write_finds_the_dataset(lineage: Lineage, written: str) -> None:
    lineage.ingest([run("load", ["wh.public.orders"], [])])
    assert lineage.trace(written).root.id == f"dataset:{DB}:wh.public.orders"


@pytest.mark.parametrize(
    "written",
    ["orders.amount", "orders.AMOUNT", f"column:{DB}:wh.orders:amount", "column:wh.orders.amount"],
)
def test_what_people_write_finds_the_column(lineage: Lineage, written: str) -> None:
    lineage.ingest([run("load", ["raw"], ["wh.orders"], facets=derives(amount="raw.cents"))])
    assert lineage.trace(written).root.id == f"column:{DB}:wh.orders:amount"


def test_a_nested_column_is_named_by_its_path(lineage: Lineage) -> None:
    inner = {"name": "city", "type": "text"}
    schema = {"schema": {"fields": [{"name": "address", "type": "struct", "fields": [inner]}]}}
    lineage.ingest([run("load", [], ["wh.orders"], facets=schema)])
    assert lineage.trace("orders.address.city").root.field == "address.city"


def test_a_path_and_a_seeds_url_name_datasets(lineage: Lineage) -> None:
    lineage.ingest([run("load", ["raw/orders"], [], namespace="s3://lake")])
    lineage.ingest([run("load2", ["public.customers"], [], namespace="snowflake")])
    assert lineage.trace("s3://lake/raw/orders").root.name == "raw/orders"
    assert lineage.trace("snowflake://public.customers").root.name == "public.customers"


def test_an_unknown_name_is_an_error_with_near_ones_never_an_empty_answer(lineage: Lineage) -> None:
    lineage.ingest(
        [run("load", ["wh.orders"], ["wh.customers"], facets=derives(email="wh.orders.mail"))]
    )
    with pytest.raises(EntityNotFoundError) as unknown:
        lineage.trace("wh.ordes")
    assert unknown.value.near[0] == "wh.orders"
    with pytest.raises(EntityNotFoundError) as column:
        lineage.trace("customers.emial")
    assert column.value.near == ["wh.customers.email"]


def test_an_ambiguous_name_is_refused_and_lists_what_it_could_be(lineage: Lineage) -> None:
    lineage.ingest([run("load", ["raw.orders"], ["mart.orders"])])
    with pytest.raises(AmbiguousNameError) as ambiguous:
        lineage.trace("orders")
    assert ambiguous.value.candidates == [f"dataset:{DB}:mart.orders", f"dataset:{DB}:raw.orders"]


def test_a_name_of_a_dataset_and_its_job_means_the_data(lineage: Lineage) -> None:
    lineage.ingest([run("mart.orders", ["raw"], ["mart.orders"])])
    assert lineage.trace("mart.orders").root.kind == "dataset"
    assert lineage.trace("job:mart.orders").root.kind == "job"


# Completeness


@pytest.mark.parametrize("direction", ["downstream", "both"])
def test_a_depth_limit_ends_the_walk_and_counts_what_is_one_step_further(
    lineage: Lineage, direction: str
) -> None:
    lineage.ingest([run("j1", ["a"], ["b"]), run("j2", ["b"], ["c", "d"]), run("j3", ["d"], ["e"])])
    answer = lineage.trace("a", direction, depth=1)
    assert sorted(node.name for node in answer.nodes) == ["a", "b", "j1"]
    assert (answer.complete, answer.omitted_count) == (False, 3)  # j2, c and d
    assert answer.blind_spots[0].kind == "depth_limit"
    assert lineage.trace("a").complete


def test_a_node_limit_reports_the_number_of_omitted_nodes(lineage: Lineage) -> None:
    lineage.ingest([run("j", ["a"], [f"b{n}" for n in range(10)])])
    answer = lineage.trace("a", limit=4)
    assert (len(answer.nodes), answer.omitted_count) == (4, 8)
    assert "node_limit" in [spot.kind for spot in answer.blind_spots]


def test_a_job_without_named_inputs_is_a_blind_spot_upstream(lineage: Lineage) -> None:
    lineage.ingest([run("extract", [], ["a"]), run("j", ["a"], ["b"])])
    answer = lineage.trace("b", "upstream")
    assert [(s.kind, s.entity) for s in answer.blind_spots] == [
        ("job_without_inputs", "job:etl:extract")
    ]
    assert lineage.trace("a").complete


def test_a_job_without_column_lineage_is_a_blind_spot_of_a_column_trace(lineage: Lineage) -> None:
    lineage.ingest([run("j1", ["a"], ["b"], facets=derives(x="a.x")), run("j2", ["b"], ["c"])])
    answer = lineage.trace("a.x")
    assert [node.id for node in answer.nodes][1:] == [f"column:{DB}:b:x"]
    assert [(s.kind, s.entity) for s in answer.blind_spots] == [("no_column_lineage", "job:etl:j2")]


def test_a_job_that_loads_data_of_its_code_needs_no_column_lineage(lineage: Lineage) -> None:
    seed = json.loads(run("seed", [], ["a"]))
    kind = {"processingType": "BATCH", "integration": "SPARK", "jobType": "SEED"}
    seed["job"]["facets"] = {"jobType": kind}
    made = run("j", ["a"], ["b"], facets=derives(x="a.x"))
    lineage.ingest([json.dumps(seed).encode(), made])
    assert lineage.trace("b.x", "upstream").complete


def test_a_dag_that_only_runs_tasks_names_them_instead_of_answering_nothing(
    lineage: Lineage,
) -> None:
    task = json.loads(run("daily.load", ["a"], ["b"]))
    parent = {"run": {"runId": "p"}, "job": {"namespace": "etl", "name": "daily"}}
    task["run"]["facets"] = {"parent": parent}
    lineage.ingest([json.dumps(task).encode()])
    answer = lineage.trace("dag:daily")
    assert (answer.complete, [spot.kind for spot in answer.blind_spots]) == (False, ["child_jobs"])
    assert "job:etl:daily.load" in answer.blind_spots[0].message


def test_an_edge_its_job_has_long_not_shown_is_stale(lineage: Lineage) -> None:
    lineage.ingest([run("j", ["old"], ["b"], day=1), run("j", ["new"], ["b"], day=99)])
    answer = lineage.trace("old")
    assert [e.status for e in answer.edges if e.kind == "reads"] == ["stale"]
    assert "stale_edge" in [spot.kind for spot in answer.blind_spots]
    assert lineage.trace("new").complete


def test_every_edge_carries_its_evidence(lineage: Lineage) -> None:
    first, last = run("j", ["a"], ["b"], day=1), run("j", ["a"], ["b"], day=5)
    lineage.ingest([last, first])
    edge = lineage.trace("a").edges[0]
    assert (edge.first_seen, edge.last_seen) == ("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")
    assert edge.confidence == "exact"
    with lineage.store.reader() as reader:
        assert reader.log.find_event(bytes.fromhex(edge.first_event)) == first
        assert reader.log.find_event(bytes.fromhex(edge.last_event)) == last


def test_cycles_diamonds_and_self_loops_are_counted_once(lineage: Lineage) -> None:
    lineage.ingest(
        [run("j1", ["a"], ["b", "c"]), run("j2", ["b", "c"], ["d"]), run("j3", ["d"], ["a", "d"])]
    )
    answer = lineage.trace("a", "both")
    assert sorted(node.name for node in answer.nodes) == ["a", "b", "c", "d", "j1", "j2", "j3"]
    assert len({(e.source, e.target) for e in answer.edges}) == len(answer.edges) == 9


def test_an_answer_can_be_asked_as_of_a_time(lineage: Lineage) -> None:
    lineage.ingest([run("j1", ["a"], ["b"], day=1), run("j2", ["b"], ["c"], day=10)])
    assert names(lineage, "a", as_of="2026-01-05T00:00:00Z") == ["a", "b", "j1"]
    assert names(lineage, "a", as_of="2026-01-10T00:00:00") == ["a", "b", "c", "j1", "j2"]
    with pytest.raises(InvalidRequestError):
        lineage.trace("a", as_of="whenever")


# One dataset with several names


@pytest.mark.parametrize("turned", [False, True])
def test_a_path_and_its_table_are_one_whichever_comes_first(lineage: Lineage, turned: bool) -> None:
    events = [
        run("spark", ["a"], ["/wh/orders"], facets=symlinks("sales.orders")),
        run("hive", ["sales.orders"], ["report"], namespace="hive"),
    ]
    for event in reversed(events) if turned else events:
        lineage.ingest([event])
    answer = lineage.trace("a")
    orders = next(node for node in answer.nodes if node.name == "sales.orders")
    assert orders.aliases == [f"dataset:{DB}:/wh/orders"]
    assert "report" in [node.name for node in answer.nodes]
    assert lineage.trace("/wh/orders").root.id == lineage.trace("sales.orders").root.id


def test_a_path_reused_for_another_table_is_no_longer_an_alias_of_the_first(
    lineage: Lineage,
) -> None:
    lineage.ingest(
        [
            run("old_reader", ["t1"], ["old_report"], namespace="hive"),
            run("new_reader", ["t2"], ["new_report"], namespace="hive"),
            run("w", ["a"], ["/tmp/x"], day=1, facets=symlinks("t1")),
        ]
    )
    assert "old_report" in names(lineage, "a")
    lineage.ingest([run("w", ["a"], ["/tmp/x"], day=2, facets=symlinks("t2"))])
    assert "new_report" in names(lineage, "a")
    assert "old_report" not in names(lineage, "a")


def test_a_renamed_table_keeps_its_history_under_the_new_name(lineage: Lineage) -> None:
    lineage.ingest(
        [
            run("load", ["a"], ["orders"], day=1),
            run("report", ["orders"], ["kpi"], day=1),
            run("rename", [], ["orders_v2"], day=2, facets=renamed_from("orders")),
        ]
    )
    answer = lineage.trace("a")
    assert "orders_v2" in [node.name for node in answer.nodes]
    assert "kpi" in [node.name for node in answer.nodes]


# Freshness


def test_what_another_process_writes_is_seen_at_once(lineage: Lineage) -> None:
    lineage.ingest([run("j1", ["a"], ["b"])])
    assert names(lineage, "a") == ["a", "b", "j1"]
    event = run("j2", ["b"], ["c"]).decode()
    subprocess.run(
        [sys.executable, "-m", "downriver", "ingest", "-", "--store", lineage.store.url],
        input=event,
        text=True,
        check=True,
        capture_output=True,
    )
    assert names(lineage, "a") == ["a", "b", "c", "j1", "j2"]


def test_a_rebuild_elsewhere_changes_no_answer(lineage: Lineage, tmp_path: Path) -> None:
    facets = derives(x="a.x")
    lineage.ingest([run("j1", ["a"], ["b"], facets=facets), run("j2", ["b"], ["c"])])
    before = lineage.trace("a"), lineage.trace("a.x")
    with Lineage.open(lineage.store.url) as other:
        other.admin.rebuild()
        other.ingest([run("j3", ["c"], ["d"])])
    assert lineage.trace("a.x") == before[1]
    assert names(lineage, "a") == sorted([*(n.name for n in before[0].nodes), "d", "j3"])


# Paths


def test_paths_are_found_shortest_first_and_both_sides_of_a_diamond(lineage: Lineage) -> None:
    lineage.ingest(
        [
            run("j1", ["a"], ["b", "c"]),
            run("j2", ["b"], ["d"]),
            run("j3", ["c"], ["x"]),
            run("j4", ["x"], ["d"]),
        ]
    )
    found = lineage.trace.paths("a", "d")
    assert [[node.rpartition(":")[2] for node in path] for path in found.paths] == [
        ["a", "j1", "b", "j2", "d"],
        ["a", "j1", "c", "j3", "x", "j4", "d"],
    ]
    assert found.complete


def test_no_path_is_an_empty_answer_and_a_truncated_answer_is_marked(lineage: Lineage) -> None:
    lineage.ingest([run("j1", ["a"], ["b"]), run("j2", ["a"], ["b"])])
    assert (lineage.trace.paths("b", "a").paths, lineage.trace.paths("b", "a").complete) == (
        [],
        True,
    )
    cut = lineage.trace.paths("a", "b", limit=1)
    assert (len(cut.paths), cut.complete, cut.blind_spots[0].kind) == (1, False, "path_limit")


def test_a_path_joins_two_columns_or_two_nodes(lineage: Lineage) -> None:
    lineage.ingest([run("j", ["a"], ["b"], facets=derives(x="a.x"))])
    assert lineage.trace.paths("a.x", "b.x").paths == [[f"column:{DB}:a:x", f"column:{DB}:b:x"]]
    with pytest.raises(InvalidRequestError):
        lineage.trace.paths("a.x", "b")
