"""The statistics and quality facets of a dataset, as series of figures over time."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.events.facets import read_facet
from downriver.govern.drift.series import Point
from downriver.model.facts import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.model.facts import EventRef
    from downriver.store.history import Measure


class ColumnFigures(msgspec.Struct):
    """What was measured of one column."""

    nullCount: float | None = None  # noqa: N815
    distinctCount: float | None = None  # noqa: N815
    sum: float | None = None
    count: float | None = None
    min: float | None = None
    max: float | None = None
    quantiles: dict[str, float] | None = None


class Figures(msgspec.Struct):
    """outputStatistics, inputStatistics and dataQualityMetrics: what they share, and columns."""

    rowCount: float | None = None  # noqa: N815
    columnMetrics: dict[str, ColumnFigures] | None = None  # noqa: N815


class Assertion(msgspec.Struct):
    """How one check came out."""

    assertion: str = ""
    success: bool = True
    column: str | None = None
    severity: str | None = None
    expected: str | None = None
    actual: str | None = None


class Assertions(msgspec.Struct):
    """dataQualityAssertions."""

    assertions: list[Assertion] | None = None


class SeriesKey(NamedTuple):
    """What a series is of: figures of two jobs are not comparable, nor reads with writes."""

    metric: str  # rows, nulls, mean, distinct or a quantile
    column: str
    job: int
    role: Role


class Check(NamedTuple):
    """The last outcome of a check, and since when it has come out so."""

    assertion: Assertion
    job: int
    run: str
    at: EventRef
    since: EventRef


def read_series(measures: Iterable[Measure]) -> dict[SeriesKey, list[Point]]:
    """Return every series of figures, in order of time; of one run the last figure counts."""
    found: defaultdict[SeriesKey, dict[str, Point]] = defaultdict(dict)
    for measure in measures:
        if measure.name == "dataQualityAssertions":
            continue
        figures = read_facet(measure.body, Figures)
        size = figures.rowCount or math.inf
        for metric, column, value in _figures(figures):
            key = SeriesKey(metric, column, measure.job, measure.role)
            run = measure.run or measure.at.digest.hex()
            found[key].pop(run, None)
            found[key][run] = Point(
                measure.at.at, value, measure.at, measure.job, measure.run, size
            )
    return {key: sorted(points.values(), key=_order) for key, points in found.items()}


def _order(point: Point) -> tuple[int, bytes]:
    return point.at, point.event.digest


def _figures(figures: Figures) -> Iterator[tuple[str, str, float]]:
    rows = figures.rowCount
    if rows is not None and math.isfinite(rows) and rows >= 0:
        yield "rows", "", rows
    for column, of in (figures.columnMetrics or {}).items():
        for metric, value in _column_figures(of, rows):
            if math.isfinite(value):
                yield metric, column, value


def _column_figures(of: ColumnFigures, rows: float | None) -> Iterator[tuple[str, float]]:
    if of.nullCount is not None and rows:
        yield "nulls", of.nullCount / rows
    if of.distinctCount is not None and rows:
        yield "distinct", of.distinctCount / rows
    if of.sum is not None and of.count:
        yield "mean", of.sum / of.count
    for name, value in (of.quantiles or {}).items():
        yield f"quantile {name}", value


def read_checks(measures: Iterable[Measure]) -> list[Check]:
    """Return the last outcome of every check, by name, column and job."""
    found: dict[tuple[str, str, int], Check] = {}
    for measure in measures:
        if measure.name != "dataQualityAssertions":
            continue
        for entry in read_facet(measure.body, Assertions).assertions or ():
            key = (entry.assertion, entry.column or "", measure.job)
            known = found.get(key)
            same = known is not None and known.assertion.success == entry.success
            since = known.since if same and known is not None else measure.at
            found[key] = Check(entry, measure.job, measure.run, measure.at, since)
    return [found[key] for key in sorted(found)]
