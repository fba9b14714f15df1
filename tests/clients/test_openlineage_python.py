"""`openlineage-python` as PyPI has it: each transport sends one run, in both of its APIs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

# Runs in the environment of the client. Its configuration is the file that OPENLINEAGE_CONFIG
# names, as for every integration; it prints nothing.
SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
from openlineage.client import OpenLineageClient, event_v2, facet_v2
from openlineage.client.facet import ColumnLineageDatasetFacet as OldColumns
from openlineage.client.facet import (
    ColumnLineageDatasetFacetFieldsAdditional as OldField,
    ColumnLineageDatasetFacetFieldsAdditionalInputFields as OldInput,
)
from openlineage.client.run import Dataset, Job, Run, RunEvent, RunState

RUN = "0b7b8d2e-58e7-4f2c-9c0f-1a2b3c4d5e6f"
columns = facet_v2.column_lineage_dataset
client = OpenLineageClient(url=sys.argv[2]) if len(sys.argv) > 2 else OpenLineageClient()


def old(state, at):
    facet = OldColumns({"amount": OldField([OldInput("raw", "orders", "amount_cents")], "", "")})
    return RunEvent(
        eventType=RunState(state), eventTime=at[:19], run=Run(RUN), job=Job("spark", "clean"),
        producer="https://example.com", inputs=[Dataset("raw", "orders")],
        outputs=[Dataset("dw", "orders_clean", facets={"columnLineage": facet})],
    )


def new(state, at):
    source = columns.InputField(
        "raw", "orders", "amount_cents", [columns.Transformation("DIRECT", "TRANSFORMATION")]
    )
    facet = columns.ColumnLineageDatasetFacet(fields={"amount": columns.Fields([source])})
    return event_v2.RunEvent(
        eventType=event_v2.RunState(state), eventTime=at, run=event_v2.Run(RUN),
        job=event_v2.Job("spark", "clean"), inputs=[event_v2.InputDataset("raw", "orders")],
        outputs=[event_v2.OutputDataset("dw", "orders_clean", facets={"columnLineage": facet})],
    )


make = {"run": old, "event_v2": new}[sys.argv[1]]
client.emit(make("START", "2026-01-01T00:00:00.123456789Z"))
client.emit(make("COMPLETE", "2026-01-01T00:01:00Z"))
assert client.close(300), "events were not sent in time"
"""
EDGES = {
    ("dataset:raw:orders", "job:spark:clean"),
    ("job:spark:clean", "dataset:dw:orders_clean"),
}
AMOUNT = ("column:raw:orders:amount_cents", "column:dw:orders_clean:amount")


@pytest.fixture(scope="module")
def python(client_python: Callable[..., Path]) -> Path:
    return client_python("openlineage-python==1.54.0")


def _emit(python: Path, folder: Path, transport: dict[str, Any], api: str = "event_v2") -> None:
    config = folder / "openlineage.yml"
    config.write_text(json.dumps({"transport": transport}))  # JSON is YAML
    _run(python, api, OPENLINEAGE_CONFIG=str(config))


def _run(python: Path, *arguments: str, **environment: str) -> None:
    done = subprocess.run(
        [python, "-c", SCRIPT, *arguments],
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _ingest(file: Path, store: Path) -> None:
    command = [sys.executable, "-m", "downriver", "ingest", str(file), "--store", str(store)]
    subprocess.run(command, check=True, capture_output=True, timeout=600)


def _check(store: Path, events: int = 2) -> None:
    with Lineage.open(str(store)) as lineage:
        assert {(edge.source, edge.target) for edge in lineage.trace("orders").edges} == EDGES
        (edge,) = lineage.trace("orders_clean.amount", "upstream").edges
        assert (edge.source, edge.target) == AMOUNT
        assert lineage.admin.status().counts.events == events
        (run,) = lineage.runs("job:spark:clean").runs
        assert run.state == "COMPLETE"


@pytest.mark.parametrize("api", ["run", "event_v2"])
@pytest.mark.parametrize(
    "transport",
    [
        {"type": "http"},
        {"type": "http", "compression": "gzip"},
        {"type": "async_http"},
        {"type": "async_http", "compression": "gzip"},
    ],
    ids=["http", "http-gzip", "async", "async-gzip"],
)
def test_events_sent_over_http_become_edges_and_columns(
    python: Path, tmp_path: Path, transport: dict[str, Any], api: str
) -> None:
    with running_server(tmp_path / "store") as url:
        _emit(python, tmp_path, {**transport, "url": url, "timeout": 120}, api)
    _check(tmp_path / "store")


def test_the_client_of_older_tutorials_works_unchanged(python: Path, tmp_path: Path) -> None:
    with running_server(tmp_path / "store") as url:
        _run(python, "run", url)
    _check(tmp_path / "store")


def test_a_file_of_events_is_ingested(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    _emit(python, tmp_path, {"type": "file", "log_file_path": str(file), "append": True})
    _ingest(file, tmp_path / "store")
    _check(tmp_path / "store")


def test_a_composite_sends_to_the_server_and_to_a_file(python: Path, tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    with running_server(tmp_path / "store") as url:
        transports = {
            "server": {"type": "http", "url": url, "compression": "gzip", "timeout": 120},
            "copy": {"type": "file", "log_file_path": str(file), "append": True},
        }
        _emit(python, tmp_path, {"type": "composite", "transports": transports})
    _check(tmp_path / "store")
    _ingest(file, tmp_path / "store")  # the same events: stored already
    _check(tmp_path / "store")
