"""What counts as drift. Every figure can be set under `watch:` in downriver.yml."""

from __future__ import annotations

import msgspec


class SeriesLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a figure has shifted.

    It must lie `threshold` robust deviations from what its own history predicts, differ by at
    least `min_change` (a share of what was expected; of rates the difference itself), and have
    `min_points` values before it.
    """

    threshold: float = 4.0
    min_change: float = 0.25
    min_points: int = 10


class LatenessLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a run is late.

    A rhythm needs `min_runs` runs and must have held for `regular` of them. A run may be late by
    `tolerance`, a share of the usual gap, and at least by `grace_minutes`. A job that has not run
    for `give_up_days` is taken to be gone.
    """

    min_runs: int = 6
    regular: float = 0.8
    tolerance: float = 0.1
    grace_minutes: float = 10.0
    give_up_days: float = 14.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """All of them. A change of schema or edges is news for `settle_days`, then the new normal."""

    settle_days: float = 7.0
    rows: SeriesLimits = SeriesLimits()
    nulls: SeriesLimits = SeriesLimits(min_change=0.02)
    distribution: SeriesLimits = SeriesLimits(threshold=5.0)
    lateness: LatenessLimits = LatenessLimits()
    vanished_after_runs: int = 3
    rename_certainty: float = 0.6
    window_days: float = 60.0
