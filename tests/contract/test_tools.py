"""Every tool on every backend: a local store, memory, PostgreSQL and a server."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing

import jsonschema
import msgspec
import pytest
from tests.server import serving

from downriver import Lineage, lineage_sync
from downriver.agent import TOOLS
from downriver.agent.tools import ToolContext
from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.impact import parse_policy
from downriver.sdk import Tracker
from downriver.store.catalog.encoding import decompress

TOOL = {tool.name: tool for tool in TOOLS}
CHANGE = {"entity_id": "orders.amount", "description": "rename it to total"}
QUERY = "INSERT INTO revenue SELECT day, SUM(amount) AS total FROM orders GROUP BY day"
USED = [
    ("register_flow", {"source_id": "api:shop", "target_id": "table:orders"}),
    (
        "register_pipeline",
        {"name": "p", "steps": [{"source_id": "table:revenue", "target_id": "table:report"}]},
    ),
    ("describe_pipeline", {"text": "orders feeds audit_log"}),
    ("capture_sql_lineage", {"sql": "INSERT INTO late SELECT day FROM orders"}),
    ("search_entities", {"text": "rev"}),
    ("get_entity", {"entity_id": "orders"}),
    ("trace_upstream", {"entity_id": "report"}),
    ("trace_downstream", {"entity_id": "orders"}),
    ("get_column_lineage", {"dataset": "revenue", "column": "total"}),
    ("find_paths", {"source_id": "orders", "target_id": "report"}),
    ("analyze_impact", CHANGE),
    ("gate_change", CHANGE),
    ("suggest_fix", CHANGE),
    ("diagnose_metric", {"dataset": "revenue", "column": "total"}),
    ("incident_report", {"entity_id": "revenue", "at": "2026-01-03T00:00:00Z"}),
    ("tag_reach", {"tag": "pii"}),
    ("shared_lineage", {"entity_id": "orders", "other_id": "revenue"}),
    ("kpis", {}),
    ("export_lineage", {"entity_id": "orders"}),
]


@pytest.fixture
def repo(tmp_path):
    root = tmp_path / "code"
    (root / "models").mkdir(parents=True)
    (root / "models/revenue.sql").write_text(QUERY)
    columns = [{"name": "day"}, {"name": "amount"}]
    (root / "models/schema.yml").write_text(
        json.dumps({"models": [{"name": "orders", "columns": columns}]})
    )
    (root / "unrelated.yml").write_text("key: 1")
    return root


@pytest.fixture
def context(tracker, repo):
    """A tracker with a query from a file, and a failed run."""
    fields = [{"name": "day", "type": "date"}, {"name": "amount", "type": "int"}]
    orders = {"namespace": "default", "name": "orders", "facets": {"schema": {"fields": fields}}}
    failed = {
        "eventType": "FAIL",
        "eventTime": "2026-01-02T00:00:00Z",
        "run": {"runId": "r", "facets": {"errorMessage": {"message": "out of memory"}}},
        "job": {"namespace": "default", "name": "revenue"},
        "outputs": [{"namespace": "default", "name": "revenue"}],
    }
    reported = [{"eventTime": "2026-01-01T00:00:00Z", "dataset": orders}, failed]
    with Lineage.open(":memory:") as elsewhere:
        elsewhere.capture.sql(QUERY, job="revenue", path="models/revenue.sql", dialect="duckdb")
        with elsewhere.store.reader() as reader:
            captured = [decompress(entry.body) for entry in reader.log.entries()]
    tracker.sync.backend.send([*(json.dumps(event).encode() for event in reported), *captured])
    return ToolContext(tracker, None, repo)


def use(context, name, arguments):
    answer = msgspec.to_builtins(asyncio.run(TOOL[name].call(context, arguments)))
    jsonschema.validate(answer, TOOL[name].output_schema())
    return answer


def test_every_tool_answers(context):
    assert {name for name, _ in USED} == set(TOOL)
    found = {name: use(context, name, arguments) for name, arguments in USED}
    assert found["kpis"]["kpis"]["datasets"] == 6
    assert found["incident_report"]["status"] == "failing"
    assert found["gate_change"]["decision"] == "BLOCKED"


def test_a_patch_is_written_for_the_local_files(context, repo):
    found = use(context, "suggest_fix", CHANGE)
    assert "--- a/models/revenue.sql" in found["diff"]
    assert "SUM(total) AS total" in found["diff"]
    assert "--- a/models/schema.yml" in found["diff"]
    assert (
        context.tracker.sync.suggest_fix("orders.amount", to="total", root=repo).diff
        == (found["diff"])
    )


def test_a_patch_needs_a_code_folder(context):
    with pytest.raises(InvalidRequestError, match="no code is available"):
        use(context._replace(root=None), "suggest_fix", CHANGE)
    found = context.tracker.sync.suggest_fix("orders.amount", to="total", root="no such folder")
    assert found["patches"] == []
    assert found["absent"] == ["models/revenue.sql"]


def test_the_gate_uses_the_policy_of_the_context(context):
    lenient = parse_policy({"breaking": "CAUTION", "incomplete": "APPROVED"})
    assert use(context._replace(policy=lenient), "gate_change", CHANGE)["decision"] == "CAUTION"
    assert use(context, "gate_change", CHANGE)["decision"] == "BLOCKED"


def test_an_incident_names_the_failure(context):
    found = context.tracker.sync.incident_report("revenue", "2026-01-03T00:00:00Z")
    assert found["status"] == "failing"
    assert "out of memory" in found["failures"][0].message
    with pytest.raises(EntityNotFoundError):
        context.tracker.sync.incident_report("no_such_thing")
    with pytest.raises(InvalidRequestError, match="at"):
        context.tracker.sync.incident_report("revenue", "yesterday")


def test_a_server_with_the_code_writes_patches_for_it(tmp_path, repo):
    with (
        Lineage.open(str(tmp_path / "store"), repository=repo) as store,
        serving(store) as url,
        closing(lineage_sync(url)) as sync,
    ):
        store.capture.sql(QUERY, job="revenue", path="models/revenue.sql", dialect="duckdb")
        context = ToolContext(Tracker(sync), None, None)
        assert "SUM(total) AS total" in use(context, "suggest_fix", CHANGE)["diff"]


def test_a_patch_never_reads_outside_the_code(tmp_path, repo):
    (tmp_path / "secret.sql").write_text(QUERY)
    with closing(lineage_sync(":memory:")) as sync:
        sync.backend.lineage.capture.sql(
            QUERY, job="revenue", path="../secret.sql", dialect="duckdb"
        )
        found = sync.suggest_fix("orders.amount", to="total", root=repo)
    assert (found.absent, "secret" in found.diff) == (["../secret.sql"], False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("trace_downstream", {"entity_id": "raw"}),
        ("find_paths", {"source_id": "raw", "target_id": "table:events"}),
        ("analyze_impact", {"entity_id": "raw", "description": "drop it"}),
        ("gate_change", {"entity_id": "raw", "description": "drop it"}),
    ],
)
def test_no_answer_of_the_agent_is_complete_across_a_possible_cut(tracker, tool, arguments):
    tracker.sync.register_flow("table:raw", "table:events")
    tracker.sync.register_flow("table:lake.events", "table:sessions")

    context = ToolContext(tracker)
    assert not use(context, tool, arguments)["complete"]
    tracker.sync.mark_same("dataset:default:events", "dataset:default:lake.events")
    spots = use(context, tool, arguments)["blind_spots"]
    assert "possible_cut" not in {spot["kind"] for spot in spots}
