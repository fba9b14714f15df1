"""A sample of the execution oracle: `python -m bench.impact_oracle` tries every change."""

from __future__ import annotations

import pytest
from bench.impact_oracle import list_models, run_trials, total


@pytest.mark.slow
def test_who_really_errs_is_who_was_said_to_fail() -> None:
    tallies, wrong, tried = run_trials(every=37)
    found = total(tallies)
    assert tried >= 20
    assert sum(n for (happened, _), n in found.counts.items() if happened == "error") >= 10
    assert found.recall("error") == 1.0, [w for w in wrong if w.happened == "error"]
    assert found.precision("error") == 1.0, [w for w in wrong if w.said == "error"]


def test_the_project_is_large_enough_to_mean_something() -> None:
    assert len(list_models()) >= 40
