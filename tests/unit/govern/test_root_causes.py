"""The benchmark of root causes: its faults fit its pipelines, and a cause is found."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pytest
from bench.incidents.held_out_faults import HELD_OUT_FAULTS
from bench.incidents.known_faults import KNOWN_FAULTS
from bench.incidents.night import Night
from bench.root_cause import PIPELINES, judge, write_history

if TYPE_CHECKING:
    from pathlib import Path


def test_each_set_has_30_faults_and_the_sets_share_no_kind_and_no_pipeline() -> None:
    assert (len(KNOWN_FAULTS), len(HELD_OUT_FAULTS)) == (30, 30)
    for part in ("kind", "pipeline"):
        known, held_out = (
            {getattr(fault, part) for fault in faults} for faults in (KNOWN_FAULTS, HELD_OUT_FAULTS)
        )
        assert not known & held_out


@pytest.mark.parametrize("name", PIPELINES)
def test_the_jobs_of_each_pipeline_complete_without_a_fault(name: str) -> None:
    pipeline = PIPELINES[name]
    with duckdb.connect() as db:
        events = list(Night(pipeline, db, 0, random.Random(1)).events())
    states = Counter(b'"COMPLETE"' in event for event in events)
    assert states == {True: len(pipeline.steps), False: len(pipeline.steps)}


def test_the_renamed_column_of_a_held_out_pipeline_is_the_first_suspect(tmp_path: Path) -> None:
    fault = next(f for f in HELD_OUT_FAULTS if f.pipeline == "stock" and "renamed" in f.kind)
    history = write_history(PIPELINES["stock"], tmp_path, 1)
    outcome = judge(fault, history, tmp_path, 1)
    assert outcome.rank == 1
    assert outcome.report.status == "failing"
