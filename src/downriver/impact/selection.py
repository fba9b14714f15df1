"""Limits the effects of a change to the consumers that a selector selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.model.answers import BlindSpot, is_complete
from downriver.model.changes import Outcome
from downriver.model.verdicts import EffectSeverity, LeftOut

if TYPE_CHECKING:
    from collections.abc import Collection

    from downriver.model.verdicts import Effect, Impact

LEFT_OUT = "left_out"  # the kind of a blind spot
_NAMES_SHOWN = 5


def select_effects(impact: Impact, selector: str, ids: Collection[str]) -> Impact:
    """Return an impact with the selected consumers and the jobs that fill selected datasets.

    Other consumers are counted. If one of those breaks or may break, the answer is not complete.
    """
    chosen = set(ids)
    kept = [e for e in impact.effects if chosen.intersection((e.consumer, *e.writes))]
    others = [e for e in impact.effects if e not in kept]
    broken = [e for e in others if _breaks(e)]
    spots = impact.blind_spots
    if broken:
        names = [effect.name for effect in broken]
        more = len(names) - _NAMES_SHOWN
        listed = ", ".join(names[:_NAMES_SHOWN] + ([f"{more} more"] if more > 0 else []))
        message = f"leaves out consumers that break or may break: {listed}"
        spots = [*spots, BlindSpot(kind=LEFT_OUT, entity=f"--select {selector}", message=message)]
    return msgspec.structs.replace(
        impact,
        effects=kept,
        blind_spots=spots,
        complete=is_complete(spots, unread=impact.unread),
        left_out=LeftOut(selector=selector, consumers=len(others), breaking=len(broken)),
    )


def _breaks(effect: Effect) -> bool:
    return effect.severity is EffectSeverity.BREAKING or effect.outcome is Outcome.MAY_FAIL
