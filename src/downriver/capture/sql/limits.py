"""Limits of text, time and memory for one script."""

from __future__ import annotations

from time import monotonic

import msgspec

_STEPS_BETWEEN_CLOCK_READS = 2_048


class SqlLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of `parse_sql_lineage`. What exceeds them is reported as a blind spot.

    `characters` and `seconds` apply to a whole script. The others apply to one statement: nesting
    of brackets, nodes of the parsed tree, steps of the walk over the tree, and number of edges.
    """

    characters: int = 2_000_000
    seconds: float = 30.0
    nesting: int = 250
    nodes: int = 400_000
    steps: int = 3_000_000
    edges: int = 250_000


class OverLimitError(Exception):
    """A statement exceeds its limits. This error does not leave `parse_sql_lineage`."""


class Budget:
    """The part of the limits that is left while a script is read."""

    __slots__ = ("_deadline", "_steps", "_until_clock", "limits")

    def __init__(self, limits: SqlLimits) -> None:
        self.limits = limits
        self._deadline = monotonic() + limits.seconds
        self._steps = limits.steps
        self._until_clock = _STEPS_BETWEEN_CLOCK_READS

    @property
    def out_of_time(self) -> bool:
        """True after the time limit of the script."""
        return monotonic() > self._deadline

    def renew(self) -> None:
        """Reset the steps for the next statement; the time limit is for the whole script."""
        self._steps = self.limits.steps

    def spend(self, steps: int = 1) -> None:
        """Count steps; raise `OverLimitError` when a limit is reached."""
        self._steps -= steps
        if self._steps < 0:
            raise OverLimitError("the statement needs too many steps")
        self._until_clock -= steps
        if self._until_clock < 0:
            self._until_clock = _STEPS_BETWEEN_CLOCK_READS
            if self.out_of_time:
                raise OverLimitError("the time limit was reached in this statement")
