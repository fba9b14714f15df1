"""Statistics in events: shifts, failed checks, and odd values of producers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.openlineage import dataset, encode, run_event
from tests.unit.govern.drift.test_schema import found_at
from tests.unit.govern.scenario import micros, moment, output, rows, run

from downriver.govern.drift import DriftLimits, Inspector
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path


def daily(measured: list[dict[str, Any]]) -> list[dict]:
    return [
        event
        for day, facets in enumerate(measured)
        for event in run("load", day, writes=[output("t", None, facets)])
    ]


def test_shifts_of_a_null_rate_and_a_distribution_are_different_findings(tmp_path: Path) -> None:
    usual = [
        rows(1000, a={"nullCount": 10 + day % 3}, b={"sum": 5e4 + 100 * (day % 4), "count": 1000})
        for day in range(14)
    ]
    bad = rows(1000, a={"nullCount": 400}, b={"sum": 2e5, "count": 1000, "quantiles": {"0.5": 1}})
    found = {f.kind.value: f for f in found_at(tmp_path, daily([*usual, bad]), 14.5)}
    assert set(found) == {"null_rate_shift", "distribution_shift"}
    assert found["null_rate_shift"].actual == "40.0%"
    assert "its mean is 200; about 50" in found["distribution_shift"].message
    assert found["null_rate_shift"].evidence[0].run == "load-14"


def test_no_rows_at_all_is_critical(tmp_path: Path) -> None:
    (found,) = found_at(tmp_path, daily([*[rows(1000)] * 14, rows(0)]), 14.5)
    assert (found.kind.value, found.severity.value) == ("row_count_shift", "critical")


def test_figures_of_two_jobs_are_not_mixed(tmp_path: Path) -> None:
    events = [
        event
        for day in range(14)
        for event in (
            *run("full", day, writes=[output("t", None, rows(100_000))]),
            *run("part", day + 0.5, writes=[output("t", None, rows(10))]),
        )
    ]
    assert found_at(tmp_path, events, 14) == []


def checked(day: int, success: bool, severity: str = "error") -> dict:
    check = {"assertion": "not_null", "column": "id", "success": success, "severity": severity}
    facets = {"dataQualityAssertions": {"assertions": [check]}}
    tested = dataset("t", inputFacets=facets)
    return run_event("test", f"r{day}", at=moment(day), inputs=[tested])


def test_a_check_that_fails_is_open_since_it_first_did_until_it_passes(tmp_path: Path) -> None:
    events = [checked(0, True), checked(1, False), checked(2, False)]
    (found,) = found_at(tmp_path, events, 3)
    assert (found.kind.value, found.severity.value) == ("quality_failed", "warning")
    assert found.first_seen == moment(1)
    assert found.message == "the check not_null on id fails"
    assert found_at(tmp_path, [*events, checked(3, True)], 4) == []


def test_a_check_that_only_warns_is_information(tmp_path: Path) -> None:
    (found,) = found_at(tmp_path, [checked(0, False, "warn")], 1)
    assert found.severity.value == "info"


def test_runs_are_compared_by_their_nominal_time(tmp_path: Path) -> None:
    """Backfills start at odd times; their nominal times keep the rhythm."""

    def meant(day: int, began: float) -> list[dict]:
        nominal = {"nominalTime": {"nominalStartTime": moment(day)}}
        return run("load", began, run_facets=nominal)

    events = [e for day in range(10) for e in meant(day, day + 0.02 * (day % 3))]
    assert found_at(tmp_path, events, 10.05, "job:etl:load") == []
    (late,) = found_at(tmp_path, events, 10.4, "job:etl:load")
    assert late.kind.value == "run_late"
    backfilled = [*events, *meant(3, 10.35), *meant(4, 10.36)]
    (still,) = found_at(tmp_path, backfilled, 10.4, "job:etl:load")
    assert still.kind.value == "run_late"


numbers = st.one_of(
    st.none(), st.integers(-(10**30), 10**30), st.floats(), st.text(max_size=3), st.booleans()
)
columns = st.dictionaries(
    st.sampled_from(["a", "b"]),
    st.dictionaries(
        st.sampled_from(["nullCount", "distinctCount", "sum", "count", "quantiles"]),
        st.one_of(numbers, st.dictionaries(st.sampled_from(["0.5", "1"]), numbers)),
    ),
)
facets = st.fixed_dictionaries(
    {},
    optional={
        "outputStatistics": st.one_of(numbers, st.fixed_dictionaries({"rowCount": numbers})),
        "dataQualityMetrics": st.fixed_dictionaries(
            {"rowCount": numbers, "columnMetrics": st.one_of(numbers, columns)}
        ),
        "dataQualityAssertions": st.fixed_dictionaries(
            {"assertions": st.one_of(numbers, st.lists(st.one_of(numbers, columns), max_size=2))}
        ),
    },
)


def _as_json(event: dict) -> bytes:
    """Numbers that JSON cannot represent are written as some producers write them."""
    text = json.dumps(event).replace("NaN", "null").replace("-Infinity", "0")
    return text.replace("Infinity", "1e999").encode()


@settings(max_examples=60, deadline=None)
@given(st.lists(facets, min_size=12, max_size=14))
def test_the_monitor_continues_after_any_measurement(
    tmp_path_factory, measured: list[dict]
) -> None:
    events = [_as_json(event) for event in daily(measured)]
    with Lineage.open(str(tmp_path_factory.mktemp("odd"))) as lineage:
        lineage.ingest(events)
        with lineage.session.reading() as (graph, reader):
            inspector = Inspector(graph, reader, DriftLimits(), micros(20))
            for kind in (0, 1):
                for node in reader.history.nodes_of_kind(kind):
                    inspector.inspect(node)


def test_a_job_with_many_runs_is_read_by_its_last_ones(tmp_path: Path) -> None:
    events = [e for n in range(1200) for e in run("load", n / 24, writes=[output("t")])]
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event) for event in events])
        with lineage.session.reading() as view:
            job = lineage.session.resolve("job:etl:load", view).node
            reader = view.reader
            last = reader.history.runs(job, 300, micros(100))
            assert [run.run for run in last[-2:]] == [f"load-{1198 / 24}", f"load-{1199 / 24}"]
            assert len(last) == 300
            before = reader.history.runs(job, 300, micros(10))
            assert before[-1].run == "load-10.0"
