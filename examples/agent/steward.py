"""A steward for daily questions: sources, new flows, diagrams, risks.

python examples/agent/steward.py
"""

from __future__ import annotations

import asyncio

from downriver import Agent, lineage

KNOWN = """
Stripe streams charges into raw_charges
raw_charges is aggregated by station into station_revenue
station_revenue feeds weekly rollups into revenue_board
riders_clean is joined with trip history into rider_profile
"""
QUESTIONS = [
    "Where does the data in revenue_board come from in the end? Go back to the first sources.",
    "The pricing team wants to add a new flow: reading from rider_profile and writing discount "
    "offers to model:offers_v2. Register that flow.",
    "Draw a Mermaid diagram with the whole lineage of rider_profile, both ways.",
    "How risky is it to change the schema of raw_charges? What is the blast radius?",
    "How does api:stripe reach revenue_board?",
]


async def main() -> None:
    tracker = lineage()
    steward = Agent(name="Steward", model="gpt-4o-mini", role="steward", tools=[tracker])
    await steward.start()
    await steward.run(KNOWN)
    for question in QUESTIONS:
        print(f"Q: {question}\n")
        async for piece in steward.stream(question):
            print(piece, end="")
        print("\n" + "-" * 60)
    await steward.stop()
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
