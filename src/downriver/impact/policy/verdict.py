"""`decide(impact, policy) -> Verdict`: runs every rule; the strictest decision counts."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec

from downriver.impact.policy.rules import (
    RULES,
    Policy,
    unpredicted_failures,
    unread_files,
    unread_migrations,
)
from downriver.model.changes import Outcome
from downriver.model.verdicts import (
    Decision,
    EntityMention,
    Risk,
    RuleFinding,
    Verdict,
    join_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.impact.policy.rules import RuleMatch
    from downriver.model.unread import Unread
    from downriver.model.verdicts import Effect, Impact, SentenceParts

_DECISIONS = list(Decision)
_RISKS = list(Risk)
_NAMES_SHOWN = 5
_STEPS_SHOWN = 3


def decide(impact: Impact, policy: Policy | None = None, today: dt.date | None = None) -> Verdict:
    """Return the verdict on an impact, the rule that decided, and what to do next."""
    policy = policy or Policy()
    today = today or dt.datetime.now(dt.timezone.utc).date()
    impact = _without_retired(impact, policy, today)
    findings = _findings(impact, policy, today)
    standing = [finding for finding in findings if not finding.waived]
    decision = max((f.decision for f in standing), key=_DECISIONS.index, default=Decision.APPROVED)
    risk = max((f.risk for f in standing), key=_RISKS.index, default=Risk.LOW)
    decided = next((f for f in standing if f.decision is decision), None)
    return Verdict(
        decision=decision,
        risk=risk,
        affected=len(impact.effects),
        reason=_reason(decided, impact, findings),
        recommendation=_recommendation(decision, decided, impact),
        decided_by=_rule_that_decided(decided, findings),
        findings=findings,
        ask=_owners(impact, policy),
        impact=impact,
    )


def _without_retired(impact: Impact, policy: Policy, today: dt.date) -> Impact:
    """Leave out consumers without a run for so long that they count as retired."""
    limit = today - dt.timedelta(days=policy.stale_consumer_days)
    kept = [e for e in impact.effects if e.last_run is None or e.last_run[:10] >= str(limit)]
    retired = len(impact.effects) - len(kept)
    return msgspec.structs.replace(impact, effects=kept, untouched=impact.untouched + retired)


def _findings(impact: Impact, policy: Policy, today: dt.date) -> list[RuleFinding]:
    findings = []
    for rule in RULES:
        match = rule(impact, policy)
        if match is None:
            continue
        name = rule.__name__
        message = _message(rule.__doc__ or "", match, policy, impact)
        finding = RuleFinding(
            rule=name,
            decision=match.decision,
            risk=_risk(match),
            message=join_parts(message),
            message_parts=message,
            entities=match.entities,
        )
        for waiver in policy.waivers:
            if waiver.covers(match, name, impact, today):
                until = waiver.expires.isoformat()
                finding.waived = f"{waiver.author}, until {until}: {waiver.reason}"
        findings.append(finding)
    return findings


def _risk(rule_match: RuleMatch) -> Risk:
    if rule_match.decision is Decision.APPROVED:
        return Risk.LOW
    return rule_match.risk or Risk.MEDIUM


def _message(template: str, rule_match: RuleMatch, policy: Policy, impact: Impact) -> SentenceParts:
    names: SentenceParts = [unread.location for unread in rule_match.unread]
    names = names or [
        EntityMention(entity, impact.name_of(entity)) for entity in rule_match.entities
    ]
    before, marker, after = template.partition("{names}")
    total = rule_match.total or len(rule_match.entities)
    text = [part.format(total=total, max_affected=policy.max_affected) for part in (before, after)]
    return [text[0], *(_listed(list(dict.fromkeys(names))) if marker else ()), text[1]]


def _listed(names: SentenceParts) -> Iterator[str | EntityMention]:
    """Yield names with commas and `and` between them."""
    if len(names) > _NAMES_SHOWN:
        names = [*names[:_NAMES_SHOWN], f"{len(names) - _NAMES_SHOWN} more"]
    for number, name in enumerate(names, 1):
        yield name
        if number < len(names):
            yield ", " if number < len(names) - 1 else " and "


def _rule_that_decided(decided: RuleFinding | None, findings: list[RuleFinding]) -> str:
    if decided is not None:
        return decided.rule
    return "waivers" if findings else "nothing_affected"


def _reason(decided: RuleFinding | None, impact: Impact, findings: list[RuleFinding]) -> str:
    if decided is not None:
        return decided.message
    if impact.unread:
        return "A waiver covers the files that could not be read."
    if findings:
        return "Waivers cover all findings about this change."
    if not impact.changes:
        return "No change in meaning was found."
    if impact.left_out is not None and impact.left_out.consumers:
        return "None of the selected consumers is affected."
    if impact.untouched:
        return f"None of the {impact.untouched} consumers is affected."
    return "The dataset has no consumers."


_MIGRATE = (
    "Keep the old name beside the new one, migrate the consumers, then drop the old name; "
    "`downriver fix --plan` lists the steps."
)
_REVIEW = "Review the listed consumers with their owners before you make the change."
_BY_TYPE = {
    "column_rename": _MIGRATE,
    "column_drop": "Remove the column from the listed consumers first, then drop it.",
    "column_add": "Change the listed writers to fill the new column first, or give it a default.",
    "type_change": "Cast to the old type in the listed consumers, or change them too.",
    "nullability_change": "Change the listed writers to fill the column first.",
    "table_rename": "Keep a view under the old name until every consumer reads the new one.",
    "table_drop": "Move the listed consumers to another dataset first.",
    "deprecation": "Confirm that the listed consumers no longer use it before you remove it.",
    "logic_change": "Inform the owners of the listed consumers that their values will change.",
    "schema_change": "Specify which columns change and how, to see which of these consumers break.",
}


def _recommendation(decision: Decision, decided: RuleFinding | None, impact: Impact) -> str:
    if decision is Decision.APPROVED:
        return "Go ahead."
    if decided is not None and decided.rule in (unread_migrations.__name__, unread_files.__name__):
        return _next_steps([u for u in impact.unread if u.path in decided.entities])
    if decided is not None and decided.rule == unpredicted_failures.__name__:
        return "Correct the listed models; the verification shows their errors."
    kinds = [kind for kind in _BY_TYPE if kind in impact.change_types]
    if decision is Decision.CAUTION and "deprecation" not in kinds:
        return "Inform the owners, and check the listed consumers after the change."
    return " ".join(_BY_TYPE[kind] for kind in kinds) or _REVIEW


def _next_steps(unread: list[Unread]) -> str:
    """Return what to do about files that could not be read, the first ones in full."""
    steps = [f"{one.location}: {one.reason.next_step}" for one in unread[:_STEPS_SHOWN]]
    more = len(unread) - _STEPS_SHOWN
    return " ".join([*steps, *([f"And {more} more."] if more > 0 else [])])


def _owners(impact: Impact, policy: Policy) -> list[str]:
    affected: list[Effect] = [e for e in impact.effects if e.outcome is not Outcome.UNTOUCHED]
    found = [owner for effect in affected for owner in effect.owners]
    for tag, owners in policy.owners_to_ask.items():
        if any(tag in effect.tags for effect in affected) or tag in impact.target_tags:
            found += owners
    return list(dict.fromkeys(found))
