"""The rules of a policy, each with its decision and its condition as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.impact.policy.rules import RULES
from downriver.model.verdicts import Decision

if TYPE_CHECKING:
    from downriver.impact.policy.rules import Policy


class PolicyRule(msgspec.Struct, kw_only=True):
    """One rule: its name, its decision, and when it applies."""

    name: str
    decision: Decision | None
    explanation: str


# For each rule: the setting with its decision, and when the rule applies.
_RULES: dict[str, tuple[str, str]] = {
    "breaking_consumers": ("breaking", "A consumer fails."),
    "unpredicted_failures": (
        "breaking",
        "With --verify: a model cannot be built with the change, which was not predicted.",
    ),
    "unproven_consumers": (
        "unknown_consumers",
        "A consumer reads the dataset, and the columns that it uses are unknown.",
    ),
    "unread_migrations": (
        "unread_migrations",
        "A file or statement that may alter a table could not be read.",
    ),
    "unread_files": ("unread_files", "The effects of an edited file are not all known."),
    "certified_consumers": ("certified", "A certified consumer is affected."),
    "protected_data": (
        "",
        "A dataset or consumer has a tag of `protected_tags`: {protected_tags}.",
    ),
    "active_consumers": ("deprecation", "A consumer still uses the deprecated dataset or column."),
    "changed_consumers": (
        "warnings",
        "The values, columns or freshness of a consumer change.",
    ),
    "unpredicted_differences": (
        "warnings",
        "With --verify: a model differs in a way that was not predicted.",
    ),
    "edited_definitions": (
        "definitions",
        "A metric or semantic model changes, which tools outside the repository may query.",
    ),
    "removed_datasets": (
        "removals",
        "A dataset is removed, which tools outside the known lineage may query.",
    ),
    "blast_radius": (
        "over_max_affected",
        "More than `max_affected` consumers are affected: {max_affected}.",
    ),
    "lineage_coverage": (
        "",
        "The logic of too few affected consumers is known. `min_coverage` is {min_coverage}.",
    ),
    "unselected_consumers": (
        "incomplete",
        "With --select: an affected consumer that is left out breaks, or may break.",
    ),
    "blind_spots": ("incomplete", "The lineage downstream is not complete."),
}


def explain_policy(policy: Policy) -> list[PolicyRule]:
    """Return the rules in the order in which they are checked."""
    return [_explain(rule.__name__, policy) for rule in RULES]


def _explain(name: str, policy: Policy) -> PolicyRule:
    setting, explanation = _RULES[name]
    tags = ", ".join(f"{tag} {decision.value}" for tag, decision in policy.protected_tags.items())
    return PolicyRule(
        name=name,
        decision=getattr(policy, setting) if setting else None,
        explanation=explanation.format(
            protected_tags=tags or "none",
            max_affected=policy.max_affected,
            min_coverage=policy.min_coverage,
        ),
    )
