"""The next run of a job is due by its configured schedule, else by its own rhythm."""

from __future__ import annotations

import pytest
from tests.unit.govern.scenario import micros, moment

from downriver.errors import InvalidRequestError
from downriver.govern.drift.runs import due_by, next_due, parse_schedule
from downriver.govern.drift.series import LatenessLimits
from downriver.openlineage.wire import parse_time, render_time

LIMITS = LatenessLimits()


def due_at(starts: list[int]) -> str | None:
    due = next_due(starts, LIMITS)
    return None if due is None else render_time(due.at)


def test_a_daily_job_is_due_a_day_later_and_may_be_a_little_late() -> None:
    due = next_due([micros(day, 0.1 * (day % 2)) for day in range(10)], LIMITS)
    assert due is not None
    assert abs(due.at - micros(10)) < 0.3 * 3_600_000_000
    assert 2 * 3_600_000_000 < due.tolerance < 4 * 3_600_000_000


def test_on_friday_a_job_of_weekdays_is_due_on_monday_from_the_second_week_on() -> None:
    for weeks in (2, 3, 6):
        starts = [micros(7 * week + day) for week in range(weeks) for day in range(5)]
        assert due_at(starts) == moment(7 * weeks)
        assert due_at(starts[:-1]) == moment(7 * weeks - 3)  # Thursday: tomorrow


def test_an_hourly_job_that_sleeps_at_night_is_due_in_the_morning() -> None:
    starts = [micros(day, hour) for day in range(4) for hour in range(12)]
    assert due_at(starts) == moment(4)
    assert due_at(starts[:-4]) == moment(3, 8)


def test_retries_do_not_make_a_job_run_faster() -> None:
    starts = [micros(day) for day in range(10)]
    retried = [*starts, *(start + 300_000_000 for start in starts[::3])]
    assert due_at(retried) == moment(10)


def test_a_job_without_rhythm_is_never_due() -> None:
    assert due_at([micros(day) for day in (0, 1, 1.3, 5, 5.2, 9, 9.1, 14, 20)]) is None
    assert due_at([micros(day) for day in range(4)]) is None


def test_a_missed_day_in_the_past_does_not_change_the_rhythm() -> None:
    assert due_at([micros(day) for day in range(14) if day != 9]) == moment(14)


@pytest.mark.parametrize(
    ("line", "after", "due"),
    [
        ("0 2 * * *", "2026-01-05T02:00:00Z", "2026-01-06T02:00:00Z"),
        ("*/15 * * * *", "2026-01-05T02:03:00Z", "2026-01-05T02:15:00Z"),
        ("30 6 * * mon-fri", "2026-01-09T07:00:00Z", "2026-01-12T06:30:00Z"),
        ("0 0 1 * *", "2026-01-05T02:00:00Z", "2026-02-01T00:00:00Z"),
        ("0 0 1,15 * sun", "2026-01-05T02:00:00Z", "2026-01-11T00:00:00Z"),
        ("0 5 29 feb *", "2026-01-05T02:00:00Z", "2028-02-29T05:00:00Z"),
        ("10-12/2 3 * * 7", "2026-01-05T02:00:00Z", "2026-01-11T03:10:00Z"),
        ("@daily", "2026-01-05T02:00:00Z", "2026-01-06T00:00:00Z"),
        ("90m", "2026-01-05T02:00:00Z", "2026-01-05T03:30:00Z"),
    ],
)
def test_cron_lines_and_periods(line: str, after: str, due: str) -> None:
    found = parse_schedule(line, "schedule").after(parse_time(after, "after"))
    assert found is not None
    assert render_time(found) == due


def test_a_schedule_in_a_time_zone_keeps_to_its_clock() -> None:
    schedule = parse_schedule("0 3 * * *", "schedule", "Europe/Berlin")
    found = schedule.after(micros(85))  # the end of March: clocks go forward on the 29th
    assert found is not None
    assert render_time(found) == "2026-04-01T01:00:00Z"


@pytest.mark.parametrize(
    "line", ["", "0 2 * *", "61 * * * *", "0 2 * * funday", "0 5-3 * * *", "5 parsecs", "٣d"]
)
def test_what_is_no_schedule_is_an_error_that_names_the_field(line: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"watch\.schedules"):
        parse_schedule(line, "watch.schedules.x")


def test_a_run_that_began_a_little_early_was_meant_for_its_turn() -> None:
    schedule = parse_schedule("0 2 * * *", "schedule")
    due = due_by(schedule, micros(3, -0.05), LIMITS)
    assert due is not None
    assert render_time(due.at) == moment(4)
