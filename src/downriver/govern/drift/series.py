"""Detects a shift of a statistic by its own history, with medians, which resist outliers.

The limits of drift can be set under `watch:` in downriver.yml.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.model.facts import EventRef

Above0 = Annotated[float, Meta(gt=0)]
AtLeast0 = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]


class SeriesLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a statistic has shifted.

    It differs from the expected value by more than `threshold` robust deviations and by at least
    `min_change` (a share of the expected value; for rates the difference itself), after
    `min_points` values.
    """

    threshold: Above0 = 4.0
    min_change: AtLeast0 = 0.25
    min_points: Annotated[int, Meta(ge=3)] = 10


class LatenessLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run is late.

    A rhythm needs `min_runs` runs, and a share of `regular` of them must follow it. A run may be
    late by `tolerance`, a share of the usual gap, and at least by `grace_minutes`. A job without a
    run for `give_up_days` is considered retired.
    """

    min_runs: Annotated[int, Meta(ge=3)] = 6
    regular: Share = 0.8
    tolerance: AtLeast0 = 0.1
    grace_minutes: AtLeast0 = 10.0
    give_up_days: Above0 = 14.0


class DriftLimits(msgspec.Struct, frozen=True, kw_only=True):
    """All limits. A change of schema or edges becomes the baseline after `settle_days`."""

    settle_days: Above0 = 7.0
    rows: SeriesLimits = SeriesLimits()
    nulls: SeriesLimits = SeriesLimits(min_change=0.02)
    distribution: SeriesLimits = SeriesLimits(threshold=5.0)
    lateness: LatenessLimits = LatenessLimits()
    vanished_after_runs: Annotated[int, Meta(ge=1)] = 3
    rename_certainty: Share = 0.6
    window_days: Above0 = 60.0


Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]

DAY = 86_400_000_000
# Factors that convert the median absolute deviation, and the ninth decile, to a standard deviation.
_OF_HALF, _OF_NINE_IN_TEN = 1.4826, 1 / 1.645
_CENTRE_ERROR = 1.57  # variance of a median of n, in n-ths of the variance of a value
_SEASON_DAYS = 3  # a weekday or hour has its own baseline after this many days
_SEASON_GAIN = 0.8  # only if the remaining deviation is at most this share
_TREND_POINTS = 14
_TREND_GAIN = 0.9
_RECENT = 60  # points from which a trend is computed
_SETTLED = 7  # this many points at a new level make it normal


class SeriesPoint(NamedTuple):
    """A value with its time, event, job and run, and the number of rows."""

    at: int
    value: float
    event: EventRef
    job: int
    run: str
    size: float = math.inf


def _no_chance(expected: float, size: float) -> float:
    return 0.0


def _chance_of_count(expected: float, size: float) -> float:
    return 1 / math.sqrt(max(expected, 0.0) + 1)


def _chance_of_rate(expected: float, size: float) -> float:
    """Return the deviation of a rate by chance: among 50 rows, one null is 2 %."""
    rate = min(max(expected, 1 / size), 1 - 1 / size) if size > 1 else 0.5
    return math.sqrt(rate * (1 - rate) / max(size, 1.0))


class Measurement(NamedTuple):
    """How a figure is compared: rates by difference, counts by ratio. Less than `floor` is noise.

    `chance` is the deviation by chance alone, given the expected value and the number of rows.
    """

    to_scale: Callable[[Floats], Floats]
    from_scale: Callable[[float], float]
    floor: float
    relative: bool
    chance: Callable[[float, float], float] = _no_chance


COUNT = Measurement(np.log1p, math.expm1, 0.02, True, _chance_of_count)
RATE = Measurement(lambda values: values, lambda value: value, 0.002, False, _chance_of_rate)


class SeriesShift(NamedTuple):
    """The last value of a series differs from what its history predicts."""

    point: SeriesPoint
    expected: float
    deviations: float
    since: SeriesPoint
    history: int
    season: str

    @property
    def direction(self) -> str:
        """The direction of the shift."""
        return "up" if self.point.value > self.expected else "down"


def find_shift(
    points: Sequence[SeriesPoint], limits: SeriesLimits, measurement: Measurement, window: int
) -> SeriesShift | None:
    """Return the shift at the end of a series, with the point where it began."""
    shift = _judge(points, len(points) - 1, limits, measurement, window)
    if shift is None:
        return None
    since = shift.point
    for at in range(len(points) - 2, -1, -1):
        before = _judge(points, at, limits, measurement, window)
        if before is None or before.direction != shift.direction:
            break
        since = before.point
    return shift._replace(since=since)


def _judge(
    points: Sequence[SeriesPoint],
    at: int,
    limits: SeriesLimits,
    measurement: Measurement,
    window: int,
) -> SeriesShift | None:
    point = points[at]
    history = [p for p in points[:at] if p.at >= point.at - window]
    if len(history) < max(limits.min_points, 2):
        return None
    model = _fit(history, measurement)
    expected = model.predict(point.at)
    off = float(measurement.to_scale(np.array([point.value]))[0]) - expected
    usual = measurement.from_scale(expected)
    spread = math.hypot(model.spread, measurement.chance(usual, point.size))
    # A spread known from few points may be too small by chance.
    allowed = limits.threshold * (1 + 4 / len(history)) * spread * model.doubt(point.at)
    if abs(off) <= allowed or abs(off - model.recent(_SETTLED)) <= allowed:
        return None
    if _is_usual_hour_value(history, model, point.at, off, allowed):
        return None
    if not _is_large(point.value, usual, limits.min_change, measurement):
        return None
    deviations = round(off / spread, 1)
    return SeriesShift(point, usual, deviations, point, len(history), model.season)


def _is_usual_hour_value(
    history: Sequence[SeriesPoint], model: _Model, at: int, off: float, allowed: float
) -> bool:
    """Return whether the value is usual at this hour of the week."""
    hours = np.array([_hour_of_week(p.at) for p in history])
    same = model.residuals[hours == _hour_of_week(at)]
    return len(same) > 0 and abs(float(np.median(same)) - off) <= allowed


def _is_large(value: float, usual: float, least: float, measurement: Measurement) -> bool:
    change = abs(value - usual)
    return change >= least * abs(usual) if measurement.relative else change >= least


class _Model(NamedTuple):
    """The prediction of a history: a centre per season, a slope, and the spread."""

    season: str
    centres: dict[int, float]
    counts: dict[int, int]
    centre: float
    slope: float
    origin: float
    spread: float
    loss: float  # the mean deviation also reflects values of two days in seven, unlike the spread
    residuals: Floats

    def doubt(self, at: int) -> float:
        """Return the factor by which a centre from few values widens the allowed range."""
        points = self.counts.get(_SEASONS[self.season](at), len(self.residuals))
        return math.sqrt(1 + _CENTRE_ERROR / points)

    def predict(self, at: int) -> float:
        key = _SEASONS[self.season](at)
        days = at / DAY - self.origin
        return self.centres.get(key, self.centre) + self.slope * days

    def recent(self, count: int) -> float:
        """Return the median deviation of the last points; a lasting new level is normal."""
        return float(np.median(self.residuals[-count:])) if len(self.residuals) >= count else 0.0


def _weekday(at: int) -> int:
    return (at // DAY + 3) % 7  # the epoch was a Thursday


def _hour(at: int) -> int:
    return at // 3_600_000_000 % 24


def _hour_of_week(at: int) -> int:
    return at // 3_600_000_000 % 168


_SEASONS: dict[str, Callable[[int], int]] = {
    "": lambda at: 0,
    "weekday": _weekday,
    "hour": _hour,
}


def _fit(history: Sequence[SeriesPoint], measurement: Measurement) -> _Model:
    times = np.array([p.at for p in history], np.float64) / DAY
    values = measurement.to_scale(np.array([p.value for p in history]))
    best = _with_season("", history, times, values)
    for season in ("weekday", "hour"):
        tried = _with_season(season, history, times, values)
        if tried is not None and best is not None and tried.loss < _SEASON_GAIN * best.loss:
            best = tried
    assert best is not None  # noqa: S101 — without a season there is always a model
    return best._replace(spread=max(best.spread, measurement.floor))


def _with_season(
    season: str, history: Sequence[SeriesPoint], times: Floats, values: Floats
) -> _Model | None:
    keys = np.array([_SEASONS[season](p.at) for p in history])
    if season and not _is_repeated(keys, times.astype(np.int64)):
        return None
    plain = _centred(_Trend(0.0, float(times[-1])), season, keys, times, values)
    if len(times) < _TREND_POINTS:
        return plain
    slope = _slope(times[-_RECENT:], plain.residuals[-_RECENT:])
    trended = _centred(_Trend(slope, float(times[-1])), season, keys, times, values)
    return trended if trended.loss < _TREND_GAIN * plain.loss else plain


class _Trend(NamedTuple):
    """A straight line through a moment, in days."""

    slope: float
    origin: float


def _centred(trend: _Trend, season: str, keys: Keys, times: Floats, values: Floats) -> _Model:
    level = values - trend.slope * (times - trend.origin)
    names, counts = np.unique(keys, return_counts=True)
    centres = {int(key): float(np.median(level[keys == key])) for key in names}
    residuals = level - np.array([centres[int(key)] for key in keys])
    residuals *= _small_sample(len(values) / len(centres))
    return _Model(
        season,
        centres,
        dict(zip(names.tolist(), counts.tolist(), strict=True)),
        float(np.median(level)),
        trend.slope,
        trend.origin,
        _spread(residuals),
        float(np.abs(residuals).mean()),
        residuals,
    )


def _small_sample(points: float) -> float:
    """Return the correction of residuals whose centre was computed from the same values."""
    return 1 / (1 - 1.2 / points) if points > 2 else 2.5


def _is_repeated(keys: Keys, days: Keys) -> bool:
    """Return whether there are several seasons, each seen on enough days."""
    seen = np.unique(np.stack([keys, days]), axis=1)[0]
    counts = np.unique(seen, return_counts=True)[1]
    return len(counts) > 1 and bool(counts.min() >= _SEASON_DAYS)


def _slope(times: Floats, values: Floats) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen)."""
    one, other = np.triu_indices(len(times), 1)
    apart = times[other] - times[one]
    far = apart > 0
    return float(np.median((values[other] - values[one])[far] / apart[far])) if far.any() else 0.0


def _spread(residuals: Floats) -> float:
    half, nine_in_ten = np.quantile(np.abs(residuals), (0.5, 0.9))
    return max(_OF_HALF * float(half), _OF_NINE_IN_TEN * float(nine_in_ten))
