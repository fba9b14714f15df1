"""The columnLineage and lineage facets: the source columns of each column of a dataset.

A facet with hundreds of edges names few datasets and few transformations. Each of these is stored
once, and an edge is four small values. Parsing these facets is most of the cost of a new event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from downriver.model.facts import ColumnTransformation, Derivation
from downriver.model.ids import EVERY_FIELD, ColumnId, DatasetId, bounded
from downriver.openlineage.facets.base import (
    dataset_id,
    identifier,
    parse_facet,
    render_facet,
)

COLUMN_LINEAGE = "columnLineage"
LINEAGE = "lineage"
ColumnEdge: TypeAlias = tuple[int, str, str, int]


class Transformation(msgspec.Struct, gc=False, omit_defaults=True):
    """How an input field becomes an output field."""

    type: str = ""
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None
    confidence: str | None = None


class InputField(msgspec.Struct, gc=False):
    """A source in a columnLineage or lineage facet; without a field, the whole dataset."""

    namespace: str | None = None
    name: str | None = None
    type: str = "DATASET"
    field: str | None = None
    transformations: list[Transformation] | None = None

    def dataset(self) -> DatasetId | None:
        """Return the dataset that this field names, if any."""
        if self.type.upper() != "DATASET" or not self.name:
            return None
        return dataset_id(self.namespace or "", self.name)


class _ColumnEntry(msgspec.Struct, gc=False):
    """One output field of a columnLineage facet, with two fields that older producers send."""

    inputFields: list[InputField] | None = None  # noqa: N815
    transformationType: str | None = None  # noqa: N815
    transformationDescription: str | None = None  # noqa: N815


class _ColumnLineage(msgspec.Struct, gc=False):
    """The columnLineage facet, version 1-2-0 and before."""

    fields: dict[str, _ColumnEntry] | None = None
    dataset: list[InputField] | None = None


class _FieldEntry(msgspec.Struct, gc=False):
    inputs: list[InputField] | None = None


class LineageEntry(msgspec.Struct, gc=False):
    """The sources of a target (lineage 1-0-0). In a dataset's facet, the target is the dataset."""

    namespace: str | None = None
    name: str | None = None
    type: str = "DATASET"
    inputs: list[InputField] | None = None
    fields: dict[str, _FieldEntry] | None = None

    def sources(self) -> list[InputField]:
        """Return every source, at entity or field level."""
        by_field = [i for entry in (self.fields or {}).values() for i in entry.inputs or ()]
        return [*(self.inputs or ()), *by_field]


class _JobLineage(msgspec.Struct):
    entries: list[LineageEntry] | None = None


class ColumnLineageEdges(NamedTuple):
    """The column edges that a facet states for a dataset, each once.

    An edge is the index of its source dataset in `datasets`, the source field, the derived field,
    and the index of its transformation in `transformations`.
    """

    datasets: tuple[DatasetId, ...]
    edges: tuple[ColumnEdge, ...]
    transformations: tuple[ColumnTransformation, ...]


class ColumnInput(NamedTuple):
    """A source column of another column or of the choice of rows, with the transformation."""

    dataset: DatasetId
    field: str
    transformation: ColumnTransformation


class OutputLineage(NamedTuple):
    """The lineage of one output: sources of each column, and of the choice of rows."""

    fields: Mapping[str, Sequence[ColumnInput]]
    rows: Sequence[ColumnInput] = ()


class JobOutput(NamedTuple):
    """One of several outputs of a job: the datasets that feed it, and its column lineage."""

    sources: Sequence[DatasetId]
    lineage: OutputLineage


# Parsing


def parse_lineage(body: bytes) -> LineageEntry:
    """Return the lineage facet of a dataset."""
    return parse_facet(body, LineageEntry)


def parse_job_lineage(body: bytes) -> list[LineageEntry]:
    """Return the entries of the lineage facet of a job."""
    return parse_facet(body, _JobLineage).entries or []


