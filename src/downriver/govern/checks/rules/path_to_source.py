"""The rule `path-to-source`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_path_to_source(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The dataset derives from other datasets, but no path leads back to a source."""
    for dataset in facts.datasets:
        if facts.sources[dataset] and not facts.upstream(dataset) & facts.origins:
            related = sorted(facts.sources[dataset])
            yield RuleViolation(
                dataset, f"derives from {list_names(facts, related)}", tuple(related)
            )
