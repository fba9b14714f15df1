"""All parts in one run: build the graph, capture SQL, assess a change, export a diagram.

python examples/agent/whole_day.py
"""

from __future__ import annotations

import asyncio

from downriver import Agent, lineage

PROMPT = """You keep the lineage of a warehouse and judge changes to it. Ids are table:name,
api:name, model:name. For a change, look at its impact first and say APPROVED, CAUTION or BLOCKED
with your reasons. For a diagram, use Mermaid."""


async def main() -> None:
    tracker = lineage()
    agent = Agent(name="Keeper", model="gpt-4o-mini", prompt=PROMPT, tools=[tracker])
    await agent.start()
    print(
        await agent.run("""
        Register our nightly warehouse pipeline:
        - MySQL production DB extracts into raw_trips
        - raw_trips is cleaned and normalized into trips_clean
        - trips_clean is aggregated into station_daily
        - station_daily feeds MTD/QTD/YTD rollups into board_report
        Schedule: nightly at 3am
    """)
    )
    await tracker.capture_sql_lineage(
        sql="""INSERT INTO idle_riders
               SELECT r.rider_id, r.plan FROM riders r
               JOIN trips_clean t ON r.rider_id = t.rider_id
               WHERE t.started_at < NOW() - INTERVAL '60 days'""",
        transformation="Riders without a trip in 60 days",
    )
    print("\nThe change:")
    print(
        await agent.run("""
        The team wants to drop column rider_id from trips_clean. Assess the downstream
        impact and tell me if we should proceed.
    """)
    )
    print("\nThe diagram:")
    print(
        await agent.run("Generate a Mermaid diagram of the full upstream lineage of board_report")
    )
    print(f"\nTools used: {', '.join(call.tool for call in agent.calls)}")
    await agent.stop()
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
