"""The rules of the gate, in the order in which they are asked. A docstring is the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.model.verdicts import Decision, Outcome, Risk

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.impact.policy import Policy
    from downriver.model.verdicts import Effect, Impact


class Found(NamedTuple):
    """What a rule says: the decision it asks for, about which entities."""

    decision: Decision
    entities: list[str]
    risk: Risk | None = None
    total: int = 0


_LOSS = frozenset({"column_rename", "column_drop", "table_rename", "table_drop"})


def breaking_consumers(impact: Impact, policy: Policy) -> Found | None:
    """It breaks {names}."""
    return _about(impact.breaking, policy.breaking, Risk.HIGH)


def unproven_consumers(impact: Impact, policy: Policy) -> Found | None:
    """It may break {names}: which columns are used there is unknown."""
    unproven = [e for e in impact.effects if e.outcome is Outcome.MAY_FAIL]
    return _about(unproven, policy.unknown_consumers, Risk.HIGH)


def certified_consumers(impact: Impact, policy: Policy) -> Found | None:
    """It changes what is certified: {names}."""
    hurt = [e for e in impact.effects if e.certified and e.outcome is not Outcome.DEPRECATED]
    return _about(hurt, policy.certified, Risk.HIGH)


def protected_data(impact: Impact, policy: Policy) -> Found | None:
    """It touches data under protection: {names}."""
    held = [(tag, target) for tag in impact.target_tags for target in impact.targets]
    held += [(tag, effect.consumer) for effect in impact.effects for tag in effect.tags]
    asked = [
        (policy.protected_tags[tag], entity) for tag, entity in held if tag in policy.protected_tags
    ]
    if not asked:
        return None
    decision = max((decision for decision, _ in asked), key=list(Decision).index)
    return Found(decision, list(dict.fromkeys(entity for _, entity in asked)), Risk.MEDIUM)


def active_consumers(impact: Impact, policy: Policy) -> Found | None:
    """It is still read by {names}."""
    using = [e for e in impact.effects if e.outcome is Outcome.DEPRECATED]
    return _about(using, policy.deprecation, Risk.MEDIUM)


def changed_consumers(impact: Impact, policy: Policy) -> Found | None:
    """Other values, other columns or old data reach {names}."""
    mild = (Outcome.CHANGES, Outcome.STALE)
    return _about([e for e in impact.warnings if e.outcome in mild], policy.warnings, Risk.MEDIUM)


def blast_radius(impact: Impact, policy: Policy) -> Found | None:
    """It affects {total} consumers, more than the {max_affected} that may be without a look."""
    if len(impact.effects) <= policy.max_affected:
        return None
    entities = [effect.consumer for effect in impact.effects]
    return Found(policy.over_max_affected, entities, Risk.MEDIUM)


def lineage_coverage(impact: Impact, policy: Policy) -> Found | None:
    """Of {total} consumers too few have their logic known: the answer rests on guesses."""
    if policy.min_coverage <= 0 or not impact.effects:
        return None
    known = [effect for effect in impact.effects if effect.basis != "table_edges"]
    if len(known) / len(impact.effects) >= policy.min_coverage:
        return None
    entities = [effect.consumer for effect in impact.effects if effect not in known]
    return Found(Decision.BLOCKED, entities, Risk.HIGH, len(impact.effects))


def blind_spots(impact: Impact, policy: Policy) -> Found | None:
    """The answer is not complete: no one could see through {names}."""
    loses = _LOSS.intersection(impact.change_types)
    if impact.complete or not loses:
        return None
    entities = list(dict.fromkeys(spot.entity for spot in impact.blind_spots))
    return Found(policy.incomplete, entities, Risk.MEDIUM)


RULES: tuple[Callable[[Impact, Policy], Found | None], ...] = (
    breaking_consumers,
    unproven_consumers,
    certified_consumers,
    protected_data,
    active_consumers,
    changed_consumers,
    blast_radius,
    lineage_coverage,
    blind_spots,
)


def _about(effects: list[Effect], decision: Decision, risk: Risk) -> Found | None:
    if not effects:
        return None
    return Found(decision, [effect.consumer for effect in effects], risk)
