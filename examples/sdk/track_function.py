"""Track a function: every call records its lineage, or its failure."""

import asyncio

from downriver import lineage

tracker = lineage()


@tracker.track(
    source="table:raw_events",
    target="table:session_metrics",
    transformation="Leave bots out, measure how long sessions last",
)
async def compute_session_metrics(events):
    sessions = {}
    for event in events:
        if not event["bot"]:
            sessions.setdefault(event["session"], []).append(event["second"])
    return {session: max(times) - min(times) for session, times in sessions.items()}


@tracker.track(source="table:session_metrics", target="table:conversion_{country}")
async def compute_conversion(metrics, country):
    if not metrics:
        raise ValueError("no sessions to convert")
    return country


async def main():
    events = [
        {"session": "a", "second": 10, "bot": False},
        {"session": "a", "second": 70, "bot": False},
        {"session": "b", "second": 5, "bot": True},
    ]
    metrics = await compute_session_metrics(events)
    await compute_conversion(metrics, country="se")
    try:
        await compute_conversion({}, country="no")
    except ValueError as error:
        print("failed:", error)
    found = await tracker.trace_downstream("table:raw_events")
    for entity in found["downstream_consumers"]:
        print(entity["depth"], entity["entity_id"], entity["transformation"])
    job = await tracker.get_entity("job:compute_conversion")
    print([run["state"] for run in job["runs"]])
    await tracker.close()


asyncio.run(main())
