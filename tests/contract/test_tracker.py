"""Trackers on a store, a server and in memory give the same answers."""

from __future__ import annotations

import asyncio
import inspect
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from downriver import ColumnLineage
from downriver.errors import (
    AmbiguousNameError,
    EntityNotFoundError,
    InvalidRequestError,
)
from downriver.sdk import SyncTracker, Tracker

STEPS = [
    {"source_id": "api:crm", "target_id": "table:raw_customers", "transformation": "pull"},
    {
        "source_id": "table:raw_customers",
        "target_id": "table:customers_clean",
        "transformation": "clean and deduplicate",
    },
    {"source_id": "table:customers_clean", "target_id": "table:customer_360"},
    {"source_id": "table:nps_scores", "target_id": "table:customer_360"},
    {"source_id": "table:customer_360", "target_id": "model:churn_v3", "flow_type": "streaming"},
]


@pytest.fixture
def pipeline(tracker):
    tracker.sync.register_pipeline("Customer 360", STEPS, schedule="0 6 * * *")
    return tracker.sync


def ids(related):
    return [entity["entity_id"] for entity in related]


def test_a_registered_flow_has_the_public_keys(tracker):
    done = tracker.sync.register_flow(
        "table:raw_orders", "table:orders", transformation="clean", metadata={"owner": "data"}
    )
    assert done["source_id"] == "table:raw_orders"
    assert done["target_id"] == "table:orders"
    assert done["flow_id"].startswith("flow:")
    assert tracker.sync.get_entity("table:orders")["flows"][0]["metadata"] == {"owner": "data"}


def test_async_and_sync_are_the_same_tracker(tracker):
    async def register():
        await tracker.register_flow("table:a", "table:b")
        return await tracker.trace_downstream("table:a")

    assert ids(asyncio.run(register())["downstream_consumers"]) == ["table:b"]
    assert ids(tracker.sync.trace_downstream("table:a")["downstream_consumers"]) == ["table:b"]


def test_every_method_awaits_with_the_same_signature():
    for name, method in inspect.getmembers(SyncTracker, inspect.isfunction):
        if not name.startswith("_") and name not in ("track", "start_flow", "mlflow"):
            twin = getattr(Tracker, name)
            assert inspect.signature(twin) == inspect.signature(method), name
            assert inspect.iscoroutinefunction(twin), name


def test_a_pipeline_registers_every_step(tracker):
    done = tracker.sync.register_pipeline("Customer 360", STEPS, schedule="0 6 * * *")
    assert (done["pipeline_name"], done["steps_registered"]) == ("Customer 360", 5)
    assert tracker.sync.get_entity("pipeline:Customer 360")["type"] == "pipeline"
    assert tracker.sync.get_entity("customer_360").flows[0].schedule == "0 6 * * *"


def test_upstream_goes_back_to_the_sources(pipeline):
    found = pipeline.trace_upstream("table:customer_360")
    assert ids(found["upstream_sources"]) == [
        "table:customers_clean",
        "table:nps_scores",
        "table:raw_customers",
        "api:crm",
    ]
    assert found["count"] == 4
    assert found["complete"] is True


def test_downstream_has_the_transformation_of_each_step(pipeline):
    found = pipeline.trace_downstream("table:raw_customers", max_depth=1)
    (only,) = found["downstream_consumers"]
    assert only["transformation"] == "clean and deduplicate"
    assert only["depth"] == 1
    assert found["complete"] is False
    assert found["blind_spots"][0]["kind"] == "depth_limit"


def test_an_empty_schedule_is_none(tracker):
    tracker.sync.register_flow("table:a", "table:b", schedule="")
    (found,) = tracker.sync.trace_downstream("table:a")["downstream_consumers"]
    assert found["schedule"] is None


def test_both_sides_at_once(pipeline):
    found = pipeline.trace_lineage("table:customers_clean")
    assert (found["upstream_count"], found["downstream_count"]) == (2, 2)
    assert ids(found["lineage"]["upstream"]) == ["table:raw_customers", "api:crm"]
    assert ids(found["lineage"]["downstream"]) == ["table:customer_360", "model:churn_v3"]


