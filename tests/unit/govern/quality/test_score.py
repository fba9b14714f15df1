"""A score is the stated formula, is no better than the worst upstream, or is unknown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import moment, output, run, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError, LowQualityError
from downriver.http import build_app
from downriver.sdk import lineage as open_tracker
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

AT = moment(4)


def checked(*results: tuple[str, bool, str]) -> dict:
    entries = [{"assertion": n, "success": s, "severity": v} for n, s, v in results]
    return {"dataQualityAssertions": {"assertions": entries}}


def shop() -> list[dict]:
    good = checked(("a", True, "error"), ("b", False, "error"), ("c", True, "warn"))
    return [
        *run("load", 0, reads=["source"], writes=[output("raw", good)]),
        *run("sum", 1, reads=["raw"], writes=[output("mart", checked(("a", True, "error")))]),
        *run("sum", 2, reads=["raw"], writes=[output("mart")], state="FAIL"),
        *run("sum", 3, reads=["raw"], writes=[output("mart")], state="RUNNING"),
        dataset_event("source"),
    ]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with told(tmp_path, shop()):
        pass
    return tmp_path


def test_a_score_is_the_stated_formula(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.quality("raw", AT)
    parts = {part.part: part.value for part in found.parts}
    assert parts == {"checks": 0.6, "runs": 1.0, "stability": 1.0}
    assert found.own == pytest.approx(100 * (0.6 * 0.6 + 0.2 + 0.2))
    assert found.own == found.score  # nothing is known of the source
    assert not found.complete
    assert "source" in {spot.entity.rpartition(":")[2] for spot in found.blind_spots}


def test_a_dataset_is_no_better_than_its_worst_upstream(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.quality("mart", AT)
    assert {part.part: part.value for part in found.parts}["runs"] == 0.5
    assert found.own == pytest.approx(100 * (0.6 + 0.2 * 0.5 + 0.2))
    assert found.worst_upstream is not None
    assert (found.score, found.worst_upstream.score, found.looked_at) == (76.0, 76.0, 2)
    assert found.worst_upstream.dataset.endswith(":raw")


def test_a_dataset_without_checks_and_runs_has_no_score(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        found = lineage.quality("source", AT)
        before = lineage.quality("mart", moment(0, -5))
    assert (found.score, found.own, found.complete) == (None, None, False)
    assert before.score is None  # nothing had happened yet


def test_a_tracker_refuses_a_low_or_unknown_score(store: Path) -> None:
    tracker = open_tracker(str(store)).sync
    assert tracker.require("raw", min_score=50).own == 76.0
    with pytest.raises(LowQualityError) as refused:
        tracker.require("mart", min_score=80)
    assert (refused.value.score, refused.value.required) == (76.0, 80)
    with pytest.raises(LowQualityError, match="unknown"):
        tracker.require("source", min_score=0)
    for no_score in (0.9, 1, -5, 101, float("nan")):  # each would accept or refuse every dataset
        with pytest.raises(InvalidRequestError, match="from 0 to 100"):
            tracker.require("raw", min_score=no_score)
    tracker.backend.close()


def test_the_command_and_the_route_give_one_score(store: Path) -> None:
    arguments = ("quality", "mart", "--at", AT, "--store", str(store))
    done = downriver(*arguments, "--json", "--fail-under", "76", cwd=store)
    found = json.loads(done.stdout)
    assert done.returncode == 0
    done = downriver(*arguments, "--fail-under", "0.76", cwd=store)
    assert (done.returncode, "write 90, not 0.9" in done.stderr) == (2, True)
    done = downriver(*arguments, "--fail-under", "77", cwd=store)
    assert (done.returncode, "worst of 2 upstream: 76" in done.stdout) == (1, True), done.stdout
    with Lineage.open(str(store)) as lineage, TestClient(build_app(lineage)) as client:
        asked = {"dataset": "mart", "at": AT}
        assert client.get("/v1/quality", params=asked).json() == found
        assert client.get("/v1/quality", params={"dataset": "sum"}).status_code == 400
