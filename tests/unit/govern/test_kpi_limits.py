"""KPIs are gates: the exit code follows from limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import output, run, told
from tests.unit.http.test_app import TestClient

from downriver.http import build_app

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [*run("clean", 0, reads=["raw"], writes=[output("clean")]), dataset_event("orphan")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--fail-under", "coverage=75"), 0, ""),
        (("--fail-under", "coverage=75.1"), 1, "coverage is 75, below 75.1"),
        (("--fail-over", "orphans=1"), 0, ""),
        (("--fail-over", "orphans=0"), 1, "orphans is 1, above 0"),
        (("--fail-under", "known-upstream=1"), 2, "'known_upstream' is not one of coverage"),
        (("--fail-under", "upstream-coverage=100%"), 0, ""),
        (("--fail-under", "coverage"), 2, "is not KPI=NUMBER"),
        (("--fail-under", "coverage=nan"), 2, "is not KPI=NUMBER"),
        (("--fail-over", "orphans=inf"), 2, "is not KPI=NUMBER"),
        (("--fail-under", "integrity=100"), 1, "has no value: there is nothing to count"),
        (("--fail-under", "coverage=0.95"), 2, "write 95, not 0.95"),
        (("--fail-under", "coverage=1%"), 0, ""),
        (("--fail-under", "orphans=1"), 0, ""),
        (("--fail-over", "orphans=0", "--fail-under", "coverage=99"), 1, "below 99"),
    ],
)
def test_limits_decide_the_exit_code(
    folder: Path, options: tuple[str, ...], code: int, message: str
) -> None:
    done = downriver("kpis", *options, cwd=folder)
    assert (done.returncode, message in done.stderr) == (code, True)
    assert downriver("kpis", *options, "--json", cwd=folder).returncode == code


def test_coverage_is_that_of_the_inventory_when_one_is_given(folder: Path) -> None:
    (folder / "tables.txt").write_text("raw\nclean\nnobody\n")
    done = downriver("kpis", "--inventory", "tables.txt", "--fail-under", "coverage=70", cwd=folder)
    assert (done.returncode, "coverage is 66.7, below 70" in done.stderr) == (1, True)


def test_the_badge_and_the_metrics_show_the_coverage(folder: Path) -> None:
    downriver("kpis", "--badge", "badge.svg", cwd=folder)
    badge = (folder / "badge.svg").read_text()
    assert "lineage: 75%" in "".join(ET.fromstring(badge).itertext())
    with told(folder / "http", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        answer = client.get("/v1/kpis/badge")
        assert (answer.text, answer.headers["content-type"]) == (badge, "image/svg+xml")
        lines = client.get("/v1/kpis/metrics").text.splitlines()
    assert 'downriver_kpi{name="coverage"} 75' in lines
    assert 'downriver_kpi{name="orphans"} 1' in lines
    assert not [line for line in lines if "certified_path_integrity" in line]
