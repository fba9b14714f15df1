"""The rule `untagged-columns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_untagged_columns(facts: LineageFacts) -> Iterator[RuleViolation]:
    """A tag that propagates reaches the column, but is not set on it."""
    for reached in facts.tags_reached:
        yield RuleViolation(reached.dataset, reached.tag, (reached.origin,), reached.field)
