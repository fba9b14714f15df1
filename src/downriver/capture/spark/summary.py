"""A summary of the captured actions of an application, in one line."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from downriver.capture.spark.actions import SparkAction
    from downriver.capture.spark.plan.lineage import PlanLineage


class CaptureSummary:
    """Counts the actions of an application, and their blind spots by kind."""

    def __init__(self) -> None:
        self.writes = 0
        self.reads = 0
        self.blind_spots: Counter[str] = Counter()

    def add(self, action: SparkAction, lineage: PlanLineage) -> None:
        """Count an action."""
        if action.writes:
            self.writes += 1
        else:
            self.reads += 1
        self.blind_spots.update(spot.kind for spot in lineage.spots)

    def render(self, job: str) -> str:
        """Return one line: the captured actions, the blind spots, and a command that shows them."""
        spots = ", ".join(f"{kind} {count}" for kind, count in sorted(self.blind_spots.items()))
        return (
            f"downriver: {_count(self.writes, 'write')} and {_count(self.reads, 'read')} of "
            f"'{job}' captured; {spots or 'no blind spots'}; "
            f"see `downriver trace job:{job}`"
        )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
