"""The real OpenLineage client talks to the real server."""

from __future__ import annotations

import subprocess
import sys
import urllib.error
import urllib.request
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from openlineage.client import OpenLineageClient, event_v2, facet_v2
from openlineage.client.run import Dataset, Job, Run, RunEvent, RunState
from openlineage.client.transport.http import HttpCompression, HttpConfig, HttpTransport
from tests.server import running_server

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

UUID = "0b7b8d2e-58e7-4f2c-9c0f-1a2b3c4d5e6f"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    with running_server(tmp_path / "store") as url:
        yield url


@pytest.mark.filterwarnings("ignore:Initializing OpenLineageClient:DeprecationWarning")
def test_the_client_of_older_tutorials_works_unchanged(server: str, tmp_path: Path) -> None:
    client = OpenLineageClient(url=server)
    client.emit(
        RunEvent(
            eventType=RunState.COMPLETE,
            eventTime=datetime.now(timezone.utc).replace(tzinfo=None).isoformat(),
            run=Run(runId=UUID),
            job=Job(namespace="dte.pipeline", name="orders_transform"),
            producer="https://example.com",
            inputs=[Dataset(namespace="dte.raw", name="orders_raw")],
            outputs=[Dataset(namespace="dte.dw", name="orders_clean")],
        )
    )
    with Lineage.open(str(tmp_path / "store")) as lineage:
        answer = lineage.trace("orders_raw")
    assert [node.name for node in answer.nodes] == [
        "orders_raw",
        "orders_clean",
        "orders_transform",
    ]


@pytest.mark.parametrize("compression", [None, HttpCompression.GZIP])
def test_the_current_client_sends_column_lineage(
    server: str, tmp_path: Path, compression: HttpCompression | None
) -> None:
    client = OpenLineageClient(
        transport=HttpTransport(HttpConfig(url=server, compression=compression))
    )
    lineage_facet = facet_v2.column_lineage_dataset.ColumnLineageDatasetFacet(
        fields={
            "amount": facet_v2.column_lineage_dataset.Fields(
                inputFields=[
                    facet_v2.column_lineage_dataset.InputField(
                        "raw",
                        "orders",
                        "amount_cents",
                        [
                            facet_v2.column_lineage_dataset.Transformation(
                                "DIRECT", "TRANSFORMATION"
                            )
                        ],
                    )
                ]
            )
        }
    )
    client.emit(
        event_v2.RunEvent(
            eventType=event_v2.RunState.COMPLETE,
            eventTime="2026-01-01T00:00:00.123456789Z",
            run=event_v2.Run(runId=UUID),
            job=event_v2.Job(namespace="spark", name="clean"),
            inputs=[event_v2.InputDataset("raw", "orders")],
            outputs=[
                event_v2.OutputDataset(
                    "dw", "orders_clean", facets={"columnLineage": lineage_facet}
                )
            ],
        )
    )
    with Lineage.open(str(tmp_path / "store")) as lineage:
        answer = lineage.trace("orders_clean.amount", "upstream")
    assert [node.id for node in answer.nodes] == [
        "column:dw:orders_clean:amount",
        "column:raw:orders:amount_cents",
    ]
    assert answer.edges[0].subtype == "TRANSFORMATION"


def test_an_acknowledged_event_is_visible_to_another_process_at_once(
    server: str, tmp_path: Path
) -> None:
    body = (
        b'{"eventTime": "2026-01-01T00:00:00Z", "run": {"runId": "r"}, "job": {"namespace": "n",'
        b' "name": "j"}, "inputs": [{"namespace": "n", "name": "fresh"}]}'
    )
    urllib.request.urlopen(f"{server}/api/v1/lineage", data=body).close()
    asked = [
        sys.executable,
        "-m",
        "downriver",
        "trace",
        "fresh",
        "--store",
        str(tmp_path / "store"),
    ]
    assert "complete" in subprocess.run(asked, check=True, capture_output=True, text=True).stdout


def test_a_request_for_another_host_name_is_refused(server: str) -> None:
    request = urllib.request.Request(f"{server}/v1/status", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)
    assert refused.value.code == 401
    refused.value.close()
