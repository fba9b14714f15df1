"""A model's words beside the verdict of the policy: where they disagree, the verdict stands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.tools.judging import GateAnswer, ImpactFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.agent.calls import ToolCall

_DECISIONS = re.compile(r"\b(APPROVED|CAUTION|BLOCKED)\b")
_RISK = re.compile(r"\bRISK:?\**\s*(LOW|MEDIUM|HIGH)\b", re.IGNORECASE)
_AFFECTED = re.compile(r"\bAFFECTED SYSTEMS:?\**\s*(\d+)", re.IGNORECASE)
_PERMISSION = re.compile(
    r"\b(?:is|be|it's|are)\s+(?:perfectly\s+|quite\s+)?safe to\b|\bis approved\b|\bgo ahead\b"
    r"|\byou (?:can|may) (?:safely|go ahead)\b|\bsafe to (?:proceed|ship|deploy|merge)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|n't|isn't|unless|until|before)\b", re.IGNORECASE)
DISAGREED = "(The model's words disagreed with the policy and are not shown.)"


class Ruling(NamedTuple):
    """What the policy decided about a change."""

    decision: str
    risk: str
    affected: int


def last_ruling(calls: Sequence[ToolCall]) -> Ruling | None:
    """Return the last decision of the policy among uses of tools."""
    for call in reversed(calls):
        if isinstance(call.answer, GateAnswer):
            found = call.answer
            return Ruling(found.decision, found.risk, found.affected_systems)
        if isinstance(call.answer, ImpactFound):
            told = call.answer
            return Ruling(told.verdict, told.risk_level, told.total_affected_count)
    return None


def states_decision(text: str) -> bool:
    """Tell whether a text decides about a change."""
    return bool(_DECISIONS.search(text) or _PERMISSION.search(text))


def agrees(text: str, ruling: Ruling) -> bool:
    """Tell whether nothing in a text contradicts the decision of the policy."""
    stated = set(_DECISIONS.findall(text))
    if stated and ruling.decision not in stated:
        return False
    labelled = re.search(r"\bDECISION:?\**\s*\[?(\w+)", text)
    if labelled and labelled[1].upper() != ruling.decision:
        return False
    risk, affected = _RISK.search(text), _AFFECTED.search(text)
    if risk and risk[1].upper() != ruling.risk:
        return False
    if affected and int(affected[1]) != ruling.affected:
        return False
    return ruling.decision == "APPROVED" or not _permits(text)


def _permits(text: str) -> bool:
    sentences = re.split(r"(?<=[.!?])\s+|\n", text)
    return any(_PERMISSION.search(s) and not _NEGATION.search(s) for s in sentences)
