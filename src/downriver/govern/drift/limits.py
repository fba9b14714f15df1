"""The limits of drift. Each can be set under `watch:` in downriver.yml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

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
