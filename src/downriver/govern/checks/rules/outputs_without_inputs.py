"""The rule `outputs-without-inputs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation, list_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_outputs_without_inputs(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The job writes datasets, but none of its inputs is known.

    A dbt seed loads a file of its own project. Its input is known.
    """
    for job in facts.unfed_jobs & facts.jobs:
        written = sorted(facts.outputs[job])
        yield RuleViolation(job, f"writes {list_names(facts, written)}", tuple(written))
