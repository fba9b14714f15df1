"""The rule `orphans`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_orphans(facts: LineageFacts) -> Iterator[RuleViolation]:
    """No job reads or writes the dataset."""
    for dataset in facts.datasets - facts.joined:
        yield RuleViolation(dataset)
