"""Capture lineage from the SQL of jobs. This needs no agent.

python examples/agent/sql_jobs.py
"""

from __future__ import annotations

import asyncio

from downriver import Tracker, lineage

JOBS = [
    (
        """INSERT INTO trips_clean
           SELECT trip_id, rider_id, seconds / 60.0 AS minutes, started_at
           FROM raw_trips
           WHERE seconds > 30 AND rider_id IS NOT NULL""",
        "Leave out false starts",
    ),
    (
        """INSERT INTO rider_trips
           SELECT r.rider_id, r.email, COUNT(t.trip_id) AS trips, SUM(t.minutes) AS minutes
           FROM trips_clean t
           JOIN riders r ON t.rider_id = r.rider_id
           GROUP BY r.rider_id, r.email""",
        "Count the trips of each rider",
    ),
]


async def run_job(tracker: Tracker, sql: str, purpose: str) -> None:
    # The job itself would run here.
    found = await tracker.capture_sql_lineage(sql=sql, transformation=purpose)
    print(f"  {found['source_tables']} -> {found['target_tables']}")


async def main() -> None:
    tracker = lineage()
    print("Jobs, with their lineage:")
    for sql, purpose in JOBS:
        await run_job(tracker, sql, purpose)
    (made,) = await tracker.get_column_lineage("rider_trips", "minutes")
    print(f"rider_trips.minutes comes from {made.input_columns}")
    await tracker.close()


if __name__ == "__main__":
    asyncio.run(main())
