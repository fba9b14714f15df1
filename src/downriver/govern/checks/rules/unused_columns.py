"""The rule `unused-columns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_unused_columns(facts: LineageFacts) -> Iterator[RuleViolation]:
    """No job that reads the dataset uses the column.

    A dataset is skipped if a reader has no column lineage, because it may use any column.
    """
    for dataset in facts.datasets:
        jobs = facts.readers[dataset] - facts.tests
        known = all(_columns_known(facts, job) for job in jobs)
        if not jobs or not known or dataset in facts.read_as_a_whole:
            continue
        columns = facts.columns(dataset)
        named = {field for job in jobs for field in facts.code_columns.get(job, ())}
        used = facts.feeding_columns
        for column, field in sorted(columns.items(), key=lambda item: item[1]):
            if column not in used and field.casefold() not in named:
                yield RuleViolation(dataset, "", tuple(sorted(jobs)), field)


def _columns_known(facts: LineageFacts, job: int) -> bool:
    outputs = facts.outputs.get(job, set())
    return bool(outputs) and all((job, dataset) in facts.claimed for dataset in outputs)