def parse_edges(facet: str, body: bytes, target: DatasetId) -> ColumnLineageEdges:
    """Return the column edges that a facet states for `target`."""
    match facet:
        case "columnLineage":
            return _column_lineage_edges(body)
        case "lineage":
            entries = [parse_lineage(body)]
        case _:
            entries = [
                entry
                for entry in parse_job_lineage(body)
                if entry.type.upper() != "JOB"
                and dataset_id(entry.namespace or "", entry.name or "") == target
            ]
    edges = _EdgeSet()
    for entry in entries:
        for name, field in (entry.fields or {}).items():
            edges.add_inputs(field.inputs, name, _UNSTATED)
        # An input without a field is about datasets, not columns.
        of_columns = [source for source in entry.inputs or () if source.field]
        edges.add_inputs(of_columns, EVERY_FIELD, _DATASET_WIDE)
    return edges.build()


def parse_derivations(facet: str, body: bytes, target: DatasetId) -> list[Derivation]:
    """Return the column edges that a facet states for `target`, one value an edge."""
    datasets, edges, transformations = parse_edges(facet, body, target)
    return [
        Derivation(
            ColumnId(datasets[dataset], source),
            ColumnId(target, derived),
            *transformations[transformation],
        )
        for dataset, source, derived, transformation in edges
    ]


_SOURCES_CACHED = 16_384
_sources: dict[bytes, tuple[DatasetId, ...]] = {}


def column_sources(digest: bytes, body: bytes) -> tuple[DatasetId, ...]:
    """Return the datasets that a columnLineage facet reads, decoding each distinct facet once."""
    datasets = _sources.get(digest)
    if datasets is None:
        if len(_sources) >= _SOURCES_CACHED:
            _sources.clear()
        datasets = _sources[digest] = _column_lineage_edges(body).datasets
    return datasets


_LARGEST_CACHED = 2**16  # bytes


def _column_lineage_edges(body: bytes) -> ColumnLineageEdges:
    # The result is used twice: to find the sources, and when the event is written.
    return _cached_edges(body) if len(body) <= _LARGEST_CACHED else _parse_column_lineage(body)


def _parse_column_lineage(body: bytes) -> ColumnLineageEdges:
    edges = _EdgeSet()
    facet = parse_facet(body, _ColumnLineage)
    for name, entry in (facet.fields or {}).items():
        edges.add_inputs(entry.inputFields, name, _legacy_transformation(entry))
    edges.add_inputs(facet.dataset, EVERY_FIELD, _DATASET_WIDE)
    return edges.build()


_cached_edges = lru_cache(256)(_parse_column_lineage)

_UNSTATED = Transformation(type="DIRECT")
_DATASET_WIDE = Transformation(type="INDIRECT")


def _legacy_transformation(entry: _ColumnEntry) -> Transformation:
    """Read the two fields that producers sent before `transformations` existed."""
    if entry.transformationType is None and entry.transformationDescription is None:
        return _UNSTATED
    kind = (entry.transformationType or "").upper()
    return Transformation(
        type="DIRECT",
        subtype="TRANSFORMATION" if kind == "MASKED" else kind,
        description=entry.transformationDescription,
        masking=kind == "MASKED",
    )


def _column_transformation(stated: Transformation) -> ColumnTransformation:
    return ColumnTransformation(
        stated.type.upper() != "INDIRECT",
        stated.subtype.upper() if stated.subtype else "",
        stated.description or "",
        stated.masking is True,
        stated.confidence or "",
    )


