"""Has a figure shifted? Judged against its own history, by medians that outliers cannot move.

What is expected is the median of the history, of the same weekday or hour where that explains the
history better, plus its trend. How far off is far is the median absolute deviation from that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.govern.drift.limits import SeriesLimits
    from downriver.model.facts import EventRef

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.int64]

DAY = 86_400_000_000
_NORMAL = 1.4826  # the median absolute deviation of a normal distribution, to its standard one
_SEASON_POINTS = 3  # a weekday or hour speaks for itself once it was seen so often
_SEASON_GAIN = 0.7  # and only where it leaves this share of the deviation, or less
_TREND_POINTS = 14
_TREND_GAIN = 0.9
_RECENT = 60  # points that a trend is taken from
_SETTLED = 7  # so many points at a new level are the new normal


class Point(NamedTuple):
    """A figure, when it was measured, and by which event and run."""

    at: int
    value: float
    event: EventRef
    job: int
    run: str


class Measurement(NamedTuple):
    """How a figure is compared: rates as they are, counts by ratio; `floor` is noise for sure."""

    to_scale: Callable[[Floats], Floats]
    from_scale: Callable[[float], float]
    floor: float
    relative: bool


COUNT = Measurement(np.log1p, math.expm1, 0.02, True)
RATE = Measurement(lambda values: values, lambda value: value, 0.002, False)


class Shift(NamedTuple):
    """The last figure of a series is not what its history predicts."""

    point: Point
    expected: float
    deviations: float
    since: Point
    history: int
    season: str

    @property
    def direction(self) -> str:
        """Which way it went."""
        return "up" if self.point.value > self.expected else "down"


def find_shift(
    points: Sequence[Point], limits: SeriesLimits, measurement: Measurement, window: int
) -> Shift | None:
    """Return the shift a series, in order of time, ends in, with when it began."""
    found = _judge(points, len(points) - 1, limits, measurement, window)
    if found is None:
        return None
    since = found.point
    for at in range(len(points) - 2, -1, -1):
        before = _judge(points, at, limits, measurement, window)
        if before is None or before.direction != found.direction:
            break
        since = before.point
    return found._replace(since=since)


def _judge(
    points: Sequence[Point], at: int, limits: SeriesLimits, measurement: Measurement, window: int
) -> Shift | None:
    point = points[at]
    history = [p for p in points[:at] if p.at >= point.at - window]
    if len(history) < max(limits.min_points, 2):
        return None
    model = _fit(history, measurement)
    expected = model.predict(point.at)
    off = float(measurement.to_scale(np.array([point.value]))[0]) - expected
    # A spread known from few points may be too small by chance.
    allowed = limits.threshold * (1 + 4 / len(history)) * model.spread
    if abs(off) <= allowed or abs(off - model.recent(_SETTLED)) <= allowed:
        return None
    if _was_so_before(history, model, point.at, off, allowed):
        return None
    usual = measurement.from_scale(expected)
    if not _is_large(point.value, usual, limits.min_change, measurement):
        return None
    deviations = round(off / model.spread, 1)
    return Shift(point, usual, deviations, point, len(history), model.season)


def _was_so_before(
    history: Sequence[Point], model: _Model, at: int, off: float, allowed: float
) -> bool:
    """Tell whether it was so on this weekday before, while weeks are too few to tell seasons."""
    same = [place for place, p in enumerate(history) if _weekday(p.at) == _weekday(at)]
    if model.season or len(same) >= _SEASON_POINTS:
        return False
    return bool((np.abs(model.residuals[same] - off) <= allowed).any())


def _is_large(value: float, usual: float, least: float, measurement: Measurement) -> bool:
    change = abs(value - usual)
    return change >= least * abs(usual) if measurement.relative else change >= least


class _Model(NamedTuple):
    """What a history predicts: a centre for every season, a slope, and the spread around them."""

    season: str
    centres: dict[int, float]
    centre: float
    slope: float
    origin: float
    spread: float
    residuals: Floats

    def predict(self, at: int) -> float:
        key = _SEASONS[self.season](at)
        days = at / DAY - self.origin
        return self.centres.get(key, self.centre) + self.slope * days

    def recent(self, count: int) -> float:
        """Return how far off the last points were: a level that holds is no longer news."""
        return float(np.median(self.residuals[-count:])) if len(self.residuals) >= count else 0.0


def _weekday(at: int) -> int:
    return (at // DAY + 3) % 7  # the epoch was a Thursday


def _hour(at: int) -> int:
    return at // 3_600_000_000 % 24


_SEASONS: dict[str, Callable[[int], int]] = {
    "": lambda at: 0,
    "weekday": _weekday,
    "hour": _hour,
}


def _fit(history: Sequence[Point], measurement: Measurement) -> _Model:
    times = np.array([p.at for p in history], np.float64) / DAY
    values = measurement.to_scale(np.array([p.value for p in history]))
    best = _with_season("", history, times, values)
    for season in ("weekday", "hour"):
        tried = _with_season(season, history, times, values)
        if tried is not None and best is not None and tried.spread < _SEASON_GAIN * best.spread:
            best = tried
    assert best is not None  # noqa: S101 — without a season there is always a model
    return best._replace(spread=max(best.spread, measurement.floor))


def _with_season(
    season: str, history: Sequence[Point], times: Floats, values: Floats
) -> _Model | None:
    keys = np.array([_SEASONS[season](p.at) for p in history])
    if season and not _is_repeated(keys):
        return None
    centres = {int(key): float(np.median(values[keys == key])) for key in np.unique(keys)}
    residuals = values - np.array([centres[int(key)] for key in keys])
    model = _Model(
        season,
        centres,
        float(np.median(values)),
        0.0,
        float(times[-1]),
        _spread(residuals),
        residuals,
    )
    return _with_trend(model, keys, times, values)


def _is_repeated(keys: Keys) -> bool:
    """Tell whether there are several seasons, and each was seen often enough."""
    counts = np.unique(keys, return_counts=True)[1]
    return len(counts) > 1 and bool(counts.min() >= _SEASON_POINTS)


def _with_trend(model: _Model, keys: Keys, times: Floats, values: Floats) -> _Model:
    if len(times) < _TREND_POINTS:
        return model
    slope = _slope(times[-_RECENT:], model.residuals[-_RECENT:])
    level = values - slope * (times - model.origin)
    centres = {int(key): float(np.median(level[keys == key])) for key in np.unique(keys)}
    residuals = level - np.array([centres[int(key)] for key in keys])
    spread = _spread(residuals)
    if spread > _TREND_GAIN * model.spread:
        return model
    return model._replace(
        centres=centres,
        centre=float(np.median(level)),
        slope=slope,
        spread=spread,
        residuals=residuals,
    )


def _slope(times: Floats, values: Floats) -> float:
    """Return the median of the slopes between all pairs of points (Theil and Sen)."""
    one, other = np.triu_indices(len(times), 1)
    apart = times[other] - times[one]
    far = apart > 0
    return float(np.median((values[other] - values[one])[far] / apart[far])) if far.any() else 0.0


def _spread(residuals: Floats) -> float:
    return _NORMAL * float(np.median(np.abs(residuals)))