def test_an_unknown_entity_is_an_error_with_near_matches(pipeline):
    with pytest.raises(EntityNotFoundError) as caught:
        pipeline.trace_downstream("table:raw_customer")
    assert caught.value.near[0] == "raw_customers"


def test_an_api_and_a_table_of_the_same_name_are_different(tracker):
    tracker.sync.register_flow("api:orders", "table:orders")
    tracker.sync.register_flow("table:orders", "model:orders")
    assert ids(tracker.sync.trace_downstream("api:orders")["downstream_consumers"]) == [
        "table:orders",
        "model:orders",
    ]
    with pytest.raises(AmbiguousNameError):
        tracker.sync.trace_downstream("orders")


def test_names_of_a_flow_are_resolved_in_the_catalog(tracker):
    tracker.sync.capture_sql_lineage("INSERT INTO sales.orders SELECT id FROM raw.orders")
    tracker.sync.register_flow("table:sales.orders", "dashboard:revenue")
    tracker.sync.register_flow("table:raw.orders", "dag:audit")
    assert ids(tracker.sync.trace_downstream("raw.orders")["downstream_consumers"]) == [
        "table:sales.orders",
        "job:default:audit",
        "dashboard:revenue",
    ]


def test_jobs_may_be_the_ends_of_flows(tracker):
    tracker.sync.register_flow("dag:extract", "table:raw")
    tracker.sync.register_flow("table:raw", "dag:report")
    tracker.sync.register_flow("dag:report", "dag:mail")
    assert ids(tracker.sync.trace_upstream("dag:report")["upstream_sources"]) == [
        "table:raw",
        "job:default:extract",
    ]


@pytest.mark.parametrize(
    ("source", "target", "field"),
    [("", "table:b", "source_id"), ("table:a", "table:", "target_id"), ("a", "a", "target_id")],
)
def test_an_invalid_flow_is_refused(tracker, source, target, field):
    with pytest.raises(InvalidRequestError) as caught:
        tracker.sync.register_flow(source, target)
    assert caught.value.field == field


def test_a_step_with_an_unknown_field_is_refused(tracker):
    with pytest.raises(InvalidRequestError, match="color"):
        tracker.sync.register_flows([{"source_id": "a", "target_id": "b", "color": "red"}])


def test_impact_has_the_public_keys(pipeline):
    found = pipeline.analyze_impact("table:customers_clean", "schema_change")
    assert found["entity_id"] == "table:customers_clean"
    assert found["change_type"] == "schema_change"
    assert (found["directly_affected_count"], found["total_affected_count"]) == (1, 2)
    assert ids(found["affected_entities"]) == ["table:customer_360", "model:churn_v3"]
    assert found["risk_level"] == "HIGH"
    assert found["verdict"] == "BLOCKED"
    assert "which columns change" in found["recommendation"]
    assert found["complete"] is False


def test_impact_of_a_deprecation_and_of_a_deletion(pipeline):
    assert pipeline.analyze_impact("table:nps_scores", "deprecation")["verdict"] == "CAUTION"
    gone = pipeline.analyze_impact("table:nps_scores", "deletion")
    assert gone["verdict"] == "BLOCKED"
    assert gone["affected_entities"][0]["severity"] == "breaking"
    assert pipeline.analyze_impact("model:churn_v3", "deletion")["total_affected_count"] == 0


def test_impact_on_a_column_is_simulated(tracker):
    tracker.sync.capture_sql_lineage(
        "CREATE TABLE clean AS SELECT id, amount_cents / 100.0 AS usd, note FROM raw"
    )
    drop = tracker.sync.analyze_impact("raw.note", "deletion")
    assert drop["changes"] == ["drop raw.note"]
    assert drop["affected_entities"][0]["references"] == ["note"]
    rename = tracker.sync.analyze_impact("raw", "rename", column="id", to="raw_id")
    assert rename["verdict"] == "BLOCKED"


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"change_type": "explosion"}, "change_type"),
        ({"change_type": "rename"}, "to"),
        ({"change_type": "column_add"}, "column"),
        ({"change_type": "schema_change", "column": "id"}, "change_type"),
    ],
)
def test_an_invalid_change_is_refused(pipeline, asked, field):
    with pytest.raises(InvalidRequestError) as caught:
        pipeline.analyze_impact("table:customers_clean", **asked)
    assert caught.value.field == field


