"""The schema, the statistics and the last write of a dataset at a moment, from events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from downriver.model.facts import EventRef
from downriver.model.trust.schemas import DeclaredColumn
from downriver.openlineage.facets.contract import CONTRACT, parse_contract_facet
from downriver.openlineage.facets.dataset import (
    INPUT_STATISTICS,
    OUTPUT_STATISTICS,
    QUALITY_METRICS,
    SCHEMA,
    parse_statistics,
    schema_columns,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.govern.entity_context import EntityContext
    from downriver.graph import CatalogSnapshot, GraphSnapshot
    from downriver.model.trust.contracts import DataContract
    from downriver.store import CatalogReader
    from downriver.store.catalog.history import FacetVersion

_MEASURES = 500  # the last facets with statistics that are looked at
_STATISTICS = frozenset({OUTPUT_STATISTICS, QUALITY_METRICS, INPUT_STATISTICS})


class ObservedSchema(NamedTuple):
    """A schema, and the last event that has it."""

    columns: list[DeclaredColumn]
    event: EventRef


class ObservedCount(NamedTuple):
    """A number that an event has."""

    value: float
    event: EventRef


class DatasetObservations(NamedTuple):
    """Observations of a dataset. `schemas` has the last two, the current one first."""

    schemas: list[ObservedSchema]
    rows: ObservedCount | None
    nulls: dict[str, ObservedCount]  # by case-folded column
    written_at: int | None
    at: int


def find_contracts(graph: GraphSnapshot, reader: CatalogReader) -> dict[int, DataContract]:
    """Return the contract of every dataset that has one. A dataset with several names is one."""
    contracts: dict[int, DataContract] = {}
    for node, body in reader.facets.named(CONTRACT).items():
        contract = parse_contract_facet(body)
        if contract is not None and node not in graph.retired:
            contracts[graph.nodes.identities.canonical(node)] = contract
    return contracts


def observe_dataset(
    view: CatalogSnapshot, around: EntityContext, node: int, at: int
) -> DatasetObservations:
    """Return the observations of a dataset in events up to a moment, under all its names."""
    names = view.graph.nodes.identities.group(node)
    rows, nulls = _statistics(view, names, at)
    return DatasetObservations(
        observe_schemas(view.reader, names, at), rows, nulls, around.last_written(node, at), at
    )


def observe_schemas(reader: CatalogReader, names: Sequence[int], at: int) -> list[ObservedSchema]:
    """Return the current schema of a dataset, and the one before if there is one.

    The current schema is the one that was seen last; a table may return to an old schema.
    """
    versions = [
        version
        for name in names
        for version in reader.history.facet_versions(name, SCHEMA)
        if version.span.first.at <= at
    ]
    versions.sort(key=lambda version: _last_seen(version, at), reverse=True)
    schemas: list[ObservedSchema] = []
    for version in versions:
        columns = _columns(version)
        if columns and (not schemas or columns != schemas[-1].columns):
            schemas.append(ObservedSchema(columns, version.span.last))
    return schemas[:2]


def _last_seen(version: FacetVersion, at: int) -> tuple[int, int, bytes]:
    span = version.span
    return min(span.last.at, at), span.first.at, version.digest


def _columns(version: FacetVersion) -> list[DeclaredColumn]:
    return [
        DeclaredColumn(name=column.path, type=column.type)
        for column in schema_columns(version.body)
    ]


def _statistics(
    view: CatalogSnapshot, names: Sequence[int], at: int
) -> tuple[ObservedCount | None, dict[str, ObservedCount]]:
    """Return the last row count, and the last null count of each column.

    The number of rows that a reader got does not count: it may have read a part.
    """
    rows: ObservedCount | None = None
    nulls: dict[str, ObservedCount] = {}
    measures = [m for name in names for m in view.reader.history.measures(name, _MEASURES, at)]
    for measure in sorted(measures, key=lambda measure: measure.at):
        if measure.name not in _STATISTICS:
            continue
        figures = parse_statistics(measure.body)
        if measure.name != INPUT_STATISTICS and _is_count(figures.rowCount):
            rows = ObservedCount(figures.rowCount or 0.0, measure.at)
        for column, of in (figures.columnMetrics or {}).items():
            if _is_count(of.nullCount):
                nulls[column.casefold()] = ObservedCount(of.nullCount or 0.0, measure.at)
    return rows, nulls


def _is_count(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value >= 0
