"""A gate before deployment: the policy decides about a change, a model may explain.

python examples/agent/gate.py
"""

from __future__ import annotations

import asyncio

from downriver import Agent, Tracker, lineage

PROMPT = """You assess changes to data before they ship. Look at the impact, list who is affected,
and answer with DECISION, RISK, AFFECTED SYSTEMS, REASON and RECOMMENDATION."""


async def known_flows(tracker: Tracker) -> None:
    await tracker.register_pipeline(
        "riders",
        [
            {"source_id": "table:riders_clean", "target_id": "table:rider_profile"},
            {"source_id": "table:rider_profile", "target_id": "table:riders_at_risk"},
            {"source_id": "table:rider_profile", "target_id": "table:revenue_board"},
            {"source_id": "table:revenue_board", "target_id": "table:board_report"},
        ],
    )
    await tracker.register_pipeline(
        "sessions",
        [
            {"source_id": "table:app_events_v1", "target_id": "table:app_sessions"},
            {"source_id": "table:app_sessions", "target_id": "table:session_figures"},
        ],
    )


async def gate(tracker: Tracker, entity: str, kind: str, change: str) -> str:
    agent = Agent(name="Gate", model="gpt-4o-mini", prompt=PROMPT, tools=[tracker], role="gate")
    await agent.start()
    decision = await agent.run(f"""
        Proposed change: {change}
        Entity: {entity}
        Change type: {kind}
        Say whether it may ship.
    """)
    await agent.stop()
    return decision


async def main() -> None:
    tracker = lineage()
    await known_flows(tracker)
    print("== rename rider_id in riders_clean ==")
    change = "Rename column rider_id to account_id, as everywhere else"
    print(await gate(tracker, "table:riders_clean", "schema_change", change))
    print("\n== retire app_events_v1 ==")
    change = "Decommission app_events_v1, everyone should be on v2 by now"
    print(await gate(tracker, "table:app_events_v1", "deprecation", change))
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