def test_names_that_may_be_one_dataset_are_found_joined_and_separated(tracker):
    sync = tracker.sync
    sync.register_flow("table:raw", "table:events")
    sync.register_flow("table:lake.events", "table:lake.sessions")
    (cut,) = sync.find_cuts()
    assert (cut.written, cut.read) == ("dataset:default:events", "dataset:default:lake.events")
    before = sync.trace_downstream("raw")
    assert not before["complete"]
    assert before["blind_spots"][0]["kind"] == "possible_cut"
    assert not sync.analyze_impact("raw", "deletion")["complete"]
    assert sync.mark_same(cut.written, cut.read).same
    joined = sync.trace_downstream("raw")
    assert joined["complete"]
    assert "table:lake.sessions" in ids(joined["downstream_consumers"])
    assert sync.find_cuts() == []
    sync.mark_same(cut.written, cut.read, undo=True)
    assert "table:lake.sessions" not in ids(sync.trace_downstream("raw")["downstream_consumers"])
    assert [statement.same for statement in sync.list_same()] == [False]
    with pytest.raises(InvalidRequestError):
        sync.mark_same("raw", "raw")


def test_paths_lead_from_one_to_another(pipeline):
    found = pipeline.find_lineage_paths("table:raw_customers", "model:churn_v3")
    assert found["path_count"] == 1
    assert found["paths"] == [
        ["table:raw_customers", "table:customers_clean", "table:customer_360", "model:churn_v3"]
    ]


def test_export_draws_the_edges(pipeline):
    found = pipeline.export_lineage("table:customer_360", format="mermaid", direction="both")
    assert found["format"] == "mermaid"
    assert found["diagram"].startswith("flowchart LR")
    assert found["diagram"].count("-->") == 5
    with pytest.raises(InvalidRequestError, match="mermaid, dot"):
        pipeline.export_lineage("table:customer_360", format="crayon")


def test_search_pages_through_what_it_finds(pipeline):
    first = pipeline.search_entities("customer", limit=2)
    assert (first["total"], len(first["entities"]), first["complete"]) == (4, 2, False)
    rest = pipeline.search_entities("customer", limit=2, cursor=first["cursor"])
    assert (rest["cursor"], rest["complete"]) == (None, True)
    names = [entity["name"] for page in (first, rest) for entity in page["entities"]]
    assert names == ["customer_360", "raw_customers", "customers_clean", "Customer 360"]
    assert pipeline.search_entities("100%_sure")["total"] == 0


def test_details_of_an_entity_include_its_neighbours(pipeline):
    found = pipeline.get_entity("table:customer_360")
    assert ids(found["upstream"]) == ["table:customers_clean", "table:nps_scores"]
    assert ids(found["downstream"]) == ["model:churn_v3"]
    assert {flow["pipeline"] for flow in found["flows"]} == {"Customer 360"}


def test_column_lineage_names_inputs_and_logic(tracker):
    tracker.sync.capture_sql_lineage(
        "INSERT INTO gold.daily_revenue (day, total_revenue)"
        " SELECT order_date, SUM(amount) FROM silver.orders GROUP BY order_date"
    )
    (found,) = tracker.sync.get_column_lineage("gold.daily_revenue", "total_revenue")
    assert found.input_columns == ["silver.orders.amount"]
    assert found.indirect_columns == ["silver.orders.order_date"]
    assert found.transformation == "SUM(amount)"


def test_chains_are_lists_of_datasets(pipeline):
    assert pipeline.get_upstream_chain("model:churn_v3")[-1] == "api:crm"
    assert pipeline.get_downstream_impact("api:crm")[-1] == "model:churn_v3"


def test_neighbours_are_lists_of_datasets(pipeline):
    """The methods with which users write walks of their own."""

    def chain(dataset, graph):
        upstreams = graph.get_upstreams(dataset)
        found = list(upstreams)
        for upstream in upstreams:
            found.extend(chain(upstream, graph))
        return found

    assert pipeline.get_downstreams("table:raw_customers") == ["table:customers_clean"]
    assert pipeline.get_upstreams("table:customer_360") == [
        "table:customers_clean",
        "table:nps_scores",
    ]
    assert sorted(chain("model:churn_v3", pipeline)) == sorted(
        pipeline.get_upstream_chain("model:churn_v3")
    )


