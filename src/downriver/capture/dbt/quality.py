"""Tests and freshness checks of a project's tables, and their results."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from downriver.capture.code import CodeJob, ColumnReference, add_sql, find_references
from downriver.capture.code.dbt_resources import (
    entries,
    find_resource,
    list_refs,
    mapping,
    text,
)
from downriver.capture.dbt.artifacts import Artifacts
from downriver.capture.sql import parse_sql_lineage
from downriver.openlineage.events import dataset
from downriver.openlineage.facets.dataset import ASSERTIONS, QualityAssertion, render_assertions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.capture.dbt.artifacts import PropertyLines
    from downriver.capture.dbt.models import DbtModels
    from downriver.capture.dbt.nodes import DbtNaming, DbtNode
    from downriver.model.ids import DatasetId
    from downriver.openlineage.wire import WireDataset

PASSED = frozenset({"pass", "success"})


class DbtTests:
    """The tests of one project, by the table they check."""

    def __init__(
        self, nodes: Mapping[str, DbtNode], models: DbtModels, places: PropertyLines
    ) -> None:
        self._nodes = nodes
        self._models = models
        self._places = places
        self.of: defaultdict[str, list[DbtNode]] = defaultdict(list)
        for node in nodes.values():
            if node.kind == "test" and node.test:
                tested = self.tested(node)
                if tested is not None:
                    self.of[tested.id].append(node)

    def tested(self, test: DbtNode) -> DbtNode | None:
        """Return the table a test checks: the attached one, else the last one it depends on."""
        if test.attached_to in self._nodes:
            return self._nodes[test.attached_to]
        stored = [self._nodes[k] for k in test.depends_on if k in self._nodes]
        stored = [node for node in stored if node.is_stored]
        named = list_refs(text(mapping(test.test.get("kwargs")).get("model")))
        for node in stored:
            if node.name in named[:1]:
                return node
        return stored[-1] if stored else None

    def jobs(self, naming: DbtNaming) -> Iterator[CodeJob]:
        """Yield one job for the tests of each table, and one for each singular test."""
        for key, tests in self.of.items():
            yield self._job(self._nodes[key], tests, naming)
        for node in self._nodes.values():
            if node.kind == "test" and not node.test and (node.compiled or node.raw):
                yield self._singular(node, naming)

    def _job(self, tested: DbtNode, tests: list[DbtNode], naming: DbtNaming) -> CodeJob:
        table = naming.dataset(tested)
        path = tests[0].path
        job = CodeJob(
            id=naming.job(tested, ".test"),
            integration="DBT",
            kind="TEST",
            path=path,
            line=self._places.line(path, tested.name),
            owners=tested.owners,
            tags=tested.tags,
            inputs=[table],
        )
        for test in tests:
            self._refer(job, test, tested, table)
            if test.stores_failures:
                self._add_audit_table(job, test, naming)
        return job

    def _add_audit_table(self, job: CodeJob, test: DbtNode, naming: DbtNaming) -> None:
        """Add the table with the failing rows of a test, which are what its query returns."""
        audit = naming.dataset(test)
        job.add_output(audit)
        if test.compiled:
            lineage = parse_sql_lineage(
                test.compiled, dialect=naming.dialect, schema=self._models.columns_of
            )
            add_sql(job, lineage, self._models.dataset_for, result=audit)

    def _refer(self, job: CodeJob, test: DbtNode, tested: DbtNode, table: DatasetId) -> None:
        arguments = mapping(test.test.get("kwargs"))
        column = test.column_name or text(arguments.get("column_name"))
        line = self._places.line(test.path, tested.name, column)
        shown = self._places.text(test.path, line) or text(test.test.get("name"))
        if column:
            job.add_reference(
                ColumnReference(dataset=table, field=column, line=line, clause="test", text=shown)
            )
        other = self._related(text(arguments.get("to")))
        field = text(arguments.get("field"))
        if other is not None and field:
            job.add_input(other)
            job.add_reference(
                ColumnReference(dataset=other, field=field, line=line, clause="test", text=shown)
            )

    def _related(self, to: str) -> DatasetId | None:
        """Return the other table of a relationships test."""
        table = self._models.called.get(find_resource(to) or "")
        return None if table is None else self._models.dataset_for(table)

    def _singular(self, node: DbtNode, naming: DbtNaming) -> CodeJob:
        job = CodeJob(
            id=naming.consumer_job(node.id),
            integration="DBT",
            kind="TEST",
            path=node.path,
            description=node.description,
            sql=node.compiled or node.raw,
            raw=node.raw if node.compiled and node.raw else None,
        )
        lineage = parse_sql_lineage(
            job.sql, dialect=naming.dialect, schema=self._models.columns_of,
            template=self._models.template(node),
        )  # fmt: skip
        job.dialect = lineage.dialect
        audit = naming.dataset(node) if node.stores_failures else None
        add_sql(job, lineage, self._models.dataset_for, result=audit)
        names = self._models.table_names(node)
        job.add_references(find_references(node.raw or job.sql, lineage, names))
        return job


class NodeResult:
    """The result of one node of a run."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.id = text(raw.get("unique_id"))
        self.status = text(raw.get("status"))
        self.failures = raw.get("failures")
        self.message = text(raw.get("message"))
        self.rows = mapping(raw.get("adapter_response")).get("rows_affected")
        timing = next((t for t in entries(raw.get("timing")) if t.get("name") == "execute"), {})
        self.started = text(timing.get("started_at"))
        self.completed = text(timing.get("completed_at"))


def list_results(artifacts: Artifacts) -> list[NodeResult]:
    """Return the results in run_results.json."""
    return [NodeResult(raw) for raw in entries(artifacts.run_results.get("results"))]


def assertions_input(
    table: DatasetId, tests: list[DbtNode], results: Mapping[str, NodeResult]
) -> WireDataset | None:
    """Return a tested table with the results of its tests; None when none ran."""
    ran = [(test, results[test.id]) for test in tests if test.id in results]
    ran = [(test, result) for test, result in ran if result.status != "skipped"]
    if not ran:
        return None
    assertions = render_assertions(_assertion(test, result) for test, result in ran)
    return dataset(table, input_facets={ASSERTIONS: assertions})


def _assertion(test: DbtNode, result: NodeResult) -> QualityAssertion:
    column = test.column_name or text(mapping(test.test.get("kwargs")).get("column_name"))
    return QualityAssertion(
        assertion=text(test.test.get("name")) or test.name,
        success=result.status in PASSED,
        severity=text(test.config.get("severity")).lower() or "error",
        column=column or None,
        actual=str(result.failures) if isinstance(result.failures, int) else None,
    )


def freshness_input(table: DatasetId, raw: dict[str, Any]) -> WireDataset:
    """Return a source with the result of its freshness check."""
    status = text(raw.get("status"))
    assertion = QualityAssertion(
        assertion="freshness",
        success=status == "pass",
        severity="warn" if status == "warn" else "error",
        actual=text(raw.get("max_loaded_at")) or None,
    )
    return dataset(table, input_facets={ASSERTIONS: render_assertions([assertion])})
