"""Jobs as their code declares them: inputs, outputs, column edges, references, blind spots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from downriver.capture.sql.limits import Budget, SqlLimits
from downriver.capture.sql.templates.jinja import render_template
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.sql import ColumnEdge, SqlLineage, Template

Clause = Literal[
    "select", "join", "filter", "group", "order", "write", "read", "test", "doc", "other"
]


class CodeEdge(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """One column is made from another; `target_field` is `*` when it decides about whole rows."""

    source: DatasetId
    source_field: str
    target: DatasetId
    target_field: str
    subtype: str
    masking: bool = False
    confidence: str = "exact"
    expression: str = ""

    @property
    def type(self) -> str:
        """DIRECT when the value is carried over, INDIRECT when it only steers."""
        return "DIRECT" if self.subtype in _DIRECT else "INDIRECT"


_DIRECT = frozenset({"IDENTITY", "TRANSFORMATION", "AGGREGATION"})


class ColumnReference(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A place that names a column of a dataset; `*` is every column."""

    dataset: DatasetId
    field: str
    line: int
    clause: Clause
    conditional: bool = False
    text: str = ""


class CodeBlindSpot(msgspec.Struct, frozen=True, order=True):
    """Something that could not be seen through."""

    kind: str
    message: str
    line: int = 0


class DocumentedColumn(msgspec.Struct, frozen=True):
    """A column as a schema or its documentation tells it."""

    name: str
    type: str = ""
    description: str = ""


class DatasetNote(msgspec.Struct, kw_only=True):
    """What code tells of a dataset besides who reads and writes it."""

    id: DatasetId
    columns: list[DocumentedColumn] = []
    description: str = ""
    owners: list[str] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    aliases: list[DatasetId] = []


class DerivationStep(msgspec.Struct, frozen=True, order=True):
    """One step of how data is made, as text in which names are followed to what they mean.

    It makes `columns`; a step that makes none of them decides about rows.
    """

    columns: tuple[str, ...]
    text: str


class OutputShape(msgspec.Struct, frozen=True, kw_only=True):
    """What a job writes: the columns it names, those it leaves out, and how all is made.

    An `open` one carries over the columns of a dataset whose schema is unknown besides.
    """

    dataset: DatasetId
    columns: tuple[str, ...]
    without: frozenset[str] = frozenset()
    open: bool = False
    steps: tuple[DerivationStep, ...] = ()


class CodeJob(msgspec.Struct, kw_only=True):
    """A job as its code declares it. `path` is relative to what was read; `line` its first."""

    id: JobId
    integration: str
    kind: str
    path: str
    line: int = 1
    sql: str = ""
    dialect: str = ""
    raw: str | None = None
    description: str = ""
    owners: list[str] = []
    tags: list[str] = []
    parent: JobId | None = None
    after: list[JobId] = []
    inputs: list[DatasetId] = []
    outputs: list[DatasetId] = []
    edges: list[CodeEdge] = []
    references: list[ColumnReference] = []
    spots: list[CodeBlindSpot] = []
    written: list[OutputShape] = []

    def reads(self, dataset: DatasetId) -> None:
        """Note an input, once."""
        if dataset not in self.inputs:
            self.inputs.append(dataset)

    def writes(self, dataset: DatasetId) -> None:
        """Note an output, once."""
        if dataset not in self.outputs:
            self.outputs.append(dataset)

    def refers(self, reference: ColumnReference) -> None:
        """Note a reference, once."""
        if reference not in self.references:
            self.references.append(reference)

    def cannot_see(self, spot: CodeBlindSpot) -> None:
        """Note a blind spot, once."""
        if spot not in self.spots:
            self.spots.append(spot)


def set_query(job: CodeJob, sql: str, template: Template | None = None) -> None:
    """Keep a job's query: as it runs, and as the template it is rendered from, if it is one."""
    if template is None or not any(mark in sql for mark in ("{{", "{%", "{#")):
        job.sql = sql
        return
    job.raw = sql
    # Of two renderings the second answers yes to what only a run can tell: it has all there is.
    job.sql = render_template(sql, template, Budget(SqlLimits())).texts[-1]


def add_sql(
    job: CodeJob,
    lineage: SqlLineage,
    dataset_for: Callable[[str], DatasetId],
    *,
    result: DatasetId | None = None,
    first_line: int = 1,
) -> None:
    """Add what a script reads, writes and derives; what a query returns goes to `result`.

    `first_line` is the line of the file that the script begins on.
    """
    for table in lineage.inputs:
        job.reads(dataset_for(table))
    for table in lineage.outputs:
        job.writes(dataset_for(table))
    if result is not None:
        job.writes(result)
    for edge in [*lineage.column_edges, *lineage.dataset_edges]:
        target = dataset_for(edge.target.table) if edge.target.table else result
        if target is not None:
            job.edges.append(_edge(edge, dataset_for(edge.source.table), target))
    for spot in lineage.blind_spots:
        job.cannot_see(CodeBlindSpot(spot.kind, spot.message, max(spot.line, 1) + first_line - 1))


def _edge(edge: ColumnEdge, source: DatasetId, target: DatasetId) -> CodeEdge:
    return CodeEdge(
        source=source,
        source_field=edge.source.column,
        target=target,
        target_field=edge.target.column,
        subtype=edge.subtype,
        masking=edge.masking,
        confidence=edge.resolution,
        expression=edge.expression,
    )
