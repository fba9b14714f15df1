"""Samples of the oracles: `bench.impact_oracle` and `bench.impact_fuzz` try many more changes."""

from __future__ import annotations

import pytest
from bench.impact_fuzz import Project, run_fuzz
from bench.impact_oracle import list_models, run_trials, total


@pytest.mark.slow
def test_exactly_the_predicted_models_fail() -> None:
    tallies, wrong, tried = run_trials(every=37)
    found = total(tallies)
    assert tried >= 20
    assert sum(n for (happened, _), n in found.counts.items() if happened == "error") >= 10
    assert found.recall("error") == 1.0, [w for w in wrong if w.happened == "error"]
    assert found.precision("error") == 1.0, [w for w in wrong if w.said == "error"]


def test_the_project_is_large_enough_to_mean_something() -> None:
    assert len(list_models()) >= 40


def test_predictions_on_generated_projects_are_what_duckdb_does() -> None:
    tallies, wrong, tried = run_fuzz(projects=2, models=8, changes=8, seed=3)
    found = total(tallies)
    assert tried >= 5
    assert found.recall("error") == 1.0, [w for w in wrong if w.happened == "error"]
    assert found.precision("error") == 1.0, [w for w in wrong if w.said == "error"]
    assert found.recall("changed") >= 0.99, [w for w in wrong if w.happened == "changed"]


def test_the_same_seed_gives_the_same_project() -> None:
    assert Project(5, 6).models == Project(5, 6).models
    assert Project(5, 6).models != Project(6, 6).models
