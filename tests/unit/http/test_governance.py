"""Figures, incidents, tags and drift over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.openlineage import encode
from tests.unit.govern.scenario import micros, moment
from tests.unit.govern.watch.test_monitor import DAYS, weeks
from tests.unit.http.test_app import TestClient

from downriver.govern.watch import WatchConfig
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event) for event in weeks()])
        lineage.govern.monitor(WatchConfig()).check(micros(DAYS - 0.8))
        with TestClient(build_app(lineage)) as client:
            yield client


def test_kpis(client: TestClient) -> None:
    found = client.get("/v1/kpis").json()
    assert (found["datasets"], found["blast_radius"]["largest"]) == (2, 2)


def test_incident(client: TestClient) -> None:
    asked = {"entity": "mart", "at": moment(DAYS - 0.8)}
    found = client.get("/v1/incidents", params=asked).json()
    assert found["status"] == "failing"
    assert client.get("/v1/incidents").status_code == 400
    assert client.get("/v1/incidents", params={"entity": "nowhere"}).status_code == 404
    bad = client.get("/v1/incidents", params={"entity": "mart", "at": "soon"})
    assert (bad.status_code, bad.json()["field"]) == (400, "at")


def test_an_incident_can_be_posted(client: TestClient) -> None:
    asked = {"entity": "mart", "at": moment(DAYS - 0.8)}
    found = client.post("/v1/incidents", json=asked)
    assert found.json() == client.get("/v1/incidents", params=asked).json()
    assert found.json()["runs"]
    assert client.post("/v1/incidents", json={"entity": "nowhere"}).status_code == 404


def test_tag_reach(client: TestClient) -> None:
    assert client.get("/v1/tags").json()["tag"] == "pii"
    assert client.get("/v1/tags", params={"tag": " "}).status_code == 400
    bad = client.get("/v1/tags", params={"as_of": "soon"})
    assert (bad.status_code, bad.json()["field"]) == (400, "as_of")


def test_findings_can_be_listed_and_filtered(client: TestClient) -> None:
    found = client.get("/v1/drift").json()
    assert (found["total"], found["complete"]) == (3, True)
    one = client.get("/v1/drift", params={"of": "raw", "kind": "row_count_shift"}).json()
    assert one["findings"][0]["affected_count"] == 2
    assert client.get("/v1/drift", params={"status": "resolved"}).json()["total"] == 0
    assert client.get("/v1/drift", params={"status": "all", "limit": 1}).json()["complete"] is False
    for period in ("99999999999d", "9" * 5_000 + "d"):
        assert client.get("/v1/drift", params={"since": period}).status_code == 200
    for name, value in (("status", "x"), ("kind", "x"), ("severity", "x"), ("since", "x")):
        bad = client.get("/v1/drift", params={name: value})
        assert (bad.status_code, bad.json()["field"]) == (400, name)
