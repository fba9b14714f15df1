"""How much text, time and memory one script may cost, whatever it says."""

from __future__ import annotations

from time import monotonic

import msgspec

_STEPS_BETWEEN_CLOCK_READS = 2_048


class SqlLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What `parse_sql_lineage` spends before it answers with less and says so.

    `characters` and `seconds` are for a whole script. The others are for one statement: brackets
    inside brackets, nodes of its tree, steps of the walk over that tree, and edges found.
    """

    characters: int = 2_000_000
    seconds: float = 30.0
    nesting: int = 250
    nodes: int = 400_000
    steps: int = 3_000_000
    edges: int = 250_000


class OverLimitError(Exception):
    """A statement costs more than its limits allow. It never leaves `parse_sql_lineage`."""


class Budget:
    """What is left of the limits while a script is read."""

    __slots__ = ("_deadline", "_steps", "_until_clock", "limits")

    def __init__(self, limits: SqlLimits) -> None:
        self.limits = limits
        self._deadline = monotonic() + limits.seconds
        self._steps = limits.steps
        self._until_clock = _STEPS_BETWEEN_CLOCK_READS

    @property
    def out_of_time(self) -> bool:
        """True once the script has had its time."""
        return monotonic() > self._deadline

    def renew(self) -> None:
        """Give the next statement its steps. The time is for the script and is not renewed."""
        self._steps = self.limits.steps

    def spend(self, steps: int = 1) -> None:
        """Count work done; raises when there is no more to spend."""
        self._steps -= steps
        if self._steps < 0:
            raise OverLimitError("the statement takes too many steps to follow")
        self._until_clock -= steps
        if self._until_clock < 0:
            self._until_clock = _STEPS_BETWEEN_CLOCK_READS
            if self.out_of_time:
                raise OverLimitError("there is no time left to follow the statement")
