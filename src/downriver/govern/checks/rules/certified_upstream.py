"""The rule `certified-upstream`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_certified_upstream(facts: LineageFacts) -> Iterator[RuleViolation]:
    """A certified dataset derives from datasets that are not certified."""
    for dataset in facts.certified:
        # Datasets upstream of a certified dataset are reported for that dataset.
        upstream = facts.upstream(dataset, stop=facts.certified) - facts.certified
        if upstream:
            related = sorted(upstream)
            yield RuleViolation(dataset, list_names(facts, related), tuple(related))
