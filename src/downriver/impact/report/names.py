"""The displayed names of the entities in a verdict: short and unambiguous, or full ids.

An `Impact` contains full names. These functions return a copy with other names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.graph.names.short_names import ShortNames, is_full_id
from downriver.model.changes import with_dataset
from downriver.model.verdicts import EntityMention, join_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.answers import BlindSpot
    from downriver.model.verdicts import Effect, Impact, Verdict


def list_entity_ids(impact: Impact) -> Iterator[str]:
    """Yield the full ids of all entities that an impact names."""
    yield from impact.targets
    for effect in impact.effects:
        yield effect.consumer
        yield from effect.because_of
        yield from effect.path_ids
        yield from (part.id for part in effect.reason_parts if isinstance(part, EntityMention))
    yield from (spot.entity for spot in impact.blind_spots if is_full_id(spot.entity))


def short_names(impact: Impact) -> ShortNames:
    """Return short names for all entities that an impact names."""
    return ShortNames.of_ids(list_entity_ids(impact))


def name_impact(impact: Impact, names: ShortNames | None) -> Impact:
    """Return an impact with these names; without names, with full ids."""
    named = _NamedImpact(names)
    return msgspec.structs.replace(
        impact,
        changes=[
            str(with_dataset(proposal.change, named.name(proposal.dataset)))
            for proposal in impact.proposed
        ],
        target_names=list(map(named.name, impact.targets)),
        effects=list(map(named.effect, impact.effects)),
        blind_spots=list(map(named.blind_spot, impact.blind_spots)),
    )


def name_verdict(verdict: Verdict, names: ShortNames | None) -> Verdict:
    """Return a verdict with these names; without names, with full ids."""
    named = _NamedImpact(names)
    findings = [
        msgspec.structs.replace(finding, message=join_parts(finding.message_parts, named.mention))
        for finding in verdict.findings
    ]
    decided = (f.message for f in findings if f.rule == verdict.decided_by and not f.waived)
    return msgspec.structs.replace(
        verdict,
        reason=next(decided, verdict.reason),
        findings=findings,
        impact=name_impact(verdict.impact, names),
    )


class _NamedImpact:
    def __init__(self, names: ShortNames | None) -> None:
        self._names = names

    def name(self, entity: str) -> str:
        return entity if self._names is None else self._names[entity]

    def mention(self, mention: EntityMention) -> str:
        return self.name(mention.id)

    def effect(self, effect: Effect) -> Effect:
        return msgspec.structs.replace(
            effect,
            name=self.name(effect.consumer),
            reason=join_parts(effect.reason_parts, self.mention),
            path=list(map(self.name, effect.path_ids)),
        )

    def blind_spot(self, spot: BlindSpot) -> BlindSpot:
        message = spot.message if self._names is None else self._names.replace_in(spot.message)
        return msgspec.structs.replace(spot, entity=self.name(spot.entity), message=message)
