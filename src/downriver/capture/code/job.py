"""What reading code finds: jobs, what they read and write, and where they say so."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.ids import DatasetId, JobId

Clause = Literal[
    "select", "join", "filter", "group", "order", "write", "read", "test", "doc", "other"
]


class Edge(msgspec.Struct, frozen=True, order=True, kw_only=True):
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


class Reference(msgspec.Struct, frozen=True, order=True, kw_only=True):
    """A place that names a column of a dataset; `*` is every column."""

    dataset: DatasetId
    field: str
    line: int
    clause: Clause
    conditional: bool = False
    text: str = ""


class Spot(msgspec.Struct, frozen=True, order=True):
    """Something that could not be seen through."""

    kind: str
    message: str
    line: int = 0


class Column(msgspec.Struct, frozen=True):
    """A column as a schema or its documentation tells it."""

    name: str
    type: str = ""
    description: str = ""


class DatasetNote(msgspec.Struct, kw_only=True):
    """What code tells of a dataset besides who reads and writes it."""

    id: DatasetId
    columns: list[Column] = []
    description: str = ""
    owners: list[str] = []
    tags: list[str] = []
    column_tags: dict[str, list[str]] = {}
    aliases: list[DatasetId] = []


class Step(msgspec.Struct, frozen=True, order=True):
    """One step of how data is made, as text in which names are followed to what they mean.

    It makes `columns`; a step that makes none of them decides about rows.
    """

    columns: tuple[str, ...]
    text: str


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What a job writes: the columns it names, those it leaves out, and how all is made.

    An `open` one carries over the columns of a dataset whose schema is unknown besides.
    """

    dataset: DatasetId
    columns: tuple[str, ...]
    without: frozenset[str] = frozenset()
    open: bool = False
    steps: tuple[Step, ...] = ()


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
    edges: list[Edge] = []
    references: list[Reference] = []
    spots: list[Spot] = []
    written: list[Written] = []

    def reads(self, dataset: DatasetId) -> None:
        """Note an input, once."""
        if dataset not in self.inputs:
            self.inputs.append(dataset)

    def writes(self, dataset: DatasetId) -> None:
        """Note an output, once."""
        if dataset not in self.outputs:
            self.outputs.append(dataset)

    def refers(self, reference: Reference) -> None:
        """Note a reference, once."""
        if reference not in self.references:
            self.references.append(reference)

    def cannot_see(self, spot: Spot) -> None:
        """Note a blind spot, once."""
        if spot not in self.spots:
            self.spots.append(spot)
