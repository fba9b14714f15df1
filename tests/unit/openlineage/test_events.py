"""Events that Downriver produces: typed from the start, and equal to their own bytes parsed."""

from __future__ import annotations

import msgspec
import pytest

from downriver.errors import InvalidEventError
from downriver.model.facts import ColumnTransformation
from downriver.model.flows import Flow
from downriver.model.ids import DatasetId, JobId, NodeId
from downriver.openlineage import Event, fold, parse_event
from downriver.openlineage.events import (
    dataset,
    dataset_event,
    flow_event,
    job_event,
    pipeline_event,
    run_event,
    waiver_event,
)
from downriver.openlineage.facets.column_lineage import (
    COLUMN_LINEAGE,
    ColumnInput,
    JobOutput,
    OutputLineage,
    parse_derivations,
    render_column_lineage,
    render_job_lineage,
)
from downriver.openlineage.facets.dataset import SCHEMA, SchemaField, render_schema

AT = 1_700_000_000_123_456
JOB = JobId("dbt", "orders")
RAW, ORDERS = DatasetId("db", "raw_orders"), DatasetId("db", "orders")
SUM = ColumnTransformation(True, "AGGREGATION", "sum(amount)", False, "exact")
FILTER = ColumnTransformation(False, "FILTER", "", False, "exact")
LINEAGE = OutputLineage(
    {"total": [ColumnInput(RAW, "amount", SUM)]}, [ColumnInput(RAW, "day", FILTER)]
)
FLOW = Flow(source_id="raw_orders", target_id="orders")


def orders_facets() -> dict[str, msgspec.Raw]:
    return {
        SCHEMA: render_schema([SchemaField("total", "bigint")]),
        COLUMN_LINEAGE: render_column_lineage(LINEAGE),
    }


EVENTS = {
    "run": run_event(
        JOB, "r1", "COMPLETE", AT, inputs=[dataset(RAW)], outputs=[dataset(ORDERS, orders_facets())]
    ),
    "start": run_event(JOB, "r1", "START", AT),
    "job": job_event(
        JOB,
        AT,
        outputs=[dataset(ORDERS)],
        facets={"lineage": render_job_lineage({ORDERS: JobOutput([RAW], LINEAGE)})},
    ),
    "dataset": dataset_event(ORDERS, AT, orders_facets()),
    "flow": flow_event(FLOW, RAW, ORDERS, AT),
    "pipeline": pipeline_event(JOB, AT, [FLOW], "@daily", "Loads orders."),
    "waiver": waiver_event(ORDERS, AT, ["drop orders.total"], [{"rule": "breaking"}]),
}


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_a_produced_event_folds_like_its_own_bytes(event: Event) -> None:
    parsed = parse_event(event.raw)
    assert (event.ref, event.state) == (parsed.ref, parsed.state)
    assert fold(event) == fold(parsed)


def test_a_name_with_a_nul_is_stored_as_it_is_when_it_arrives_over_http() -> None:
    event = run_event(JobId("n", "a\0b"), "r", "COMPLETE", AT)
    assert fold(event) == fold(parse_event(event.raw))


def test_a_job_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidEventError):
        run_event(JobId("n", ""), "r", "COMPLETE", AT)


def test_rendered_column_lineage_is_parsed_as_it_was() -> None:
    found = parse_derivations("columnLineage", bytes(render_column_lineage(LINEAGE)), ORDERS)
    assert {(str(d.source), d.target.field, d.subtype) for d in found} == {
        ("column:db:raw_orders:amount", "total", "AGGREGATION"),
        ("column:db:raw_orders:day", "*", "FILTER"),
    }


@pytest.mark.parametrize(
    ("source", "target"), [(RAW, JOB), (JOB, ORDERS), (JobId("dbt", "before"), JOB)]
)
def test_a_flow_may_begin_or_end_at_a_job(source: NodeId, target: NodeId) -> None:
    seen = {
        str(s.node)
        for s in fold(flow_event(FLOW, source, target, AT)).sightings
        if hasattr(s, "node")
    }
    assert {str(source), str(target)} <= seen
