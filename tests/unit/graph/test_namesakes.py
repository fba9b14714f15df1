"""Thousands of datasets with the same last part of their name: bounded time, and a blind spot."""

from __future__ import annotations

import json

from tests.test_growing_inputs import cpu_limit

from downriver.service import Lineage


def written(count: int) -> bytes:
    """Render an event of a job that writes datasets with the same last part of their names."""
    content = json.loads(event(count))
    content["job"]["name"] = "copy"
    content["inputs"], content["outputs"] = (
        [],
        [{"namespace": f"w{number}", "name": "t"} for number in range(count)],
    )
    return json.dumps(content).encode()


def event(count: int) -> bytes:
    content = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "run": {"runId": "1"},
        "job": {"namespace": "etl", "name": "load"},
        "inputs": [{"namespace": f"n{number}", "name": "shop.t"} for number in range(count)],
        "outputs": [{"namespace": "db", "name": "orders"}],
    }
    return json.dumps(content).encode()


def test_a_trace_of_thousands_of_namesakes_takes_little_time_and_is_incomplete(tmp_path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([event(5_000)])
        lineage.session.prepare()
        with cpu_limit("a trace", seconds=10):
            answer = lineage.trace("orders", "upstream")
    assert not answer.complete
    (spot,) = [s for s in answer.blind_spots if s.kind == "possible_cut"]
    assert "too many" in spot.message
    assert spot.entity.endswith(":shop.t")


def test_a_few_namesakes_are_compared(tmp_path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([event(20)])
        answer = lineage.trace("orders", "upstream")
    assert not [spot for spot in answer.blind_spots if spot.kind == "possible_cut"]


def test_the_list_of_possible_cuts_says_which_names_were_not_compared(tmp_path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([event(1_000), written(1_000)])
        possible = lineage.identity.possible_cuts()
    assert not possible.complete
    (spot,) = possible.blind_spots
    assert spot.kind == "possible_cut"
    assert "too many" in spot.message


def test_a_list_of_possible_cuts_that_compared_every_name_is_complete(tmp_path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([event(5), written(5)])
        possible = lineage.identity.possible_cuts()
    assert (possible.complete, possible.blind_spots) == (True, [])
