"""The rule `canonical-conflicts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_canonical_conflicts(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Several datasets are the source of truth of one concept."""
    for concept, datasets in facts.canonical.items():
        for dataset in datasets if len(datasets) > 1 else ():
            others = sorted(datasets - {dataset})
            yield RuleViolation(
                dataset, f"of {concept!r}, also {list_names(facts, others)}", tuple(others)
            )
