"""Injected changes are found, and normal variation is not reported, in a generated history."""

from __future__ import annotations

import pytest
from bench.watch import measure, three_sigma


@pytest.mark.slow
def test_the_monitor_has_high_recall_and_few_false_alarms() -> None:
    score, generated = measure(datasets=30, seed=11)
    recall = sum(score.found.values()) / sum(score.put.values())
    false = 1000 * len(score.false) / generated.checks
    assert recall >= 0.95, score.put - score.found
    assert false <= 1.0, [(f.entity, f.message) for f in score.false]
    assert len(score.put) == 10  # every kind of change was injected
    assert max(score.delays) <= 3  # an edge has vanished once three runs went without it
    theirs, false_alarms = three_sigma(generated)
    assert score.found["row_count_shift"] >= theirs
    assert sum(f.kind.value == "row_count_shift" for f in score.false) < false_alarms
