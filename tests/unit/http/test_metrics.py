"""Metrics, request ids, JSON logs and spans of the server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event
from tests.server import free_port, wait_until_up
from tests.unit.govern.scenario import output, run, tagged, told
from tests.unit.http.test_app import TestClient, run_event

from downriver.errors import StoreBusyError
from downriver.http import build_app
from downriver.http.metrics import KpiGauges
from downriver.http.server import request_log
from downriver.model.changes import TableDrop
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.model.governance import Kpis

DASHBOARD = Path(__file__).parents[3] / "docs" / "grafana" / "server.json"


@pytest.fixture
def client(tmp_path: Path):
    with Lineage.open(str(tmp_path)) as lineage, TestClient(build_app(lineage)) as opened:
        yield opened


def metrics_of(client: TestClient) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_requests_and_events_are_counted(client: TestClient) -> None:
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    client.post("/api/v1/lineage", json={"wrong": True})
    client.post("/api/v1/lineage/batch", json=[run_event("b", ["x"], ["y"]), {"wrong": True}])
    client.get("/v1/trace", params={"entity": "orders"})
    client.get("/v1/trace", params={"entity": "unknown"})
    client.get("/no/such/page/1")
    found = metrics_of(client)
    assert found['downriver_events_total{result="accepted"}'] == 2
    assert found['downriver_events_total{result="refused"}'] == 2
    requests = "downriver_requests_total"
    assert found[f'{requests}{{method="POST",route="/api/v1/lineage",status="201"}}'] == 1
    assert found[f'{requests}{{method="POST",route="/api/v1/lineage",status="400"}}'] == 1
    assert found[f'{requests}{{method="GET",route="/v1/trace",status="200"}}'] == 1
    assert found[f'{requests}{{method="GET",route="/v1/trace",status="404"}}'] == 1
    assert any('route="other"' in name for name in found)  # no metric for each invented path
    assert not any("no/such" in name for name in found)
    duration = "downriver_request_duration_seconds"
    assert found[f'{duration}_count{{route="/v1/trace"}}'] == 2
    assert found[f'{duration}_bucket{{route="/v1/trace",le="+Inf"}}'] == 2
    assert found['downriver_store_rows{kind="events"}'] == found["downriver_log_head"] == 2
    assert found["downriver_queue_events"] == found["downriver_catalog_lag_events"] == 0
    assert found["downriver_request_body_bytes"] == 0
    assert found["downriver_requests_in_progress"] == 1  # this one


def test_buckets_add_up(client: TestClient) -> None:
    for _ in range(20):
        client.get("/healthz")
    found = metrics_of(client)
    prefix = 'downriver_request_duration_seconds_bucket{route="/healthz"'
    counts = [value for name, value in found.items() if name.startswith(prefix)]
    assert counts == sorted(counts)
    assert counts[-1] == 20


def test_metrics_need_a_key_when_there_are_keys(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        key = lineage.admin.create_key("prometheus", "reader")
        with TestClient(build_app(lineage)) as client:
            assert client.get("/metrics").status_code == 401
            headers = {"authorization": f"Bearer {key}"}
            assert client.get("/metrics", headers=headers).status_code == 200


def test_a_request_id_is_echoed_or_made(client: TestClient) -> None:
    given = client.get("/healthz", headers={"x-request-id": "deploy-7.a_b"})
    assert given.headers["x-request-id"] == "deploy-7.a_b"
    made = [client.get("/healthz").headers["x-request-id"] for _ in range(2)]
    assert len(set(made)) == 2
    forged = client.get("/healthz", headers={"x-request-id": "a" * 65})
    assert len(forged.headers["x-request-id"]) == 32


def test_json_logs_have_every_request_with_its_id(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-m", "downriver", "serve", "--port", str(port)]
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, "--log-format", "json", "--store", str(tmp_path / "store")],
            stderr=stderr,
            env=os.environ,
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}", process)
        url = f"http://127.0.0.1:{port}/v1/status"
        request = urllib.request.Request(url, headers={"X-Request-ID": "abc"})
        urllib.request.urlopen(request, timeout=30).close()
    finally:
        process.terminate()
        process.wait(20)
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    logged = next(line for line in lines if line.get("request_id") == "abc")
    assert (logged["method"], logged["route"], logged["status"]) == ("GET", "/v1/status", 200)
    assert logged["duration_ms"] >= 0
    assert logged["level"] == "info"


def test_requests_are_spans_of_opentelemetry(client: TestClient, monkeypatch) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(request_log, "_tracer", lambda: provider.get_tracer("downriver"))
    trace_id = "0af7651916cd43dd8448eb211c80319c"
    client.get("/v1/status", headers={"traceparent": f"00-{trace_id}-b7ad6b7169203331-01"})
    (span,) = exporter.get_finished_spans()
    assert span.name == "GET /v1/status"
    assert span.attributes["http.response.status_code"] == 200
    assert f"{span.context.trace_id:032x}" == trace_id


def test_without_opentelemetry_requests_are_answered(client: TestClient, monkeypatch) -> None:
    monkeypatch.setattr(request_log, "_tracer", lambda: None)
    assert client.get("/healthz").status_code == 200


def test_kpis_are_measured_in_the_background_and_not_for_every_answer(tmp_path: Path) -> None:
    with told(tmp_path, run("sum", 0, reads=["raw"], writes=[output("mart")])) as lineage:
        measured = []

        def measure() -> Kpis:
            measured.append(True)
            return lineage.govern.kpis()

        with client_with(lineage, measure) as client:
            first = wait_for_kpis(client)
            assert first['downriver_kpi{name="lineage_coverage"}'] == 100
            assert first['downriver_kpi{name="blast_radius"}'] == 1
            at = "downriver_kpi_timestamp_seconds"
            assert time.time() - first[at] < 60
            assert metrics_of(client)[at] == first[at]
    assert len(measured) == 1


def test_kpis_are_measured_again_after_the_pause(tmp_path: Path) -> None:
    orphans = 'downriver_kpi{name="orphans"}'
    with (
        told(tmp_path, run("sum", 0, reads=["raw"], writes=[output("mart")])) as lineage,
        client_with(lineage, lineage.govern.kpis, least_pause=0) as client,
    ):
        assert wait_for_kpis(client)[orphans] == 0
        client.post("/api/v1/lineage", json=dataset_event("orphan"))
        wait_until(lambda: metrics_of(client)[orphans] == 1)


def test_metrics_are_served_while_the_kpis_are_measured(tmp_path: Path) -> None:
    """A large store takes longer than Prometheus waits for an answer."""
    go_on = threading.Event()
    with Lineage.open(str(tmp_path)) as lineage:

        def measure() -> Kpis:
            go_on.wait(30)
            return lineage.govern.kpis()

        with client_with(lineage, measure) as client:
            served = metrics_of(client)
            assert "downriver_log_head" in served
            assert not any(name.startswith("downriver_kpi") for name in served)
            go_on.set()
            assert wait_for_kpis(client)['downriver_kpi{name="orphans"}'] == 0


def test_metrics_are_served_when_the_kpis_cannot_be_measured(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def measure() -> Kpis:
        raise StoreBusyError("too many questions")

    with Lineage.open(str(tmp_path)) as lineage, client_with(lineage, measure) as client:
        assert "downriver_log_head" in metrics_of(client)
    assert "KPIs were not measured: too many questions" in caplog.text


def client_with(lineage: Lineage, measure: Callable[[], Kpis], **options: float) -> TestClient:
    app = build_app(lineage)
    context = app.state.context
    gauges = KpiGauges(measure, context.reads, **options)
    app.state.context = context._replace(kpi_gauges=gauges)
    return TestClient(app)


def wait_for_kpis(client: TestClient) -> dict[str, float]:
    wait_until(lambda: "downriver_kpi_timestamp_seconds" in metrics_of(client))
    return metrics_of(client)


def wait_until(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


SELECTOR = re.compile(r"(downriver_\w+)(\{[^}]*\})?")


def test_each_expression_of_the_dashboard_names_a_served_metric(tmp_path: Path) -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    facts = run("sum", 0, reads=["raw"], writes=[output("mart", tagged("certified"))])
    with told(tmp_path, facts) as lineage:
        lineage.impact.gate(lineage.impact([TableDrop(dataset="raw")]))
        with TestClient(build_app(lineage)) as client:
            served = wait_for_kpis(client)
    names = {name.partition("{")[0] for name in served}
    for expression in expressions:
        selectors = SELECTOR.findall(expression)
        assert selectors, expression
        for name, labels in selectors:
            assert name in names, expression
            if name == "downriver_kpi":
                assert name + labels in served, expression


def test_the_dashboard_shows_the_four_kpis_of_lineage() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    tiles = {
        panel["title"]: [SELECTOR.search(target["expr"])[2] for target in panel["targets"]]
        for panel in panels
        if panel["type"] == "stat"
    }
    assert tiles == {
        "Lineage coverage": ['{name="lineage_coverage"}'],
        "Unknown downstreams": ['{name="unknown_downstreams"}'],
        "Certified-path integrity": ['{name="certified_path_integrity"}'],
        "Blast radius, median": ['{name="blast_radius"}', '{name="change_radius"}'],
    }
