"""Column edges, read from the facets that state them.

A facet of hundreds of edges names few datasets and says few different things of them, so both are
kept once and an edge is four small values: reading this is most of what a first event costs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from downriver.model.facts import ColumnTransformation, Derivation
from downriver.model.ids import EVERY_FIELD, ColumnId, DatasetId, bounded
from downriver.openlineage.facets.base import (
    ColumnEntry,
    ColumnLineageFacet,
    InputField,
    JobLineageFacet,
    LineageEntry,
    Transformation,
    dataset_id,
    read_facet,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

PackedEdge: TypeAlias = tuple[int, str, str, int]


class ColumnLineageEdges(NamedTuple):
    """The column edges that a facet states for a dataset, each once.

    An edge is the place of its source dataset in `datasets`, the field there, the field it derives,
    and the place in `said` of what is said of it.
    """

    datasets: tuple[DatasetId, ...]
    edges: tuple[PackedEdge, ...]
    said: tuple[ColumnTransformation, ...]


def read_edges(facet: str, body: bytes, target: DatasetId) -> ColumnLineageEdges:
    """Return the column edges a facet states for `target`."""
    match facet:
        case "columnLineage":
            return _column_lineage_edges(body)
        case "lineage":
            entries = [read_facet(body, LineageEntry)]
        case _:
            entries = [
                entry
                for entry in read_facet(body, JobLineageFacet).entries or ()
                if entry.type.upper() != "JOB"
                and dataset_id(entry.namespace or "", entry.name or "") == target
            ]
    reading = _Reading()
    for entry in entries:
        for name, field in (entry.fields or {}).items():
            reading.add(field.inputs, name, _UNSTATED)
        # Without a field an input speaks of datasets, not of columns.
        of_columns = [source for source in entry.inputs or () if source.field]
        reading.add(of_columns, EVERY_FIELD, _DATASET_WIDE)
    return reading.found()


def read_derivations(facet: str, body: bytes, target: DatasetId) -> list[Derivation]:
    """Return the column edges a facet states for `target`, each by itself."""
    datasets, edges, said = read_edges(facet, body, target)
    return [
        Derivation(ColumnId(datasets[place], source), ColumnId(target, derived), *said[kind])
        for place, source, derived, kind in edges
    ]


_SOURCES_REMEMBERED = 16_384
_sources: dict[bytes, tuple[DatasetId, ...]] = {}


def column_sources(digest: bytes, body: bytes) -> tuple[DatasetId, ...]:
    """Return the datasets a columnLineage facet draws on, decoding each distinct facet once."""
    known = _sources.get(digest)
    if known is None:
        if len(_sources) >= _SOURCES_REMEMBERED:
            _sources.clear()
        known = _sources[digest] = _column_lineage_edges(body).datasets
    return known


_LARGEST_REMEMBERED = 2**16


def _column_lineage_edges(body: bytes) -> ColumnLineageEdges:
    # Asked for twice, soon after each other: for its sources, and when it is written.
    return _remembered(body) if len(body) <= _LARGEST_REMEMBERED else _read_column_lineage(body)


def _read_column_lineage(body: bytes) -> ColumnLineageEdges:
    facet = read_facet(body, ColumnLineageFacet)
    reading = _Reading()
    for name, entry in (facet.fields or {}).items():
        reading.add(entry.inputFields, name, _legacy(entry))
    reading.add(facet.dataset, EVERY_FIELD, _DATASET_WIDE)
    return reading.found()


_remembered = lru_cache(256)(_read_column_lineage)

_UNSTATED = Transformation(type="DIRECT")
_DATASET_WIDE = Transformation(type="INDIRECT")


def _legacy(entry: ColumnEntry) -> Transformation:
    """Read the pair that came before `transformations`."""
    if entry.transformationType is None and entry.transformationDescription is None:
        return _UNSTATED
    kind = (entry.transformationType or "").upper()
    return Transformation(
        type="DIRECT",
        subtype="TRANSFORMATION" if kind == "MASKED" else kind,
        description=entry.transformationDescription,
        masking=kind == "MASKED",
    )


def _said(how: Transformation) -> ColumnTransformation:
    return ColumnTransformation(
        how.type.upper() != "INDIRECT",
        how.subtype.upper() if how.subtype else "",
        how.description or "",
        how.masking is True,
        how.confidence or "",
    )


class _Reading:
    """The edges of one facet so far."""

    def __init__(self) -> None:
        self._edges: dict[PackedEdge, None] = {}
        self._datasets: dict[DatasetId, int] = {}
        self._said: dict[ColumnTransformation, int] = {}
        # The same by what the facet holds, so that each is worked out once.
        self._places: dict[tuple[str | None, str | None, str], int | None] = {}
        self._kinds: dict[tuple[object, ...], int] = {}

    def add(
        self, sources: Sequence[InputField] | None, name: str, fallback: Transformation
    ) -> None:
        """Derive a field from its sources; `fallback` is how, where they do not say."""
        derived = bounded(name) if name else EVERY_FIELD
        for source in sources or ():
            named = (source.namespace, source.name, source.type)
            place = self._places[named] if named in self._places else self._place(source)
            if place is None:
                continue
            field = bounded(source.field) if source.field else EVERY_FIELD
            for how in source.transformations or (fallback,):
                means = (how.type, how.subtype, how.description, how.masking, how.confidence)
                kind = self._kinds.get(means)
                if kind is None:
                    kind = self._kinds[means] = self._said.setdefault(_said(how), len(self._said))
                self._edges[place, field, derived, kind] = None

    def found(self) -> ColumnLineageEdges:
        """Return all that was added."""
        return ColumnLineageEdges(tuple(self._datasets), tuple(self._edges), tuple(self._said))

    def _place(self, source: InputField) -> int | None:
        dataset = source.dataset()
        place = None
        if dataset is not None:
            place = self._datasets.setdefault(dataset, len(self._datasets))
        self._places[source.namespace, source.name, source.type] = place
        return place
