"""Statistics and quality checks of a dataset over time.

Finds row counts, null rates and distributions that shifted, and checks that fail.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.drift.series import (
    COUNT,
    DAY,
    RATE,
    Measurement,
    SeriesPoint,
    SeriesShift,
    find_shift,
)
from downriver.model.facts import FacetRole
from downriver.model.governance import Evidence, Finding, FindingKind, Severity
from downriver.openlineage.facets.dataset import (
    ASSERTIONS,
    ColumnStatistics,
    QualityAssertion,
    StatisticsFacet,
    parse_assertions,
    parse_statistics,
)
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from downriver.govern.drift.series import DriftLimits, SeriesLimits
    from downriver.model.facts import EventRef
    from downriver.model.ids import DatasetId
    from downriver.store.catalog.history import DatasetMeasure


class SeriesKey(NamedTuple):
    """Identifies a series. Values of two jobs are not comparable, nor are reads and writes."""

    metric: str  # rows, nulls, mean, distinct or a quantile
    column: str
    job: int
    role: FacetRole


class QualityCheck(NamedTuple):
    """The last outcome of a check, and the time since which the outcome is the same."""

    assertion: QualityAssertion
    job: int
    run: str
    at: EventRef
    since: EventRef


def read_series(measures: Iterable[DatasetMeasure]) -> dict[SeriesKey, list[SeriesPoint]]:
    """Return every series of figures, in order of time; of one run the last figure counts."""
    found: defaultdict[SeriesKey, dict[str, SeriesPoint]] = defaultdict(dict)
    for measure in measures:
        if measure.name == ASSERTIONS:
            continue
        figures = parse_statistics(measure.body)
        size = figures.rowCount or math.inf
        for metric, column, value in _statistics(figures):
            key = SeriesKey(metric, column, measure.job, measure.role)
            run = measure.run or measure.at.digest.hex()
            found[key].pop(run, None)
            found[key][run] = SeriesPoint(
                measure.at.at, value, measure.at, measure.job, measure.run, size
            )
    return {key: sorted(points.values(), key=_order) for key, points in found.items()}


def _order(point: SeriesPoint) -> tuple[int, bytes]:
    return point.at, point.event.digest


def _statistics(figures: StatisticsFacet) -> Iterator[tuple[str, str, float]]:
    rows = figures.rowCount
    if rows is not None and math.isfinite(rows) and rows >= 0:
        yield "rows", "", rows
    for column, of in (figures.columnMetrics or {}).items():
        for metric, value in _column_statistics(of, rows):
            if math.isfinite(value):
                yield metric, column, value


def _column_statistics(of: ColumnStatistics, rows: float | None) -> Iterator[tuple[str, float]]:
    if of.nullCount is not None and rows:
        yield "nulls", of.nullCount / rows
    if of.distinctCount is not None and rows:
        yield "distinct", of.distinctCount / rows
    if of.sum is not None and of.count:
        yield "mean", of.sum / of.count
    for name, value in (of.quantiles or {}).items():
        yield f"quantile {name}", value


def read_checks(measures: Iterable[DatasetMeasure]) -> list[QualityCheck]:
    """Return the last outcome of every check, by name, column and job."""
    checks: dict[tuple[str, str, int], QualityCheck] = {}
    for measure in measures:
        if measure.name != ASSERTIONS:
            continue
        for entry in parse_assertions(measure.body):
            key = (entry.assertion, entry.column or "", measure.job)
            known = checks.get(key)
            same = known is not None and known.assertion.success == entry.success
            since = known.since if same and known is not None else measure.at
            checks[key] = QualityCheck(entry, measure.job, measure.run, measure.at, since)
    return [checks[key] for key in sorted(checks)]


_VALUE = Measurement(lambda values: values, lambda value: value, 1e-9, True)
_ROLES = {
    FacetRole.INPUT: "read",
    FacetRole.OUTPUT: "written",
    FacetRole.NODE: "there",
    FacetRole.RUN: "there",
}
_FAILED_WITH = {"warn": Severity.INFO, "warning": Severity.INFO}


class DatasetMeasures:
    """All measurements of one dataset. `names` has the names of jobs."""

    def __init__(
        self, dataset: DatasetId, measures: list[DatasetMeasure], names: Callable[[int], str | None]
    ) -> None:
        self._dataset = dataset
        self._measures = measures
        self._names = names

    def findings(
        self, limits: DriftLimits, now: int, *, old_failures: bool = False
    ) -> Iterator[Finding]:
        """Yield the values that differ from their history. Old series are skipped.

        `old_failures`: a failed check counts until it has a later result, however old it is.
        """
        oldest = now - int(limits.lateness.give_up_days * DAY)
        shifts = list(self._shifts(limits, oldest))
        yield from (self._of_rows(key, s) for key, s in shifts if key.metric == "rows")
        yield from (self._of_nulls(key, s) for key, s in shifts if key.metric == "nulls")
        others = [(key, s) for key, s in shifts if key.metric not in ("rows", "nulls")]
        for column in sorted({(key.column, key.job, key.role) for key, _ in others}):
            yield self._of_values(
                [p for p in others if (p[0].column, p[0].job, p[0].role) == column]
            )
        for check in read_checks(self._measures):
            if not check.assertion.success and (old_failures or check.at.at >= oldest):
                yield self._of_check(check)

    def _shifts(self, limits: DriftLimits, oldest: int) -> Iterator[tuple[SeriesKey, SeriesShift]]:
        window = int(limits.window_days * DAY)
        for key, points in sorted(read_series(self._measures).items()):
            if points[-1].at < oldest:
                continue
            bounds, measurement = _judged_by(key, limits, points)
            shift = find_shift(points, bounds, measurement, window)
            if shift is not None:
                yield key, shift

    def _of_rows(self, key: SeriesKey, shift: SeriesShift) -> Finding:
        empty = shift.point.value == 0
        return self._finding(
            FindingKind.ROW_COUNT_SHIFT,
            key,
            shift,
            Severity.CRITICAL if empty else Severity.WARNING,
            f"{_count(shift.point.value)} rows were {_ROLES[key.role]}; "
            f"about {_count(shift.expected)} were expected ({_change(shift)})",
            state="empty" if empty else shift.direction,
            shown=_count,
        )

    def _of_nulls(self, key: SeriesKey, shift: SeriesShift) -> Finding:
        return self._finding(
            FindingKind.NULL_RATE_SHIFT,
            key,
            shift,
            Severity.WARNING,
            f"{shift.point.value:.1%} of {key.column} is null; "
            f"about {shift.expected:.1%} was expected",
            state=shift.direction,
            shown=lambda value: f"{value:.1%}",
        )

    def _of_values(self, shifts: Sequence[tuple[SeriesKey, SeriesShift]]) -> Finding:
        key, shift = max(shifts, key=lambda pair: (abs(pair[1].deviations), pair[0].metric))
        finding = self._finding(
            FindingKind.DISTRIBUTION_SHIFT,
            key,
            shift,
            Severity.WARNING,
            f"the values of {key.column} have shifted: its {_WORDS.get(key.metric, key.metric)} is "
            f"{_figure(shift.point.value)}; about {_figure(shift.expected)} was expected",
            state="",  # a second quantile that shifts does not change the finding
            shown=_figure,
        )
        others = [(k, s) for k, s in shifts if k != key]
        finding.why += [
            f"{_WORDS.get(k.metric, k.metric)}: {_figure(s.expected)} to {_figure(s.point.value)}"
            for k, s in others
        ]
        return finding

    def _finding(
        self,
        kind: FindingKind,
        key: SeriesKey,
        shift: SeriesShift,
        severity: Severity,
        message: str,
        *,
        state: str,
        shown: Callable[[float], str],
    ) -> Finding:
        subject = " ".join(filter(None, (key.column, _ROLES[key.role], self._by(key.job))))
        season = f", by {shift.season}" if shift.season else ""
        return Finding(
            kind=kind,
            entity=str(self._dataset),
            subject=subject,
            severity=severity,
            message=message,
            first_seen=render_time(shift.since.at),
            state=state,
            expected=shown(shift.expected),
            actual=shown(shift.point.value),
            why=[f"{abs(shift.deviations)} deviations off, from {shift.history} values{season}"],
            evidence=[self._evidence(p) for p in dict.fromkeys((shift.since, shift.point))],
        )

    def _by(self, job: int) -> str:
        name = self._names(job)
        return f"by {name}" if name else ""

    def _evidence(self, point: SeriesPoint) -> Evidence:
        return Evidence(
            event=point.event.digest.hex(),
            at=render_time(point.at),
            job=self._names(point.job),
            run=point.run or None,
        )

    def _of_check(self, check: QualityCheck) -> Finding:
        result = check.assertion
        column = f" on {result.column}" if result.column else ""
        got = f": {result.actual}" if result.actual else ""
        return Finding(
            kind=FindingKind.QUALITY_FAILED,
            entity=str(self._dataset),
            subject=" ".join(
                filter(None, (result.column or "", result.assertion, self._by(check.job)))
            ),
            severity=_FAILED_WITH.get((result.severity or "").lower(), Severity.WARNING),
            message=f"the check {result.assertion}{column} fails{got}",
            first_seen=render_time(check.since.at),
            expected=result.expected,
            actual=result.actual,
            evidence=[
                Evidence(
                    event=ref.digest.hex(),
                    at=render_time(ref.at),
                    job=self._names(check.job),
                    run=check.run or None if ref == check.at else None,
                )
                for ref in dict.fromkeys((check.since, check.at))
            ],
        )


_WORDS = {"distinct": "share of distinct values", "mean": "mean"}


def _judged_by(
    key: SeriesKey, limits: DriftLimits, points: Sequence[SeriesPoint]
) -> tuple[SeriesLimits, Measurement]:
    if key.metric == "rows":
        return limits.rows, COUNT
    if key.metric == "nulls":
        return limits.nulls, RATE
    if key.metric == "distinct":
        return limits.distribution, _VALUE._replace(floor=0.005)
    # Values can have any size, so the minimum change is a share of the usual value.
    usual = sorted(abs(p.value) for p in points)[len(points) // 2]
    return limits.distribution, _VALUE._replace(floor=max(0.01 * usual, 1e-9))


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _figure(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def _change(shift: SeriesShift) -> str:
    if not shift.expected:
        return "none"
    return f"{(shift.point.value - shift.expected) / shift.expected:+.0%}"
