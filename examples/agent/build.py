"""Build a lineage graph from a description, and query it.

    python examples/agent/build.py

With OPENAI_API_KEY set a model reads the description; without it fixed rules do.
"""

from __future__ import annotations

import asyncio

from downriver import Agent, lineage

PIPELINES = """
Please register the pipelines of our bike rental:

Rider profile pipeline (runs every day at 5am):
- The accounts API exports riders into raw_riders
- raw_riders is deduplicated and geocoded into riders_clean
- riders_clean is joined with trip history and support tickets into rider_profile
- rider_profile feeds a churn model that writes to riders_at_risk

Revenue pipeline (runs hourly):
1. Stripe streams charges into raw_charges
2. raw_charges is aggregated by station into station_revenue
3. station_revenue feeds weekly rollups into revenue_board
"""


async def main() -> None:
    tracker = lineage()
    agent = Agent(
        name="Builder",
        model="gpt-4o-mini",
        prompt="You register data flows. Ids are table:name, api:name, model:name.",
        tools=[tracker],
    )
    await agent.start()
    print(await agent.run(PIPELINES))
    print()
    print(await agent.run("Trace everything downstream of raw_riders. Who depends on it?"))
    await agent.stop()
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