def test_a_bare_select_goes_to_the_context_table(tracker):
    found = tracker.sync.capture_sql_lineage("SELECT id FROM raw", context_table="clean")
    assert (found["source_tables"], found["target_tables"]) == (["raw"], ["clean"])
    with pytest.raises(KeyError):
        found["nothing"]


def test_answers_can_be_read_like_dictionaries(pipeline):
    found = pipeline.trace_upstream("table:customer_360")
    assert "count" in found
    assert found.get("nothing", 7) == 7
    assert dict(found)["entity_id"] == "table:customer_360"
    assert found.to_dict()["upstream_sources"][0]["entity_id"] == "table:customers_clean"


def test_a_tracked_function_is_lineage_once_it_was_called(tracker):
    @tracker.track(
        source="table:raw_events", target="table:session_metrics", transformation="Filter bots"
    )
    async def compute(day):
        return day

    with pytest.raises(EntityNotFoundError):
        tracker.sync.trace_downstream("table:raw_events")
    assert asyncio.run(compute("monday")) == "monday"
    (found,) = tracker.sync.trace_downstream("table:raw_events")["downstream_consumers"]
    assert (found["entity_id"], found["transformation"]) == ("table:session_metrics", "Filter bots")
    assert found["confidence"] == "exact"
    assert len(found["via"]) == 1


def test_a_failed_function_is_a_run_and_no_lineage(tracker):
    @tracker.sync.track("table:a", "table:b", name="broken_job")
    def broken():
        raise ValueError("disk full")

    with pytest.raises(ValueError, match="disk full"):
        broken()
    found = tracker.sync.get_entity("job:broken_job")
    assert (found["runs"][0]["state"], found["runs"][0]["error"]) == (
        "FAIL",
        "ValueError: disk full",
    )
    assert (found["upstream"], found["downstream"]) == ([], [])
    with pytest.raises(EntityNotFoundError):
        tracker.sync.get_entity("table:b")


def test_documented_columns_are_lineage(tracker):
    tracker.sync.document_column_lineage(
        "build_daily_revenue",
        [
            ColumnLineage("total_revenue", ["silver.orders.amount"], "SUM(amount)"),
            ColumnLineage(
                "avg_order_value",
                ["silver.orders.amount", "silver.orders.order_id"],
                "SUM(amount) / COUNT(DISTINCT order_id)",
            ),
        ],
        output="gold.daily_revenue",
    )
    (found,) = tracker.sync.get_column_lineage("gold.daily_revenue", "avg_order_value")
    assert found.input_columns == ["silver.orders.amount", "silver.orders.order_id"]
    assert found.transformation == "SUM(amount) / COUNT(DISTINCT order_id)"


