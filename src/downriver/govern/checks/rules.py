"""The rules, in the order in which they are reported.

A rule is a function from the facts to its violations. The first line of its docstring is the
message that the user reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.contracts.evaluation import SCHEMA_CLAUSES
from downriver.graph.index.column_graph import IDENTITY
from downriver.model.trust.checks import CheckSeverity

if TYPE_CHECKING:
    from downriver.govern.checks.lineage_facts import LineageFacts

_LISTED = 5  # entities in a message


class RuleViolation(NamedTuple):
    """A node, or a column of it, that violates a rule, and other nodes that prove it."""

    node: int
    detail: str = ""
    related: tuple[int, ...] = ()
    column: str = ""


CheckFunction = Callable[["LineageFacts"], Iterator[RuleViolation]]


class CheckRule(NamedTuple):
    """A rule with its name on the command line and its default severity."""

    name: str
    check: CheckFunction
    severity: CheckSeverity

    @property
    def meaning(self) -> str:
        """The message of the rule."""
        return (self.check.__doc__ or "").strip().partition("\n")[0]


def check_orphans(facts: LineageFacts) -> Iterator[RuleViolation]:
    """No job reads or writes the dataset."""
    for dataset in facts.datasets - facts.joined:
        yield RuleViolation(dataset)


def check_outputs_without_inputs(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The job writes datasets, but none of its inputs is known.

    A dbt seed loads a file of its own project. Its input is known.
    """
    for job in facts.unfed_jobs & facts.jobs:
        written = sorted(facts.outputs[job])
        yield RuleViolation(job, f"writes {_list(facts, written)}", tuple(written))


def check_path_to_source(facts: LineageFacts) -> Iterator[RuleViolation]:
    """The dataset derives from other datasets, but no path leads back to a source."""
    for dataset in facts.datasets:
        if facts.sources[dataset] and not facts.upstream(dataset) & facts.origins:
            related = sorted(facts.sources[dataset])
            yield RuleViolation(dataset, f"derives from {_list(facts, related)}", tuple(related))


def check_certified_upstream(facts: LineageFacts) -> Iterator[RuleViolation]:
    """A certified dataset derives from datasets that are not certified."""
    for dataset in facts.certified:
        # What is beyond a certified dataset is reported there.
        upstream = facts.upstream(dataset, stop=facts.certified) - facts.certified
        if upstream:
            related = sorted(upstream)
            yield RuleViolation(dataset, _list(facts, related), tuple(related))


def check_canonical_conflicts(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Several datasets are the source of truth of one concept."""
    for concept, datasets in facts.canonical.items():
        for dataset in datasets if len(datasets) > 1 else ():
            others = sorted(datasets - {dataset})
            yield RuleViolation(
                dataset, f"of {concept!r}, also {_list(facts, others)}", tuple(others)
            )


def check_owners(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Neither the dataset nor a job that writes it has an owner."""
    for dataset in facts.datasets:
        if not facts.owners(dataset):
            yield RuleViolation(dataset)


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


def check_single_writer(facts: LineageFacts) -> Iterator[RuleViolation]:
    """Several jobs write the dataset."""
    for dataset in facts.datasets:
        jobs = sorted(facts.writers[dataset] & facts.jobs)
        if len(jobs) > 1:
            yield RuleViolation(dataset, f"written by {_list(facts, jobs)}", tuple(jobs))


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


RULES: tuple[CheckRule, ...] = (
    CheckRule("outputs-without-inputs", check_outputs_without_inputs, CheckSeverity.ERROR),
    CheckRule("path-to-source", check_path_to_source, CheckSeverity.ERROR),
    CheckRule("certified-upstream", check_certified_upstream, CheckSeverity.ERROR),
    CheckRule("canonical-conflicts", check_canonical_conflicts, CheckSeverity.ERROR),
    CheckRule("schema-contract", check_schema_contract, CheckSeverity.ERROR),
    CheckRule("orphans", check_orphans, CheckSeverity.WARNING),
    CheckRule("single-writer", check_single_writer, CheckSeverity.WARNING),
    CheckRule("owners", check_owners, CheckSeverity.WARNING),
    CheckRule("redundant-copies", check_redundant_copies, CheckSeverity.INFO),
    CheckRule("unused-columns", check_unused_columns, CheckSeverity.INFO),
)


def _list(facts: LineageFacts, nodes: list[int]) -> str:
    names = facts.names(nodes)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
