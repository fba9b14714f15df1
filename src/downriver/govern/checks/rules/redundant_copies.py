"""The rule `redundant-copies`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.govern.checks.rules.rule import RuleViolation
from downriver.graph.index.column_graph import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.govern.checks.lineage_facts import LineageFacts


def check_redundant_copies(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The dataset is a copy: the same columns as its only source, all of them unchanged."""
    for dataset in facts.datasets:
        if len(facts.sources[dataset]) != 1:
            continue
        (source,) = facts.sources[dataset]
        mine, theirs = facts.columns(dataset), facts.columns(source)
        if not mine or len(mine) != len(theirs):
            continue
        edges = [edge for column in mine for edge in facts.column_sources.get(column, ())]
        copied = {edge.source for edge in edges}
        if (
            copied == set(theirs)
            and len(edges) == len(mine)
            and all(edge.rank == IDENTITY for edge in edges)
        ):
            yield RuleViolation(dataset, f"copy of {facts.name(source)}", (source,))
