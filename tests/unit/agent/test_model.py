"""The agent with a model: a local server implements OpenAI's chat API."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from tests.fake_openai import ErrorReply, TextReply, ToolReply, fake_openai

from downriver import Agent, lineage
from downriver.errors import EntityNotFoundError, InvalidRequestError, ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver import Tracker


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    found = lineage(str(tmp_path / "store"))
    found.sync.register_pipeline(
        "orders",
        [
            {"source_id": "table:raw_orders", "target_id": "table:orders_clean"},
            {"source_id": "table:orders_clean", "target_id": "table:revenue_daily"},
        ],
    )
    yield found
    found.sync.close()


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def use(fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("OPENAI_BASE_URL", fake.url)


TRACE = ToolReply("trace_downstream", {"entity_id": "raw_orders"})
ASKED = "What depends on raw_orders?"


def test_a_model_calls_tools_and_its_text_is_the_answer(tracker, monkeypatch) -> None:
    with fake_openai(TRACE, TextReply("Two tables do.")) as fake:
        use(fake, monkeypatch)
        agent = Agent("Steward", "gpt-4o-mini", "Be thorough.", tools=[tracker])
        answer = asyncio.run(agent.run(ASKED))
    assert answer == "Two tables do."
    assert agent.model == "openai:gpt-4o-mini"
    assert [(call.tool, call.ok) for call in agent.calls] == [("trace_downstream", True)]
    told = json.loads(fake.results()[0])
    assert told["total"] == 2
    assert told["complete"] is True
    assert [e["entity_id"] for e in told["entities"]] == [
        "table:orders_clean",
        "table:revenue_daily",
    ]
    assert fake.keys[0] == "Bearer sk-test"
    assert fake.requests[0]["model"] == "gpt-4o-mini"
    assert "Be thorough." in str(fake.requests[0]["messages"][0]["content"])
    schema = fake.offered["trace_downstream"]["parameters"]
    assert schema["required"] == ["entity_id"]


def test_an_answer_is_streamed_in_parts(tracker, monkeypatch) -> None:
    async def pieces(agent: Agent) -> list[str]:
        return [piece async for piece in agent.stream(ASKED)]

    with fake_openai(TRACE, TextReply("Two tables do, in all.")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker])
        found = asyncio.run(pieces(agent))
    assert "".join(found).strip() == "Two tables do, in all."
    assert len([piece for piece in found if piece]) > 3
    assert fake.requests[0]["stream"] is True
    assert [call.tool for call in agent.calls] == ["trace_downstream"]


def test_the_conversation_is_remembered(tracker, monkeypatch) -> None:
    async def talk(agent: Agent) -> None:
        await agent.run(ASKED)
        await agent.run("And what feeds it?")

    with fake_openai(TextReply("Two.")) as fake:
        use(fake, monkeypatch)
        asyncio.run(talk(Agent(model="gpt-4o-mini", tools=[tracker])))
    said = [m["content"] for m in fake.requests[-1]["messages"] if m["role"] == "user"]
    assert said == [ASKED, "And what feeds it?"]


def test_a_read_only_agent_offers_no_writing_tools(tracker, monkeypatch) -> None:
    write = ToolReply("register_flow", {"source_id": "table:a", "target_id": "table:b"})
    with fake_openai(write, TextReply("I could not.")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], allow_writes=False)
        asyncio.run(agent.run("Register a flow from a to b"))
        assert "register_flow" not in fake.offered
        assert "describe_pipeline" in fake.offered  # with dry_run
    with pytest.raises(EntityNotFoundError):
        tracker.sync.get_entity("table:b")


def test_an_agent_with_write_permission_registers_flows(tracker, monkeypatch) -> None:
    flow = {"source_id": "table:revenue_daily", "target_id": "table:kpis", "transformation": "x"}
    with fake_openai(ToolReply("register_flow", flow), TextReply("Done.")) as fake:
        use(fake, monkeypatch)
        asyncio.run(Agent(model="gpt-4o-mini", tools=[tracker]).run("Register it"))
    assert tracker.sync.trace_upstream("kpis").count == 3


def test_the_model_gets_the_error_of_a_call(tracker, monkeypatch) -> None:
    wrong = ToolReply("trace_downstream", {"entity_id": "raw_ordrs"})
    with fake_openai(wrong, TextReply("There is no such table.")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker])
        assert asyncio.run(agent.run("What depends on raw_ordrs?")) == "There is no such table."
    assert "Did you mean: raw_orders" in str(fake.results()[0])
    assert agent.calls[0].ok is False


def test_a_model_is_stopped_at_the_limit_of_tool_calls(tracker, monkeypatch) -> None:
    with fake_openai(TRACE) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], max_steps=3)
        with pytest.raises(ModelError, match="limit"):
            asyncio.run(agent.run(ASKED))
    assert len(agent.calls) == 3


def test_a_model_is_stopped_at_the_limit_of_tokens(tracker, monkeypatch) -> None:
    with fake_openai(TRACE, tokens=600) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], max_tokens=1000)
        with pytest.raises(ModelError, match="tokens"):
            asyncio.run(agent.run(ASKED))
    assert len(fake.requests) == 1


def test_an_error_of_the_model_server_is_reported(tracker, monkeypatch) -> None:
    with fake_openai(ErrorReply(401, "Incorrect API key provided")) as fake:
        use(fake, monkeypatch)
        with pytest.raises(ModelError, match="Incorrect API key"):
            asyncio.run(Agent(model="gpt-4o-mini", tools=[tracker]).run(ASKED))


GATE = """
Proposed change: Rename column order_id to id
Entity: table:orders_clean
Change type: schema_change
"""


@pytest.mark.parametrize(
    "words",
    [
        "DECISION: APPROVED\nRISK: LOW\nNothing to fear.",
        "Everyone is fine; it is safe to proceed.",
        "DECISION: BLOCKED\nRISK: LOW",
        "DECISION: BLOCKED\nAFFECTED SYSTEMS: 0",
    ],
)
def test_a_text_that_contradicts_the_policy_is_replaced_by_the_verdict(
    tracker, monkeypatch, words
) -> None:
    with fake_openai(TextReply(words)) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], role="gate")
        answer = asyncio.run(agent.run(GATE))
    assert answer.startswith("DECISION: BLOCKED\nRISK: HIGH\nAFFECTED SYSTEMS: 1\n")
    assert words not in answer
    assert "contradicted" in answer
    assert agent.calls[0].tool == "gate_change"


def test_a_consistent_explanation_follows_the_verdict(tracker, monkeypatch) -> None:
    words = "BLOCKED: revenue_daily may read order_id. Do not go ahead before that is known."
    with fake_openai(TextReply(words)) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], role="gate")
        answer = asyncio.run(agent.run(GATE))
    assert answer.startswith("DECISION: BLOCKED\n")
    assert answer.endswith(words)


def test_a_steward_that_contradicts_its_tool_is_overruled(tracker, monkeypatch) -> None:
    impact = ToolReply("analyze_impact", {"entity_id": "orders_clean", "change_type": "deletion"})
    with fake_openai(impact, TextReply("APPROVED. Drop it, no one reads it.")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker])
        answer = asyncio.run(agent.run("Can we drop orders_clean?"))
    assert answer.startswith("DECISION: BLOCKED")
    assert "no one reads it" not in answer


def test_a_model_that_decides_without_asking_is_overruled(tracker, monkeypatch) -> None:
    with fake_openai(TextReply("It is safe to drop it.")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker])
        answer = asyncio.run(agent.run("Is it safe to drop orders_clean?"))
    assert answer.startswith("DECISION: BLOCKED")


def test_a_gate_whose_model_is_down_still_decides(tracker, monkeypatch) -> None:
    with fake_openai(ErrorReply(400, "no")) as fake:
        use(fake, monkeypatch)
        agent = Agent(model="gpt-4o-mini", tools=[tracker], role="gate")
        answer = asyncio.run(agent.run(GATE))
    assert answer.startswith("DECISION: BLOCKED")
    assert "No explanation from the model" in answer


def test_without_a_key_the_agent_answers_offline_with_a_notice(tracker) -> None:
    told: list[str] = []
    agent = Agent("x", "gpt-4o-mini", "prompt", tools=[tracker], notify=told.append)
    answer = asyncio.run(agent.run(ASKED))
    assert told == ["no API key for gpt-4o-mini (OPENAI_API_KEY is not set); answering offline"]
    assert agent.model == "offline"
    assert "table:revenue_daily" in answer


@pytest.mark.parametrize(
    ("model", "key", "chosen"),
    [
        ("offline", "OPENAI_API_KEY", "offline"),
        (None, "NOTHING", "offline"),
        (None, "OPENAI_API_KEY", "openai:gpt-4o-mini"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4-5", "OPENAI_API_KEY", "offline"),
        ("groq:llama", "GROQ_API_KEY", "groq:llama"),
    ],
)
def test_the_model_is_chosen_by_name_and_key(tracker, monkeypatch, model, key, chosen) -> None:
    monkeypatch.setenv(key, "k")
    agent = Agent(model=model, tools=[tracker], notify=lambda notice: None)
    assert agent.model == chosen


def test_a_custom_endpoint_needs_no_key(tracker, monkeypatch) -> None:
    with fake_openai(TextReply("Hello.")) as fake:
        monkeypatch.setenv("OPENAI_BASE_URL", fake.url)
        agent = Agent(model="llama3.1:8b", tools=[tracker])
        assert asyncio.run(agent.run("hello")) == "Hello."
    assert fake.requests[0]["model"] == "llama3.1:8b"


@pytest.mark.parametrize("option", ["max_steps", "max_tokens"])
def test_limits_below_one_are_refused(tracker, option) -> None:
    with pytest.raises(InvalidRequestError, match=option):
        Agent(model="offline", tools=[tracker], **{option: 0})


def test_a_tool_that_is_not_a_tracker_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="lineage"):
        asyncio.run(Agent(model="offline", tools=["orders"]).run("help"))
