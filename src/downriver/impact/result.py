"""What evaluating one process gives: what becomes of it, and of the datasets it fills."""

from __future__ import annotations

import msgspec

from downriver.impact.delta import Delta, Trail
from downriver.model.verdicts import Basis, Outcome, Reference

_ORDER = {outcome: place for place, outcome in enumerate(Outcome)}


class Result(msgspec.Struct):
    """The worst that happens to a process, why, where in its code, and what it passes on."""

    outcome: Outcome = Outcome.UNTOUCHED
    basis: Basis = "simulated"
    reason: str = ""
    trail: Trail = ()
    references: list[Reference] = []
    outputs: dict[int, Delta] = {}

    def worsen(
        self, outcome: Outcome, reason: str, trail: Trail, basis: Basis | None = None
    ) -> None:
        """Note something that happens; of several the worst is told."""
        if _ORDER[outcome] < _ORDER[self.outcome]:
            self.outcome, self.reason, self.trail = outcome, reason, trail
            self.basis = basis or self.basis

    def output(self, node: int) -> Delta:
        """Return what becomes of a dataset this process fills, to be added to."""
        return self.outputs.setdefault(node, Delta())

    def refer(self, references: list[Reference]) -> None:
        """Add places in the code, each once."""
        self.references = list(dict.fromkeys([*self.references, *references]))


def extend(trail: Trail, step: str) -> Trail:
    """Return a trail with one more step."""
    return trail if trail and trail[-1] == step else (*trail, step)
