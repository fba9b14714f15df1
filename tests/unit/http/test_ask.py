"""Questions over HTTP: a stream of events that the web UI shows as it comes; entities' pages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from tests.unit.graph import events as e
from tests.unit.http.test_app import TestClient, run_event

from downriver.http import build_app
from downriver.http.v1 import ask
from downriver.service import Lineage


@pytest.fixture
def lineage(tmp_path, monkeypatch):
    monkeypatch.setenv("DOWNRIVER_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("DOWNRIVER_MODEL", "offline")
    with Lineage.open(str(tmp_path / "store")) as opened:
        yield opened


@pytest.fixture
def client(lineage):
    with TestClient(build_app(lineage)) as opened:
        opened.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
        opened.post("/api/v1/lineage", json=run_event("report", ["orders"], ["daily"]))
        yield opened


def events(text):
    parsed = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        parsed.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return parsed


def test_an_answer_streams_its_tool_calls_and_text(client):
    answer = client.post("/v1/ask", json={"question": "What is downstream of orders?"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    parsed = events(answer.text)
    names = [name for name, _ in parsed]
    assert names[-1] == "done"
    assert list(dict.fromkeys(names)) == ["tool", "tool_result", "text", "done"]
    text = "".join(content["text"] for name, content in parsed if name == "text")
    assert "daily" in text
    (result,) = [content for name, content in parsed if name == "tool_result"]
    assert result["ok"]
    assert "dataset:db:daily" in result["nodes"]
    assert parsed[-1][1]["graph"]["root"].startswith("dataset:db:")


def test_a_question_about_something_unknown_is_answered(client):
    parsed = events(client.post("/v1/ask", json={"question": "What feeds ordres?"}).text)
    assert parsed[-1][0] in ("done", "error")
    assert any("ordres" in json.dumps(content) for _, content in parsed)


def test_the_ids_that_an_ambiguous_name_may_mean_are_in_the_answer(client):
    event = run_event("copy", ["orders"], ["archive"])
    event["outputs"] = [{"namespace": "lake", "name": "orders"}]
    client.post("/api/v1/lineage", json=event)
    parsed = events(client.post("/v1/ask", json={"question": "What feeds orders?"}).text)
    text = "".join(content["text"] for name, content in parsed if name == "text")
    assert parsed[-1] == ("done", {"candidates": ["dataset:db:orders", "dataset:lake:orders"]})
    assert "dataset:lake:orders" in text


@pytest.mark.parametrize("body", [{"question": " "}, {"question": "x" * 10_001}, {}])
def test_a_wrong_question_is_refused(client, body):
    answer = client.post("/v1/ask", json=body)
    assert (answer.status_code, answer.json()["field"]) == (400, "question")


def test_too_many_questions_at_once_are_refused(client, monkeypatch):
    monkeypatch.setattr(ask, "_running", 8)
    assert client.post("/v1/ask", json={"question": "What feeds orders?"}).status_code == 503


def test_a_client_that_leaves_before_the_agent_starts_is_counted_no_longer(client):
    async def leave():
        stream = ask._answer(
            ask.AskRequest(question="What feeds orders?"), client.app.state.context
        )
        first = asyncio.create_task(anext(stream))
        await asyncio.sleep(0)
        assert ask._running == 1
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(leave())
    assert ask._running == 0


def test_questions_that_arrive_together_are_limited(client):
    async def ask_all():
        asked = ask.AskRequest(question="What feeds orders?")
        streams = [ask._answer(asked, client.app.state.context) for _ in range(20)]
        return [[part async for part in stream] async for stream in _each(streams)]

    async def _each(streams):
        firsts = [asyncio.create_task(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        assert ask._running <= 8
        for first, stream in zip(firsts, streams, strict=True):
            await first
            yield stream

    refused = [parts for parts in asyncio.run(ask_all()) if not parts]
    assert refused
    assert ask._running == 0


def test_the_agent_of_the_server_registers_nothing(client, lineage):
    before = lineage.admin.status().counts.events
    client.post("/v1/ask", json={"question": "Register that table a feeds table b"})
    assert lineage.admin.status().counts.events == before


def test_a_client_that_leaves_ends_the_work(client, lineage):
    context = client.app.state.context

    async def leave():
        asked = ask.AskRequest(question="What is downstream of orders?")
        stream = ask._answer(asked, context)
        await anext(stream)
        assert ask._running == 1
        await stream.aclose()
        return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]

    assert asyncio.run(leave()) == []
    assert ask._running == 0


def test_the_page_of_an_entity_has_code_checks_runs_and_facets(lineage, client):
    code = {"path": "models/orders.sql", "line": 3}
    checks = {"assertions": [{"assertion": "not_null", "success": False, "column": "id"}]}
    lineage.ingest(
        [
            e.run_event(
                "model",
                ["raw"],
                [e.dataset("sales", dataQualityAssertions=checks)],
                sql={"query": "select 1"},
                downriver_code=code,
            ),
        ]
    )
    job = client.get("/v1/entity", params={"entity": "job:etl:model"}).json()
    assert (job["sql"], job["source"]) == ("select 1", "models/orders.sql:3")
    assert job["facets"]["sql"] == {"query": "select 1"}
    table = client.get("/v1/entity", params={"entity": "sales"}).json()
    assert [(c["assertion"], c["success"]) for c in table["quality"]] == [("not_null", False)]
    assert table["last_good_run"]["job"] == "job:etl:model"
    assert table["sql"] is None


def test_an_entity_as_of_a_time_is_what_was_known_then(lineage, client):
    def load(at: str, state: str, *columns: str, success: bool = True) -> bytes:
        checks = {"assertions": [{"assertion": "not_null", "success": success}]}
        output = e.dataset("sales", schema=e.schema(*columns), dataQualityAssertions=checks)
        run = {"runId": f"run-{at[:10]}"}
        job = {"namespace": "etl", "name": "load"}
        return e.render(
            {"eventTime": at, "eventType": state, "run": run, "job": job, "outputs": [output]}
        )

    lineage.ingest(
        [
            load("2026-01-01T12:00:00Z", "COMPLETE", "id"),
            load("2026-01-02T11:00:00Z", "START", "id"),
            load("2026-01-02T12:00:00Z", "FAIL", "id", "price", success=False),
        ]
    )

    def sales(**query: str) -> dict[str, Any]:
        return client.get("/v1/entity", params={"entity": "sales", **query}).json()

    before = sales(as_of="2026-01-01T13:00:00Z")
    assert [column["name"] for column in before["columns"]] == ["id"]
    assert [check["success"] for check in before["quality"]] == [True]
    assert [run["state"] for run in before["runs"]] == ["COMPLETE"]
    during = sales(as_of="2026-01-02T11:30:00Z")
    assert [run["state"] for run in during["runs"]] == ["RUNNING", "COMPLETE"]
    now = sales()
    assert [column["name"] for column in now["columns"]] == ["id", "price"]
    assert [run["state"] for run in now["runs"]] == ["FAIL", "COMPLETE"]
    unborn = sales(as_of="2025-12-31T00:00:00Z")
    assert unborn["columns"] == []
    assert not unborn["complete"]
    assert [spot["kind"] for spot in unborn["blind_spots"]] == ["not_seen_yet"]


def test_an_unknown_field_of_an_asset_is_an_error_that_names_it(client):
    asset = {"asset_type": "table", "name": "orders", "upstream": ["raw"]}
    refused = client.post("/v1/lineage/trace", json=asset)
    assert refused.status_code == 422
    assert "upstream" in refused.json()["detail"]
