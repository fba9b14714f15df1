"""The cost of an answer is linear in its size, counted in calls of functions."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from downriver.model.verdicts import ImpactRequest
from downriver.sdk import lineage_sync

if TYPE_CHECKING:
    from types import FrameType


def calls_for(consumers: int) -> int:
    """Return the number of calls for the impact on a table with so many readers."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"

    with closing(lineage_sync(":memory:")) as tracker:
        tracker.register_flows(
            [{"source_id": "table:hub", "target_id": f"table:t{n}"} for n in range(consumers)]
        )
        request = ImpactRequest(entity_id="hub", change_type="deletion")
        tracker.backend.analyze_impact(request)  # which loads the graph
        sys.setprofile(note)
        try:
            answer = tracker.backend.analyze_impact(request)
        finally:
            sys.setprofile(None)
    assert answer.total_affected_count >= consumers
    return count


def test_four_times_the_consumers_cost_about_four_times_as_much() -> None:
    assert calls_for(800) < 5 * calls_for(200)
