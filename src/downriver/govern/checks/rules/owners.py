"""The rule `owners`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_owners(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Neither the dataset nor a job that writes it has an owner."""
    for dataset in facts.datasets:
        if not facts.owners(dataset):
            yield RuleViolation(dataset)