def test_many_threads_register_at_once(tracker):
    def register(number):
        for step in range(10):
            tracker.sync.register_flow("table:hub", f"table:t{number}_{step}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(register, range(8)))
    assert tracker.sync.trace_downstream("table:hub")["count"] == 80


def test_an_invalid_flow_does_not_affect_others(tracker):
    async def register():
        return await asyncio.gather(
            *(tracker.register_flow("table:hub", target) for target in ("table:a", "", "table:b")),
            return_exceptions=True,
        )

    done, refused, also = asyncio.run(register())
    assert (done["target_id"], also["target_id"]) == ("table:a", "table:b")
    assert isinstance(refused, InvalidRequestError)


def test_many_coroutines_register_at_once(tracker):
    async def register():
        await asyncio.gather(
            *(tracker.register_flow("table:hub", f"table:t{number}") for number in range(50))
        )
        return await tracker.trace_downstream("table:hub")

    assert asyncio.run(register())["count"] == 50


def run_event(job, state, at, inputs=(), outputs=(), **facets):
    return json.dumps(
        {
            "eventType": state,
            "eventTime": at,
            "run": {"runId": f"{job}-{at}", "facets": facets},
            "job": {"namespace": "default", "name": job},
            "inputs": [{"namespace": "default", **entry} for entry in inputs],
            "outputs": [{"namespace": "default", "name": name} for name in outputs],
        }
    ).encode()


@pytest.fixture
def metric(tracker):
    """raw.orders.cents feeds silver.orders.amount, which feeds gold.daily_revenue.total."""
    sync = tracker.sync
    sync.capture_sql_lineage(
        "INSERT INTO silver.orders (day, amount) SELECT day, cents / 100 FROM raw.orders"
    )
    sync.capture_sql_lineage(
        "INSERT INTO gold.daily_revenue (day, total)"
        " SELECT day, SUM(amount) FROM silver.orders GROUP BY day"
    )
    return sync


def test_a_metric_is_traced_back_to_its_sources(metric):
    found = metric.diagnose_metric("gold.daily_revenue", "total")
    assert found["metric"] == "gold.daily_revenue.total"
    assert found["direct_sources"] == ["silver.orders.amount"]
    assert found["transformations"] == ["SUM(amount)"]
    assert found["freshness_silver.orders.amount"] == found["freshness"][0]["last_updated"]
    assert found["freshness"][0]["age_hours"] < 1
    assert {run["state"] for run in found["last_runs"]} == {"COMPLETE"}
    assert found["look_first"] == []
    assert found["complete"] is True
    with pytest.raises(KeyError):
        found["freshness_of_something"]


def test_the_time_when_a_source_was_last_written(metric):
    metric.backend.send(
        [
            run_event("load_raw", "COMPLETE", "2026-01-01T00:00:00Z", outputs=["raw.orders"]),
            run_event("load_raw", "FAIL", "2026-01-02T00:00:00Z", outputs=["raw.orders"]),
        ]
    )
    assert metric.get_last_updated("raw.orders.cents") == "2026-01-01T00:00:00Z"
    assert metric.get_last_updated("raw.orders") == "2026-01-01T00:00:00Z"
    for derivation in metric.get_column_lineage("gold.daily_revenue", "total"):
        assert metric.get_last_updated(derivation.input_columns[0]) is not None
    with pytest.raises(EntityNotFoundError):
        metric.get_last_updated("nowhere.at_all")


def test_a_diagnosis_suggests_where_to_look_first(metric):
    failed = {"errorMessage": {"message": "out of memory", "programmingLanguage": "python"}}
    checks = {
        "dataQualityAssertions": {
            "assertions": [
                {"assertion": "not_null", "success": False, "column": "amount"},
                {"assertion": "unique", "success": False, "column": "unrelated"},
            ]
        }
    }
    metric.backend.send(
        [
            run_event("load_raw", "COMPLETE", "2026-01-01T00:00:00Z", outputs=["raw.orders"]),
            run_event("sql.silver.orders", "FAIL", "2046-01-02T00:00:00Z", **failed),
            run_event(
                "check",
                "COMPLETE",
                "2026-01-02T00:00:00Z",
                inputs=[{"name": "silver.orders", "inputFacets": checks}],
            ),
        ]
    )
    found = metric.diagnose_metric("gold.daily_revenue", "total")
    assert [suspect["kind"] for suspect in found["look_first"]] == [
        "failed_check",
        "failed_run",
        "old_data",
        "blind_spot",  # how load_raw fills the column
    ]
    check, run, old, _ = found["look_first"]
    assert (check["entity"], check["depth"]) == ("dataset:default:silver.orders", 1)
    assert "not_null of amount" in check["reason"]
    assert "out of memory" in run["reason"]
    assert old["entity"] == "dataset:default:raw.orders"
    assert [failure["error"] for failure in found["recent_failures"]] == ["out of memory"]
    assert [result["assertion"] for result in found["quality"]] == ["not_null"]


def test_a_metric_without_column_lineage_uses_all_upstream_datasets(tracker):
    tracker.sync.register_flow("table:orders", "table:revenue")
    tracker.sync.document_column_lineage("x", [ColumnLineage("tax", ["revenue.total"], "* 0.2")])
    found = tracker.sync.diagnose_metric("revenue", "total")
    assert found["direct_sources"] == ["orders"]
    assert found["freshness_orders"] is None
    assert {spot["kind"] for spot in found["blind_spots"]} == {
        "no_column_lineage",
        "unknown_freshness",
    }


def test_an_unknown_metric_is_an_error(metric):
    with pytest.raises(EntityNotFoundError):
        metric.diagnose_metric("gold.daily_revenue", "totl")
