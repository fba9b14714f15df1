"""Jobs as their code declares them: inputs, outputs, column edges, references, blind spots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry, BuildFacet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from downriver.capture.sql import ColumnEdge, RenderedTemplate, SqlLineage

Clause = Literal[
    "select", "join", "filter", "group", "order", "write", "read", "test", "doc", "other"
]


class CodeEdge(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """Column lineage from one column to another.

    `target_field` is `*` when the source column decides which rows are written.
    """

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
        """DIRECT when the value flows into the target, INDIRECT when it only influences it."""
        return "DIRECT" if self.subtype in _DIRECT else "INDIRECT"


_DIRECT = frozenset({"IDENTITY", "TRANSFORMATION", "AGGREGATION"})


class ColumnReference(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A line of code that names a column of a dataset; `*` is every column."""

    dataset: DatasetId
    field: str
    line: int
    clause: Clause
    conditional: bool = False
    text: str = ""


class DocumentedColumn(msgspec.Struct, frozen=True):
    """A column of a schema or of its documentation."""

    name: str
    type: str = ""
    description: str = ""


class DatasetNote(msgspec.Struct, kw_only=True):
    """Schema, documentation, owners and tags of a dataset, found in code."""

    id: DatasetId
    columns: list[DocumentedColumn] = []
    description: str = ""
    owners: list[str] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    aliases: list[DatasetId] = []


class DerivationStep(msgspec.Struct, frozen=True, order=True):
    """One operation that derives an output, as text in which variables are replaced by values.

    It computes `columns`. A step without columns decides which rows there are.
    """

    columns: tuple[str, ...]
    text: str


class OutputShape(msgspec.Struct, frozen=True, kw_only=True):
    """The columns a job writes to a dataset, and the steps that derive them.

    `without` are the dropped columns. `open` is true when columns of a dataset with an unknown
    schema are written too.
    """

    dataset: DatasetId
    columns: tuple[str, ...]
    without: frozenset[str] = frozenset()
    open: bool = False
    steps: tuple[DerivationStep, ...] = ()


class CodeJob(msgspec.Struct, kw_only=True):
    """A job as its code declares it, with the file and the first line of that code.

    `path` is relative to the repository.
    """

    id: JobId
    integration: str
    kind: str
    path: str
    line: int = 1
    sql: str = ""
    other_sql: tuple[str, ...] = ()  # other renderings of the template, by run-time conditions
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
    spots: list[BlindSpotEntry] = []
    written: list[OutputShape] = []
    build: BuildFacet | None = None

    def add_input(self, dataset: DatasetId) -> None:
        """Add an input unless it is there already."""
        if dataset not in self.inputs:
            self.inputs.append(dataset)

    def add_output(self, dataset: DatasetId) -> None:
        """Add an output unless it is there already."""
        if dataset not in self.outputs:
            self.outputs.append(dataset)

    def add_reference(self, reference: ColumnReference) -> None:
        """Add a reference unless it is there already."""
        if reference not in self.references:
            self.references.append(reference)

    def add_references(self, references: Iterable[ColumnReference]) -> None:
        """Add references unless they are there already."""
        self.references = list(dict.fromkeys([*self.references, *references]))

    def add_aggregation(
        self, source: DatasetId, source_field: str, target: DatasetId, target_field: str
    ) -> None:
        """Add an edge from a column to its aggregate, and the reference to the column."""
        edge = CodeEdge(
            source=source,
            source_field=source_field,
            target=target,
            target_field=target_field,
            subtype="AGGREGATION",
        )
        self.edges.append(edge)
        self.add_reference(
            ColumnReference(dataset=source, field=source_field, line=self.line, clause="select")
        )

    def add_blind_spot(self, spot: BlindSpotEntry) -> None:
        """Add a blind spot unless it is there already."""
        if spot not in self.spots:
            self.spots.append(spot)


def set_query(job: CodeJob, sql: str, rendered: RenderedTemplate | None = None) -> None:
    """Set a job's query: the SQL that runs, and the template it is rendered from, if any."""
    if rendered is None or rendered.texts == [sql]:
        job.sql = sql
        return
    job.raw = sql
    # The last rendering takes all branches that depend on run-time values, so it has all SQL.
    job.sql = rendered.texts[-1]
    job.other_sql = tuple(rendered.texts[:-1])


def add_sql(
    job: CodeJob,
    lineage: SqlLineage,
    dataset_for: Callable[[str], DatasetId],
    *,
    result: DatasetId | None = None,
    first_line: int = 1,
) -> None:
    """Add the lineage of a script to a job. The rows that a query returns go to `result`.

    `first_line` is the line of the file where the script begins.
    """
    for table in lineage.inputs:
        job.add_input(dataset_for(table))
    for table in lineage.outputs:
        job.add_output(dataset_for(table))
    if result is not None:
        job.add_output(result)
    for edge in [*lineage.column_edges, *lineage.dataset_edges]:
        target = dataset_for(edge.target.table) if edge.target.table else result
        if target is not None:
            job.edges.append(_edge(edge, dataset_for(edge.source.table), target))
    for spot in lineage.blind_spots:
        job.add_blind_spot(
            BlindSpotEntry(spot.kind, spot.message, max(spot.line, 1) + first_line - 1)
        )


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
