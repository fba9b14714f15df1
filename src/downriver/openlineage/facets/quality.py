"""Facets about the content of a dataset: row counts, column statistics, results of checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.openlineage.facets.base import parse_facet, render_facet

if TYPE_CHECKING:
    from collections.abc import Iterable

INPUT_STATISTICS = "inputStatistics"
OUTPUT_STATISTICS = "outputStatistics"
QUALITY_METRICS = "dataQualityMetrics"
ASSERTIONS = "dataQualityAssertions"


class ColumnStatistics(msgspec.Struct):
    """What was measured of one column."""

    nullCount: float | None = None  # noqa: N815
    distinctCount: float | None = None  # noqa: N815
    sum: float | None = None
    count: float | None = None
    min: float | None = None
    max: float | None = None
    quantiles: dict[str, float] | None = None


class StatisticsFacet(msgspec.Struct):
    """What inputStatistics, outputStatistics and dataQualityMetrics share, and columns."""

    rowCount: float | None = None  # noqa: N815
    columnMetrics: dict[str, ColumnStatistics] | None = None  # noqa: N815


class QualityAssertion(msgspec.Struct, omit_defaults=True):
    """The result of one check."""

    assertion: str = ""
    success: bool = True
    severity: str | None = None
    column: str | None = None
    expected: str | None = None
    actual: str | None = None


class _Assertions(msgspec.Struct):
    assertions: list[QualityAssertion] | None = None


def parse_statistics(body: bytes) -> StatisticsFacet:
    """Return what a facet says of the rows and columns of a dataset."""
    return parse_facet(body, StatisticsFacet)


def parse_assertions(body: bytes) -> list[QualityAssertion]:
    """Return the results of the checks of a dataset."""
    return parse_facet(body, _Assertions).assertions or []


def render_assertions(assertions: Iterable[QualityAssertion]) -> msgspec.Raw:
    """Return the facet with the results of the checks of a dataset."""
    entries = [_render_assertion(assertion) for assertion in assertions]
    return render_facet("DataQualityAssertionsDatasetFacet", "1-1-0", assertions=entries)


def _render_assertion(assertion: QualityAssertion) -> dict[str, object]:
    return {"assertion": assertion.assertion, "success": assertion.success} | {
        name: value
        for name in ("severity", "column", "expected", "actual")
        if (value := getattr(assertion, name)) is not None
    }


def render_input_statistics(
    *, rows: int | None = None, size: int | None = None, files: int | None = None
) -> msgspec.Raw:
    """Return the facet of how much a run read; `size` is in bytes."""
    counts = _counts(rows, size, files)
    return render_facet("InputStatisticsInputDatasetFacet", "1-0-0", **counts)


def render_output_statistics(
    *, rows: int | None = None, size: int | None = None, files: int | None = None
) -> msgspec.Raw:
    """Return the facet of how much a run wrote; `size` is in bytes."""
    counts = _counts(rows, size, files)
    return render_facet("OutputStatisticsOutputDatasetFacet", "1-0-2", **counts)


def _counts(rows: int | None, size: int | None, files: int | None) -> dict[str, int]:
    counts = {"rowCount": rows, "size": size, "fileCount": files}
    return {name: count for name, count in counts.items() if count is not None}