class _EdgeSet:
    """Collects the edges of one facet."""

    def __init__(self) -> None:
        self._edges: dict[ColumnEdge, None] = {}
        self._datasets: dict[DatasetId, int] = {}
        self._transformations: dict[ColumnTransformation, int] = {}
        # Keyed by the values in the facet, so that each value is converted once.
        self._by_name: dict[tuple[str | None, str | None, str], int | None] = {}
        self._by_stated: dict[tuple[object, ...], int] = {}

    def add_inputs(
        self, sources: Sequence[InputField] | None, name: str, fallback: Transformation
    ) -> None:
        """Add the edges from sources to a field. `fallback` replaces a missing transformation."""
        derived = bounded(name) if name else EVERY_FIELD
        for source in sources or ():
            named = (source.namespace, source.name, source.type)
            dataset = self._by_name[named] if named in self._by_name else self._dataset(source)
            if dataset is None:
                continue
            field = bounded(source.field) if source.field else EVERY_FIELD
            for how in source.transformations or (fallback,):
                key = (how.type, how.subtype, how.description, how.masking, how.confidence)
                kind = self._by_stated.get(key)
                if kind is None:
                    kind = self._by_stated[key] = self._transformations.setdefault(
                        _column_transformation(how), len(self._transformations)
                    )
                self._edges[dataset, field, derived, kind] = None

    def build(self) -> ColumnLineageEdges:
        """Return all edges that were added."""
        return ColumnLineageEdges(
            tuple(self._datasets), tuple(self._edges), tuple(self._transformations)
        )

    def _dataset(self, source: InputField) -> int | None:
        dataset = source.dataset()
        index = None
        if dataset is not None:
            index = self._datasets.setdefault(dataset, len(self._datasets))
        self._by_name[source.namespace, source.name, source.type] = index
        return index


# Rendering


def render_column_lineage(output: OutputLineage) -> msgspec.Raw:
    """Return the columnLineage facet of a dataset."""
    return render_facet(
        "ColumnLineageDatasetFacet",
        "1-2-0",
        fields={
            name: {"inputFields": _render_inputs(inputs, _Source)}
            for name, inputs in output.fields.items()
            if inputs
        },
        dataset=_render_inputs(output.rows, _Source),
    )


def render_job_lineage(outputs: Mapping[DatasetId, JobOutput]) -> msgspec.Raw:
    """Return the lineage facet of a job with several outputs.

    Without this facet, every input of the job counts as a source of every output.
    """
    entries = [
        {
            **_entity(dataset),
            "inputs": [
                *map(_entity, output.sources),
                *_render_inputs(output.lineage.rows, _TypedSource),
            ],
            "fields": {
                name: {"inputs": _render_inputs(inputs, _TypedSource)}
                for name, inputs in output.lineage.fields.items()
                if inputs
            },
        }
        for dataset, output in outputs.items()
    ]
    return render_facet("LineageJobFacet", "1-0-0", entries=entries)


def render_dataset_lineage(sources: Iterable[DatasetId]) -> msgspec.Raw:
    """Return the lineage facet of a dataset that derives from others, without columns."""
    return render_facet("LineageDatasetFacet", "1-0-0", inputs=[_entity(s) for s in sources])


def _entity(dataset: DatasetId) -> dict[str, str]:
    return {"type": "DATASET", **identifier(dataset)}


class _Source(msgspec.Struct, gc=False):
    """An input field of a columnLineage facet."""

    namespace: str
    name: str
    field: str
    transformations: list[Transformation]


class _TypedSource(msgspec.Struct, gc=False, tag_field="type", tag="DATASET"):
    """An input of a lineage facet."""

    namespace: str
    name: str
    field: str
    transformations: list[Transformation]


Source = TypeVar("Source", _Source, _TypedSource)


def _render_inputs(inputs: Sequence[ColumnInput], kind: type[Source]) -> list[Source]:
    """Return one entry per source column, with all its transformations."""
    by_column: dict[tuple[DatasetId, str], Source] = {}
    for dataset, field, transformation in inputs:
        source = by_column.get((dataset, field))
        if source is None:
            source = kind(dataset.namespace, dataset.name, field, [])
            by_column[dataset, field] = source
        source.transformations.append(_facet_transformation(transformation))
    return list(by_column.values())


@lru_cache(1024)  # most columns of a facet share few transformations
def _facet_transformation(transformation: ColumnTransformation) -> Transformation:
    return Transformation(
        type="DIRECT" if transformation.direct else "INDIRECT",
        subtype=transformation.subtype,
        description=transformation.description,
        masking=transformation.masking,
        confidence=transformation.confidence or None,
    )
