"""An incident report lists the likely causes and the affected entities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import dataset, dataset_event, encode, run_event
from tests.unit.govern.scenario import derives, moment, output, owned_by, rows, run, schema, told

from downriver.errors import EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.governance import Incident


def weeks(days: int = 20, last_rows: int = 1000) -> list[dict]:
    """A pipeline by the day, whose source shrinks on the last one and whose mart then fails."""
    events: list[dict] = [
        dataset_event("raw", owned_by("ingest-team")),
        dataset_event("dash", owned_by("bi-team")),
    ]
    for day in range(days):
        final = day == days - 1
        count = last_rows if final else 1000 + day % 3
        events += run("load", day, reads=["api"], writes=[output("raw", None, rows(count))])
        events += run(
            "other", day + 0.01, reads=["side"], writes=[output("beside", schema(x="int"))]
        )
        events += run(
            "sum",
            day + 0.1,
            reads=["raw", "beside"],
            writes=[output("mart", {**schema(n="int"), **derives(n="raw.id")})],
            state="FAIL" if final else "COMPLETE",
            error="division by zero\nmore" if final else "",
        )
        if not final:
            events += run("show", day + 0.2, reads=["mart"], writes=[output("dash")])
    return events


def report(folder: Path, entity: str, at: str | None = None, **story: int) -> Incident:
    with told(folder, weeks(**story)) as lineage:
        return lineage.govern.incident_report(entity, at)


def test_an_incident_report_has_the_failure_its_start_and_earlier_changes_upstream(
    tmp_path: Path,
) -> None:
    found = report(tmp_path, "mart", moment(19, 6), last_rows=10)
    assert found.status == "failing"
    assert found.failures[0].message == "failed: division by zero"
    assert found.since == moment(19, 2.6)
    assert found.last_success == moment(18, 2.6)
    first = found.suspects[0]
    assert first.id.endswith(":raw")
    assert "10 rows were written; about 1,001 were expected (-99%)" in first.reasons[0]
    assert first.owners == ["ingest-team"]
    assert found.owners_to_tell == ["bi-team"]
    assert "most likely cause" in found.summary
    assert found.affected_count == 2


def test_a_report_before_the_failure_has_none(tmp_path: Path) -> None:
    found = report(tmp_path, "mart", moment(18, 6), last_rows=10)
    assert (found.status, found.suspects) == ("healthy", [])
    assert found.summary == "no findings for this entity or upstream of it"


def test_sources_of_a_column_rank_before_other_columns_as_suspects(
    tmp_path: Path,
) -> None:
    events = [*weeks(last_rows=10)]
    events += run("other", 19.2, reads=["side"], writes=[output("beside", schema(y="blob"))])
    with told(tmp_path, events) as lineage:
        suspects = lineage.govern.incident_report("mart.n", moment(19, 6)).suspects
        whole = lineage.govern.incident_report("mart", moment(19, 6)).suspects
    scores = {s.id.rpartition(":")[2]: s.score for s in suspects}
    of_whole = {s.id.rpartition(":")[2]: s.score for s in whole}
    assert scores["raw"] == of_whole["raw"]
    assert scores["beside"] < of_whole["beside"]
    assert suspects[0].id.endswith(":raw")


def test_an_incident_report_about_a_failed_job_includes_the_job(tmp_path: Path) -> None:
    found = report(tmp_path, "job:etl:sum", moment(19, 6))
    assert found.kind == "job"
    assert [f.kind.value for f in found.failures] == ["run_failed"]
    assert found.failures[0].evidence[0].run == "sum-19.1"


def test_an_unknown_entity_and_a_bad_time_are_errors(tmp_path: Path) -> None:
    with told(tmp_path, weeks(days=2)) as lineage:
        with pytest.raises(EntityNotFoundError):
            lineage.govern.incident_report("nowhere")
        with pytest.raises(InvalidRequestError, match="at:"):
            lineage.govern.incident_report("mart", "yesterday-ish")


def checked(*, success: bool) -> dict:
    return {"dataQualityAssertions": {"assertions": [{"assertion": "unique", "success": success}]}}


def test_a_failed_check_counts_until_a_later_result_however_old_it_is(tmp_path: Path) -> None:
    events = run("sum", 0, reads=["raw"], writes=[output("mart", checked(success=False))])
    with told(tmp_path, events) as lineage:
        found = lineage.govern.incident_report("mart", moment(60))
        assert found.status == "failing"
        assert [failure.message for failure in found.failures] == ["the check unique fails"]
        lineage.ingest(
            [
                encode(event)
                for event in run(
                    "sum", 1, reads=["raw"], writes=[output("mart", checked(success=True))]
                )
            ]
        )
        assert lineage.govern.incident_report("mart", moment(60)).status == "healthy"


def test_a_failed_run_counts_until_a_later_one_completes(tmp_path: Path) -> None:
    events = run("sum", 0, reads=["raw"], writes=[output("mart")], state="FAIL", error="no disk")
    with told(tmp_path, events) as lineage:
        assert lineage.govern.incident_report("mart", moment(60)).status == "failing"


def test_an_old_failure_upstream_ranks_below_a_recent_one(tmp_path: Path) -> None:
    events = [
        *run("old", 0, reads=["a"], writes=[output("b")], state="FAIL"),
        *run("new", 59, reads=["c"], writes=[output("d")], state="FAIL"),
        *run("sum", 59.5, reads=["b", "d"], writes=[output("mart")], state="FAIL"),
    ]
    with told(tmp_path, events) as lineage:
        found = lineage.govern.incident_report("mart", moment(60))
    assert [suspect.id for suspect in found.suspects] == ["job:etl:new", "job:etl:old"]
    assert found.suspects[0].score > found.suspects[1].score


def test_a_failed_run_and_code_that_was_read_have_written_nothing(tmp_path: Path) -> None:
    events = [
        *run("sum", 0, reads=["raw"], writes=[output("mart")]),
        *run("sum", 1, reads=["raw"], writes=[output("mart")], state="FAIL"),
        *run("never", 1, reads=["raw"], writes=[output("empty")], state="ABORT"),
        {key: value for key, value in run_event("code", outputs=[dataset("planned")]).items()
         if key not in ("run", "eventType")},
    ]  # fmt: skip
    with told(tmp_path, events) as lineage:
        written = {
            name: lineage.govern.incident_report(name, moment(2)).last_written
            for name in ("mart", "empty", "planned")
        }
    assert written == {"mart": moment(0, 0.2), "empty": None, "planned": None}


def test_the_run_that_names_its_output_when_it_starts_has_written_when_it_ends(
    tmp_path: Path,
) -> None:
    events = [
        run_event("sum", "r1", "START", moment(0), outputs=[dataset("mart")]),
        run_event("sum", "r1", "COMPLETE", moment(0, 1)),
        run_event("stream", "r2", "START", moment(0)),
        run_event("stream", "r2", "RUNNING", moment(1), outputs=[dataset("topic")]),
    ]
    with told(tmp_path, events) as lineage:
        assert lineage.govern.incident_report("mart", moment(2)).last_written == moment(0, 1)
        assert lineage.govern.incident_report("topic", moment(2)).last_written == moment(1)


def chained(nulls: int) -> list[dict]:
    """Three tables in a chain; on the last day most values of `a` are null from the first on."""
    events: list[dict] = []
    for day in range(20):
        count = nulls if day == 19 else 0
        measured = rows(1000, a={"nullCount": count}, b={"nullCount": 0})
        sql = "select a from one" if day < 19 else "select a from one /* reviewed */"
        columns = schema(a="text", b="text")
        two = {**columns, **derives(a="one.a", b="one.b")}
        three = {**columns, **derives(a="two.a", b="two.b")}
        events += run("load", day, reads=["api"], writes=[output("one", columns, measured)])
        events += run(
            "second", day + 0.1, reads=["one"], writes=[output("two", two, measured)],
            job_facets={"sql": {"query": sql}},
        )  # fmt: skip
        events += run("third", day + 0.2, reads=["two"], writes=[output("three", three, measured)])
        events += run("show", day + 0.3, reads=["three"], writes=[output("dash")],
                      state="FAIL" if day == 19 else "COMPLETE")  # fmt: skip
    return events


def test_a_cause_is_ranked_above_its_effects_and_above_a_harmless_change(tmp_path: Path) -> None:
    with told(tmp_path, chained(700)) as lineage:
        found = lineage.govern.incident_report("dash", moment(19, 12))
    first, *others = found.suspects
    assert first.id.endswith(":one")
    effects = {each.id.rpartition(":")[2]: each.reasons[0] for each in others}
    assert "explained by" in effects["two"]
    assert "explained by" in effects["three"]
    assert "after a finding of dataset:" in effects["second"]


def test_a_finding_of_another_column_explains_nothing(tmp_path: Path) -> None:
    events = json.loads(json.dumps(chained(0)))
    for event in events:
        event["job"].pop("facets", None)
        for each in event.get("outputs", ()):
            if event["eventTime"] >= moment(19) and each["name"] in ("one", "two"):
                column = "b" if each["name"] == "one" else "a"
                metrics = each["outputFacets"]["dataQualityMetrics"]["columnMetrics"]
                metrics[column]["nullCount"] = 700
    with told(tmp_path, events) as lineage:
        found = lineage.govern.incident_report("dash", moment(19, 12))
    reasons = {each.id.rpartition(":")[2]: each.reasons[0] for each in found.suspects}
    assert "explained" not in reasons["two"]


def test_the_report_lists_freshness_runs_violations_and_changes(tmp_path: Path) -> None:
    with told(tmp_path, chained(700)) as lineage:
        found = lineage.govern.incident_report("dash", moment(19, 12))
    (nearest, *_) = found.freshness
    assert (nearest.dataset.rpartition(":")[2], nearest.age_hours, nearest.late) == (
        "three", 7.0, False,
    )  # fmt: skip
    assert [each.kind.value for each in found.runs] == ["run_failed"]
    assert [each.kind.value for each in found.changes] == ["code_changed"]


def test_the_causes_of_a_failure_stay_suspects_for_as_long_as_it_continues(tmp_path: Path) -> None:
    with told(tmp_path, weeks(last_rows=10)) as lineage:
        soon = lineage.govern.incident_report("mart", moment(19, 6))
        later = lineage.govern.incident_report("mart", moment(40))
    assert (later.status, later.since) == ("failing", soon.since)
    assert [each.id for each in later.suspects][:1] == [each.id for each in soon.suspects][:1]
    assert later.suspects[0].score == soon.suspects[0].score


def dropped(name: str, day: float) -> dict:
    facet = {"lifecycleStateChange": {"lifecycleStateChange": "DROP"}}
    return run_event(
        "cleaner", f"drop-{day}", "COMPLETE", moment(day), outputs=[output(name, facet)]
    )


def test_a_dropped_dataset_that_a_job_reads_is_a_failure_until_it_is_written_again(
    tmp_path: Path,
) -> None:
    with told(tmp_path, [*weeks(), dropped("raw", 19.5)]) as lineage:
        found = lineage.govern.incident_report("raw", moment(19.8))
        assert found.status == "failing"
        assert found.failures[0].message == "the dataset was dropped, but 1 job reads it"
        assert found.last_written == moment(19, 0.2)  # a drop is no write
        assert found.last_success == moment(19, 0.2)
        suspects = lineage.govern.incident_report("mart", moment(19.6)).suspects
        assert suspects[0].id.endswith(":raw")
        assert lineage.govern.incident_report("raw", moment(19.4)).status != "failing"
        again = run("load", 31, reads=["api"], writes=[output("raw")])
        lineage.ingest([encode(event) for event in again])
        kinds = {f.kind.value for f in lineage.govern.incident_report("raw", moment(32)).failures}
        assert "dataset_dropped" not in kinds


def test_a_dropped_dataset_without_readers_is_no_failure(tmp_path: Path) -> None:
    events = [*run("load", 0, reads=["api"], writes=[output("scratch")]), dropped("scratch", 1)]
    with told(tmp_path, events) as lineage:
        assert lineage.govern.incident_report("scratch", moment(2)).failures == []
