"""`marquez-python` as PyPI has it: every method against a server in a process of its own."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

# Runs in the environment of the client: calls each public method once, with names that contain
# slashes and colons, and prints what each returned.
SCRIPT = """
import inspect, json, sys, warnings
warnings.simplefilter("ignore")
from marquez_client import MarquezClient
from marquez_client.models import DatasetId, DatasetType, JobType

client = MarquezClient(sys.argv[1])
NS, TABLE, JOB = "postgres://db:5432", "public/orders:v1", "load/orders"
calls = {}

def call(name, *args, **named):
    calls[name] = getattr(client, name)(*args, **named)
    return calls[name]

call("create_namespace", NS, "ana", "the warehouse")
call("get_namespace", NS)
call("list_namespaces", limit=10)
call("create_source", "warehouse", "POSTGRESQL", "jdbc:postgresql://db:5432/wh", "all tables")
call("get_source", "warehouse")
call("list_sources")
fields = [{"name": "id", "type": "INTEGER", "tags": [], "description": "the id"},
          {"name": "email", "type": "VARCHAR", "tags": ["PII"]}]
for name in (TABLE, "raw"):
    call("create_dataset", NS, name, DatasetType.DB_TABLE, name, "warehouse", "orders",
         fields=fields, tags=["gold"])
call("get_dataset", NS, TABLE)
call("list_datasets", NS)
versions = call("list_dataset_versions", NS, TABLE)
call("get_dataset_version", NS, TABLE, versions["versions"][0]["version"])
call("create_tag", "SENSITIVE", "do not share")
call("tag_dataset", NS, TABLE, "SENSITIVE")
call("tag_dataset_field", NS, TABLE, "email", "SENSITIVE")
call("list_tags", limit=100, offset=0)
call("create_job", NS, JOB, JobType.BATCH, location="https://example.com/code",
     inputs=[DatasetId(NS, "raw")], outputs=[DatasetId(NS, TABLE)], description="loads orders")
call("get_job", NS, JOB)
call("list_jobs", NS)
run = call("create_job_run", NS, JOB, nominal_start_time="2026-01-01T00:00:00Z",
           run_args={"mode": "full"})
call("mark_job_run_as_started", run["id"])
call("mark_job_run_as_completed", run["id"])
for action in ("failed", "aborted"):
    another = client.create_job_run(NS, JOB, mark_as_running=True)
    call(f"mark_job_run_as_{action}", another["id"])
call("get_job_run", run["id"])
call("list_job_runs", NS, JOB)
call("list_events", limit=100)
for name, args in (
    ("get_column_lineage_by_dataset", (NS, TABLE)),
    ("get_column_lineage_by_dataset_field", (NS, TABLE, "email")),
    ("get_column_lineage_by_job", (NS, JOB)),
):
    call(name, *args)
methods = [n for n, m in inspect.getmembers(client, inspect.ismethod) if not n.startswith("_")]
print(json.dumps({"methods": methods, "calls": calls}))
"""
TABLE = {"namespace": "postgres://db:5432", "name": "public/orders:v1"}


@pytest.fixture(scope="module")
def answered(client_python: Callable[..., Path], server_url: str) -> dict[str, Any]:
    python = client_python("marquez-python==0.50.0", "pytz")
    done = subprocess.run(
        [python, "-c", SCRIPT, server_url], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_method_is_answered(answered: dict[str, Any]) -> None:
    assert set(answered["methods"]) == set(answered["calls"])


def test_what_was_registered_is_returned(answered: dict[str, Any]) -> None:
    calls = answered["calls"]
    assert calls["get_namespace"]["ownerName"] == "ana"
    assert calls["get_source"]["connectionUrl"] == "jdbc:postgresql://db:5432/wh"
    dataset = calls["get_dataset"]
    assert (dataset["id"], dataset["sourceName"]) == (TABLE, "warehouse")
    assert calls["list_datasets"]["totalCount"] == 2
    assert calls["get_dataset_version"]["fields"] == dataset["fields"]
    tagged = calls["tag_dataset_field"]
    assert tagged["tags"] == ["gold", "sensitive"]
    assert [field["tags"] for field in tagged["fields"]] == [[], ["pii", "sensitive"]]
    assert {"name": "sensitive", "description": "do not share"} in calls["list_tags"]["tags"]
    job = calls["get_job"]
    assert job["outputs"] == [TABLE]
    assert [found["name"] for found in calls["list_jobs"]["jobs"]] == [job["name"]]


def test_runs_go_through_their_states(answered: dict[str, Any]) -> None:
    calls = answered["calls"]
    assert calls["create_job_run"]["state"] == "NEW"
    assert calls["mark_job_run_as_started"]["state"] == "RUNNING"
    assert calls["get_job_run"]["state"] == "COMPLETED"
    assert calls["get_job_run"]["args"]["mode"] == "full"
    states = [run["state"] for run in calls["list_job_runs"]["runs"]]
    assert sorted(states) == ["ABORTED", "COMPLETED", "FAILED"]
    assert calls["list_job_runs"]["totalCount"] == 3
    types = [event["eventType"] for event in calls["list_events"]["events"]]
    assert sorted(types) == sorted([*["OTHER"] * 3, *["START"] * 3, "COMPLETE", "FAIL", "ABORT"])
