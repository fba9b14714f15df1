"""The rule `single-writer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_single_writer(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Several jobs write the dataset."""
    for dataset in facts.datasets:
        jobs = sorted(facts.writers[dataset] & facts.jobs)
        if len(jobs) > 1:
            yield RuleViolation(dataset, f"written by {list_names(facts, jobs)}", tuple(jobs))
