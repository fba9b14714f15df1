"""Lineage of Python functions: a decorator declares inputs and outputs.

python examples/agent/decorated.py
"""

from __future__ import annotations

import asyncio

from downriver import lineage

tracker = lineage()


@tracker.track(
    source="table:app_events",
    target="table:session_figures",
    transformation="Drop bots, cut sessions, count what they bought",
)
async def session_figures(events: list[dict[str, object]]) -> int:
    return len([event for event in events if not event.get("bot")])


async def main() -> None:
    kept = await session_figures([{"bot": True}, {"page": "home"}])
    found = await tracker.trace_downstream("app_events")
    print(f"kept {kept}; app_events feeds {[entity.name for entity in found.downstream_consumers]}")
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
