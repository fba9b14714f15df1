"""The list of integrations: packages, and what was received from each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.unit.cli.command import downriver
from tests.unit.http.test_app import TestClient

from downriver.capture.integrations import INTEGRATIONS, Integration, installed_version
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path


def job_of(integration: str, name: str, at: str, producer: str = "") -> bytes:
    facet = {"integration": integration, "jobType": "TASK", "_producer": producer}
    return json.dumps(
        {
            "eventType": "COMPLETE",
            "eventTime": at,
            "run": {"runId": name},
            "job": {"namespace": "etl", "name": name, "facets": {"jobType": facet}},
        }
    ).encode()


def test_the_newest_job_of_each_integration_is_named(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest(
            [
                job_of("AIRFLOW", "old", "2026-01-01T00:00:00Z"),
                job_of("airflow", "new", "2026-02-01T00:00:00Z"),
                job_of("", "spark_job", "2026-02-01T00:00:00Z", "x/integration/spark/y"),
                job_of("INFORMATICA", "other", "2026-02-01T00:00:00Z"),
            ]
        )
        found = lineage.integrations()
    by_name = {entry.name: entry for entry in found.integrations}
    assert (by_name["airflow"].jobs, by_name["airflow"].last_job) == (2, "job:etl:new")
    assert by_name["airflow"].last_received == "2026-02-01T00:00:00Z"
    assert by_name["spark"].last_job == "job:etl:spark_job"
    assert (by_name["dbt"].jobs, by_name["dbt"].last_received) == (0, None)
    assert found.others == ["INFORMATICA"]


def test_a_package_that_is_not_installed_is_reported() -> None:
    assert installed_version(Integration("x", "", (), package="no-such-package")) is None
    assert installed_version(Integration("x", "", (), package="msgspec"))
    assert installed_version(Integration("x", "", ())) is None


def test_every_integration_is_listed_by_command_and_http(tmp_path: Path) -> None:
    done = downriver("integrations", "--json", "--store", str(tmp_path), cwd=tmp_path)
    names = [entry["name"] for entry in json.loads(done.stdout)["integrations"]]
    assert names == sorted(entry.name for entry in INTEGRATIONS)
    with Lineage.open(str(tmp_path)) as lineage, TestClient(build_app(lineage)) as client:
        assert client.get("/v1/integrations").json() == json.loads(done.stdout)
        assert client.get("/v1/versions", params={"entity": "none"}).status_code == 404
        lineage.ingest([job_of("AIRFLOW", "task", "2026-01-01T00:00:00Z")])
        assert client.get("/v1/versions", params={"entity": "task"}).status_code == 400


@pytest.mark.parametrize("entry", INTEGRATIONS, ids=lambda entry: entry.name)
def test_every_integration_has_a_page_and_a_known_extra(entry: Integration) -> None:
    from pathlib import Path

    root = Path(__file__).parents[3]
    assert (root / "docs" / "guide" / f"{entry.guide}.md").exists()
    if entry.extra:
        assert f"\n{entry.extra} = [" in (root / "pyproject.toml").read_text("utf-8")
