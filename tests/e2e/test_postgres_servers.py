"""Several servers on one PostgreSQL: an outage loses nothing, and all read all writes."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
from bench.postmaster import running_postmaster
from tests.server import running_server
from tests.unit.http.test_app import run_event

from downriver.service import Lineage

PATIENCE = 120


def ask(url: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data), timeout=PATIENCE) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def post(url: str, number: int) -> int:
    event = run_event(f"job_{number}", [f"in_{number}"], [f"out_{number}"])
    return ask(f"{url}/api/v1/lineage", event)[0]


@pytest.mark.slow
def test_an_outage_loses_nothing_and_the_servers_resume() -> None:
    with (
        running_postmaster() as postmaster,
        running_server(postmaster.url) as one,
        running_server(postmaster.url) as other,
    ):
        stored = [number for number in range(10) if post(one, number) == 201]
        assert len(stored) == 10
        postmaster.stop()
        refused = [post(one if number % 2 else other, number) for number in range(10, 16)]
        assert set(refused) == {503}  # OpenLineage clients retry on 503
        assert ask(f"{one}/readyz")[0] == 503
        assert ask(f"{one}/healthz")[0] == 200
        postmaster.start()
        deadline = time.monotonic() + PATIENCE
        for number in range(16, 26):
            server = one if number % 2 else other
            while post(server, number) != 201:
                assert time.monotonic() < deadline, "the server did not resume"
                time.sleep(0.2)
            stored.append(number)
        with Lineage.open(postmaster.url, create=False) as lineage:
            assert lineage.admin.verify().ok
        for server in (one, other):
            for number in stored:
                assert ask(f"{server}/v1/trace?entity=out_{number}")[0] == 200


@pytest.mark.slow
def test_a_server_answers_with_what_another_has_acknowledged() -> None:
    with (
        running_postmaster() as postmaster,
        running_server(postmaster.url) as one,
        running_server(postmaster.url) as other,
    ):
        for number in range(20):
            writer, reader = (one, other) if number % 2 else (other, one)
            assert post(writer, number) == 201
            status, trace = ask(f"{reader}/v1/trace?entity=out_{number}&direction=upstream")
            assert status == 200
            assert f"in_{number}" in {node["name"] for node in trace["nodes"]}
