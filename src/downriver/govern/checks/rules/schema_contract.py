"""The rule `schema-contract`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation
from downriver.govern.contracts.evaluation import SCHEMA_CLAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_schema_contract(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The schema of the dataset violates its contract."""
    for dataset, contract in facts.contracts.items():
        observed = facts.observations(dataset)
        broken = [
            result.message
            for clause in SCHEMA_CLAUSES
            for result in clause(contract, observed)
            if result.outcome == "violated"
        ]
        if broken:
            yield RuleViolation(dataset, "; ".join(broken))
