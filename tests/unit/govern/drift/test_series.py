"""A shift of a figure is detected by its own history."""

from __future__ import annotations

import random

from tests.unit.govern.scenario import micros

from downriver.govern.drift.series import (
    COUNT,
    DAY,
    RATE,
    SeriesLimits,
    SeriesPoint,
    SeriesShift,
    find_shift,
)
from downriver.model.facts import EventRef

LIMITS = SeriesLimits()
WINDOW = 60 * DAY


def points(values: list[float]) -> list[SeriesPoint]:
    return [
        SeriesPoint(micros(day), value, EventRef(micros(day), b"%d" % day), 1, str(day))
        for day, value in enumerate(values)
    ]


def shift(values: list[float], limits: SeriesLimits = LIMITS) -> SeriesShift | None:
    return find_shift(points(values), limits, COUNT, WINDOW)


def noisy(days: int, seed: int = 1, weekend: float = 1.0, growth: float = 0.0) -> list[float]:
    chance = random.Random(seed)
    return [
        1000 * (weekend if day % 7 > 4 else 1) * (1 + growth) ** day * chance.gauss(1, 0.05)
        for day in range(days)
    ]


def test_a_drop_is_found_with_what_was_expected() -> None:
    found = shift([*noisy(28), 300])
    assert found is not None
    assert found.direction == "down"
    assert 900 < found.expected < 1100


def test_noise_weekends_and_growth_are_ordinary() -> None:
    for weekend in (1.0, 0.5, 0.1):
        for growth in (0.0, 0.01):
            values = noisy(60, weekend=weekend, growth=growth)
            for day in range(12, 60):
                assert shift(values[: day + 1]) is None, (weekend, growth, day)


def test_a_weekday_figure_on_a_sunday_is_a_shift_once_weeks_are_known() -> None:
    values = noisy(35, weekend=0.2)
    values[-1] = 1000
    found = shift(values)
    assert found is not None
    assert found.season == "weekday"
    assert found.expected < 300


def test_a_short_history_gives_no_finding() -> None:
    assert shift([*noisy(9), 1]) is None


def test_a_small_change_is_none_however_still_it_was_before() -> None:
    still = [1_000_000.0] * 20
    assert shift([*still, 1_150_000]) is None
    assert shift([*still, 1_300_000]) is not None
    assert shift([*still, 1_150_000], SeriesLimits(min_change=0.05)) is not None


def test_of_few_rows_more_is_by_chance() -> None:
    assert shift([*[10.0] * 20, 16]) is None
    assert shift([*[10.0] * 20, 60]) is not None
    rates = [p._replace(size=50) for p in points([*[0.0] * 20, 0.04])]
    assert find_shift(rates, SeriesLimits(min_change=0.02), RATE, WINDOW) is None
    assert find_shift([p._replace(size=50_000) for p in rates], LIMITS, RATE, WINDOW) is None
    many = [p._replace(size=50_000) for p in rates]
    assert find_shift(many, SeriesLimits(min_change=0.02), RATE, WINDOW) is not None


def test_an_outlier_in_the_past_hides_nothing() -> None:
    values = noisy(28)
    values[10] = 50_000
    assert shift([*values, 300]) is not None


def test_a_shift_is_dated_by_its_first_figure_and_settles() -> None:
    values = [*noisy(28), 300, 310]
    found = shift(values)
    assert found is not None
    assert found.since.at == micros(28)
    assert shift([*values, *[305.0] * 6]) is None  # the new normal


def test_rates_are_compared_as_they_are() -> None:
    rates = [0.01, 0.012, 0.008, 0.011] * 5
    found = find_shift(points([*rates, 0.3]), SeriesLimits(min_change=0.02), RATE, WINDOW)
    assert found is not None
    assert find_shift(points([*rates, 0.02]), SeriesLimits(min_change=0.02), RATE, WINDOW) is None


def test_one_week_of_hourly_values_gives_no_pattern_of_weekdays() -> None:
    chance = random.Random(3)
    values = [
        SeriesPoint(
            micros(0, hour), 1000 * chance.gauss(1, 0.05), EventRef(hour, b""), 1, str(hour)
        )
        for hour in range(24 * 9)
    ]
    for hour in range(100, len(values)):
        assert find_shift(values[:hour], LIMITS, COUNT, WINDOW) is None
    odd = values[-1]._replace(value=300.0)
    found = find_shift([*values[:-1], odd], LIMITS, COUNT, WINDOW)
    assert found is not None
    assert found.season == ""
