"""The agent without a model: intents, actions and replies."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from downriver import Agent, lineage
from downriver.agent.grammar.change_requests import parse_change
from downriver.agent.offline.intents import read_intent
from downriver.agent.offline.planner import parse_gate_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver import Tracker

QUESTIONS = Path(__file__).parents[2] / "golden" / "agent" / "questions.txt"

WAREHOUSE = """
Register our nightly warehouse pipelines:
Customer 360 pipeline (runs at 6am daily):
- CRM API pulls customer data into raw_customers
- raw_customers is cleaned and deduplicated into customers_clean
- customers_clean is joined with order history and NPS scores into customer_360
- customer_360 feeds a churn prediction model that writes to churn_risk_scores
Revenue pipeline (runs hourly):
- Stripe API streams payment events into raw_transactions
- raw_transactions is aggregated by day into revenue_daily
- revenue_daily feeds MTD/QTD/YTD rollups into revenue_dashboard
"""


def questions() -> list[list[str]]:
    lines = QUESTIONS.read_text("utf-8").splitlines()
    return [line.split(" | ", 3) for line in lines if not line.startswith("#")]


@pytest.mark.parametrize(("kind", "direction", "depth", "text"), questions())
def test_a_question_is_understood(kind: str, direction: str, depth: str, text: str) -> None:
    intent = read_intent(text)
    assert intent.kind == kind
    if kind in ("trace", "diagram"):
        assert intent.direction == direction
        assert str(intent.depth or "-") == depth


@pytest.fixture
def tracker(tmp_path: Path) -> Iterator[Tracker]:
    found = lineage(str(tmp_path / "store"))
    yield found
    found.sync.close()


@pytest.fixture
def agent(tracker: Tracker) -> Agent:
    return Agent("Steward", "offline", "You are the steward.", tools=[tracker])


def ask(agent: Agent, *messages: str) -> str:
    async def talk() -> str:
        answer = ""
        for message in messages:
            answer = await agent.run(message)
        return answer

    return asyncio.run(talk())


def test_a_described_warehouse_is_registered_and_can_be_traced(agent: Agent, tracker) -> None:
    told = ask(agent, WAREHOUSE)
    assert told.startswith("Registered 10 flows.")
    assert agent.calls[0].tool == "describe_pipeline"
    found = tracker.sync.trace_downstream("raw_customers")
    assert [entity.entity_id for entity in found.downstream_consumers] == [
        "table:customers_clean",
        "table:customer_360",
        "model:churn_prediction",
        "table:churn_risk_scores",
    ]
    (flow,) = tracker.sync.get_entity("customers_clean").flows
    assert flow.transformation == "cleaned and deduplicated"
    assert flow.schedule == "at 6am daily"
    assert flow.metadata["confidence"] == 0.94
    told = ask(agent, "Trace everything downstream of raw_customers. What systems depend on it?")
    assert "4 datasets, up to 4 steps away" in told
    assert "Complete: no blind spots." in told


def test_upstream_is_traced_to_the_original_sources(agent: Agent) -> None:
    told = ask(
        agent,
        WAREHOUSE,
        "Where does the data in revenue_dashboard ultimately come from? "
        "Trace it all the way back to the original sources.",
    )
    assert "Original sources: api:stripe." in told
    assert agent.calls[-1].tool == "trace_upstream"


def test_an_entity_is_drawn_below_its_own_parent(agent: Agent) -> None:
    told = ask(agent, "a1 -> b1\na1 -> c1\nb1 -> d1\nc1 -> e1\nd1 -> e1", "What depends on a1?")
    assert told.splitlines()[1:6] == [
        "  table:b1 — feeds",
        "    table:d1 — feeds",
        "  table:c1 — feeds",
        "    table:e1 — feeds (also under table:d1)",
        "Final consumers: table:e1.",
    ]
    told = ask(agent, "What feeds d1?")
    assert told.splitlines()[1:3] == ["  table:b1 — feeds", "    table:a1 — feeds"]


def test_a_misspelt_word_is_read_and_shown(agent: Agent, tracker) -> None:
    told = ask(agent, "raw_orders is claened itno orders_clean")
    assert "Read 'claened' as 'cleaned', 'itno' as 'into'." in told
    assert "Read 'Waht' as 'what'." in ask(agent, "Waht feeds orders_clean")
    assert tracker.sync.search_entities("").total == 2


def test_a_name_of_the_graph_is_not_corrected(agent: Agent, tracker) -> None:
    tracker.sync.register_flow("table:waht", "table:raw_orders")
    assert "table:waht → table:orders_clean" in ask(agent, "waht feeds orders_clean")


def test_the_lineage_of_an_earlier_moment(agent: Agent) -> None:
    ask(agent, "raw_orders -> orders_clean")
    assert "has no known upstream as of 2" in ask(agent, "What fed orders_clean last week?")
    assert "only traces" in ask(agent, "Who owns orders_clean as of last week?")


def test_a_requested_flow_is_registered(agent: Agent, tracker) -> None:
    ask(
        agent,
        WAREHOUSE,
        "The ML team wants to add a new flow: reading from customer_360 and writing "
        "churn predictions to model:churn_v3. Register that flow for them.",
    )
    found = tracker.sync.trace_upstream("model:churn_v3", 1)
    assert [entity.entity_id for entity in found.upstream_sources] == ["table:customer_360"]


def test_a_diagram_has_the_edges(agent: Agent) -> None:
    told = ask(
        agent,
        WAREHOUSE,
        "Generate a Mermaid diagram showing the full lineage of customer_360 in both directions.",
    )
    assert told.startswith("```mermaid\nflowchart")
    assert told.count("-->") == 7
    assert "8 nodes, 7 edges." in told


def test_the_risk_has_names_and_counts(agent: Agent) -> None:
    told = ask(
        agent,
        WAREHOUSE,
        "How risky would it be to change the schema of raw_transactions? What is the blast radius?",
    )
    assert "risk HIGH, 2 systems affected (1 directly)" in told
    assert "revenue_daily" in told
    assert "Not complete" in told


def test_a_request_for_the_gate_is_decided_by_policy(agent: Agent, tracker) -> None:
    for source, target in [
        ("customers_clean", "customer_360"),
        ("customer_360", "churn_risk_scores"),
        ("customer_360", "revenue_dashboard"),
        ("revenue_dashboard", "executive_kpis"),
        ("raw_events_v1", "session_events"),
        ("session_events", "session_metrics"),
    ]:
        tracker.sync.register_flow(f"table:{source}", f"table:{target}")
    told = ask(
        agent,
        """
        Proposed change: Rename column customer_id to cust_id for naming consistency
        Entity: table:customers_clean
        Change type: schema_change
        Assess the downstream impact and return your decision.
        """,
    )
    assert told.startswith("DECISION: BLOCKED\nRISK: HIGH\nAFFECTED SYSTEMS: 4\nREASON: ")
    assert "RECOMMENDATION: " in told
    told = ask(
        agent,
        """
        Proposed change: Decommission raw_events_v1, all consumers should have migrated to v2
        Entity: table:raw_events_v1
        Change type: deprecation
        """,
    )
    assert told.startswith("DECISION: CAUTION\nRISK: MEDIUM\nAFFECTED SYSTEMS: 2\nREASON: ")
    assert "session_events and session_metrics" in told


def test_a_gate_that_cannot_decide_blocks(agent: Agent) -> None:
    told = ask(agent, "Entity: table:nowhere\nChange type: schema_change")
    assert told.startswith("DECISION: BLOCKED")
    assert "cannot decide" in told
    labels = ["DECISION", "RISK", "AFFECTED SYSTEMS", "REASON", "RECOMMENDATION"]
    assert [line.partition(":")[0] for line in told.splitlines()] == labels


def test_whether_to_proceed_is_answered_with_a_decision(agent: Agent) -> None:
    told = ask(
        agent,
        "raw_orders is cleaned into orders_clean. orders_clean is aggregated into revenue_daily.",
        """
        The team wants to change the schema of orders_clean — adding a new required
        column. Assess the downstream impact and tell me if we should proceed.
        """,
    )
    assert told.startswith("DECISION: ")
    assert "no name yet" in told


def test_it_means_the_entity_of_the_last_question(agent: Agent) -> None:
    told = ask(agent, WAREHOUSE, "What feeds revenue_daily?", "What depends on it?")
    assert told.startswith("Downstream of table:revenue_daily")


def test_an_unknown_name_gets_similar_names(agent: Agent) -> None:
    told = ask(agent, WAREHOUSE, "What depends on raw_custmers?")
    assert "No dataset, column or job named 'raw_custmers'" in told
    assert "raw_customers" in told
    told = ask(agent, "Why is revenue wrong?")
    assert "table:revenue_daily" in told


def test_an_ambiguous_name_is_refused(agent: Agent, tracker) -> None:
    tracker.sync.register_flow("dataset:prod:orders", "table:a1")
    tracker.sync.register_flow("dataset:test:orders", "table:a2")
    told = ask(agent, "orders feeds revenue")
    assert "Registered" not in told.splitlines()[-1]
    assert "matches several entities" in told
    assert tracker.sync.search_entities("revenue").total == 0


def test_a_known_name_is_resolved_and_a_similar_one_shown(agent: Agent) -> None:
    ask(agent, WAREHOUSE)
    assert "(similar known name: raw_customers)" in ask(agent, "raw_custmers feeds audit_log")
    assert "similar" not in ask(agent, "raw_customers feeds audit_copy")


def test_lines_that_cannot_be_read_are_returned(agent: Agent) -> None:
    told = ask(agent, "- raw_a feeds b\n- frobnicate the widgets\n- b feeds c")
    assert told.startswith("Registered 2 flows.")
    assert "line 2: frobnicate the widgets" in told


def test_sql_is_captured_with_its_columns(agent: Agent) -> None:
    told = ask(agent, "Capture this:\n```sql\nINSERT INTO t SELECT a + b AS c FROM s\n```")
    assert "Captured: s → t." in told
    assert "s.a → t.c" in told
    assert "s.a, s.b" in ask(agent, "How is t.c computed?")


def test_a_column_is_diagnosed_and_a_dataset_gets_an_incident_report(agent: Agent) -> None:
    ask(agent, "INSERT INTO t SELECT a + b AS c FROM s")
    assert "t.c is derived from" in ask(agent, "Why is t.c wrong?")
    assert agent.calls[-1].tool == "diagnose_metric"
    ask(agent, "What's wrong with table:t?")
    assert agent.calls[-1].tool == "incident_report"


def test_a_column_is_traced_as_a_column(agent: Agent) -> None:
    ask(agent, "INSERT INTO t SELECT a + b AS c FROM s", "INSERT INTO u SELECT c AS d FROM t")
    assert "from s.a, s.b" in ask(agent, "Where does t.c come from?")
    assert agent.calls[-1].tool == "get_column_lineage"
    assert "from t.c" in ask(agent, "How is d in table:u computed?")
    told = ask(agent, "Who uses s.a?")
    assert "2 columns, up to 2 steps away" in told
    assert "u:d" in told or "u.d" in told


def test_kpis_are_reported(agent: Agent) -> None:
    told = ask(agent, WAREHOUSE, "show me the kpis")
    assert "lineage coverage: " in told
    assert "blast radius" in told


def test_an_agent_that_opens_the_store_is_read_only(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DOWNRIVER_STORE", raising=False)

    async def talk() -> str:
        async with Agent(model="offline") as agent:
            return await agent.run("raw_a feeds b")

    told = asyncio.run(talk())
    assert told.startswith("Would register 1 flow.")
    assert "allow_writes=True" in told


def test_writing_can_be_forbidden(tracker) -> None:
    agent = Agent(model="offline", tools=[tracker], allow_writes=False)
    assert "Nothing was written" in ask(agent, "raw_a feeds b")
    assert "not allowed" in ask(agent, "INSERT INTO t SELECT a FROM s")
    assert tracker.sync.search_entities("").total == 0


def test_an_answer_streams_line_by_line(agent: Agent) -> None:
    async def pieces() -> list[str]:
        return [piece async for piece in agent.stream("help")]

    assert len(asyncio.run(pieces())) > 5


def test_the_same_question_gets_the_same_answer(agent: Agent) -> None:
    ask(agent, WAREHOUSE)
    question = "What breaks if I drop customers_clean?"
    assert ask(agent, question) == ask(agent, question)


CHANGES = [
    (
        "Rename column customer_id to cust_id",
        "customers",
        {"type": "column_rename", "from": "customer_id", "to": "cust_id"},
    ),
    ("rename orders to orders_v2", "table:orders", {"type": "table_rename", "to": "orders_v2"}),
    ("rename the table to orders_v2", "orders", {"type": "table_rename", "to": "orders_v2"}),
    ("rename to orders_v2", "orders", {"type": "table_rename", "to": "orders_v2"}),
    (
        "rename column to to until",
        "o",
        {"type": "column_rename", "from": "to", "to": "until"},
    ),
    ("drop orders", "orders", {"type": "table_drop"}),
    ("delete the table", "orders", {"type": "table_drop"}),
    ("drop the email column", "users", {"type": "column_drop", "column": "email"}),
    ("remove field phone", "users", {"type": "column_drop", "column": "phone"}),
    (
        "change the type of amount to BIGINT",
        "o",
        {"type": "type_change", "column": "amount", "to": "BIGINT"},
    ),
    (
        "convert amount from INT to DECIMAL(10,2)",
        "o",
        {"type": "type_change", "column": "amount", "to": "DECIMAL(10,2)"},
    ),
    (
        "make email NOT NULL",
        "u",
        {"type": "nullability_change", "column": "email", "nullable": False},
    ),
    (
        "make the email column nullable",
        "u",
        {"type": "nullability_change", "column": "email", "nullable": True},
    ),
    ("deprecate the old_id column", "u", {"type": "deprecation", "column": "old_id"}),
    ("Decommission raw_events_v1", "raw_events_v1", {"type": "deprecation"}),
    ("add column region", "o", {"type": "column_add", "column": "region", "required": False}),
    (
        "add a required column called region",
        "o",
        {"type": "column_add", "column": "region", "required": True},
    ),
    ("change how revenue is calculated", "o", {"type": "logic_change", "columns": []}),
    ("change the schema of raw_transactions", "raw_transactions", {"type": "schema_change"}),
]


@pytest.mark.parametrize(("text", "entity", "change"), CHANGES)
def test_a_proposed_change_is_read(text: str, entity: str, change: dict[str, object]) -> None:
    proposed = parse_change(text, entity)
    assert proposed is not None
    assert proposed.changes == [change]


@pytest.mark.parametrize("text", ["can I rename it to cust_id?", "rename to cust_id"])
def test_a_change_of_the_column_in_question(text: str) -> None:
    proposed = parse_change(text, "orders", "", "customer_id")
    assert proposed is not None
    assert proposed.changes == [{"type": "column_rename", "from": "customer_id", "to": "cust_id"}]


def test_labels_of_a_request_may_come_in_any_order() -> None:
    said = parse_gate_message("Change type: drop\nENTITY:  `table:x` \nDescription: because")
    assert said == ("table:x", "drop", "because")
    assert parse_gate_message("What is an entity?") is None
