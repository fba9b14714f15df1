"""A finding leads to one alert when it opens, changes or is resolved. A restart repeats none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.openlineage import dataset, dataset_event, encode, run_event
from tests.unit.govern.scenario import (
    derives,
    micros,
    moment,
    output,
    owned_by,
    rows,
    run,
    schema,
)

from downriver.govern.drift import Inspector
from downriver.govern.watch import MonitorRound, WatchConfig, parse_watch
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

DAYS = 14


def weeks(last_rows: int = 10) -> list[dict]:
    """Two weeks of a pipeline; on the last day rows are missing, a column has another type."""
    events = [dataset_event("raw", owned_by("ann"), at="2026-01-01T00:00:00Z")]
    for day in range(DAYS):
        final = day == DAYS - 1
        kind = "double" if final else "int"
        events += run(
            "load", day, writes=[output("raw", schema(id=kind), rows(last_rows if final else 1000))]
        )
        if not final:
            events += run("sum", day + 0.1, reads=["raw"], writes=[output("mart")])
    events += run("sum", DAYS - 0.9, reads=["raw"], state="FAIL", error="boom")
    return events


def look(
    folder: Path, day: float, events: list[dict], watch: WatchConfig | None = None
) -> MonitorRound:
    """Check once with a new monitor, as after a restart."""
    with Lineage.open(str(folder)) as lineage:
        lineage.ingest([encode(event) for event in events])
        return lineage.govern.monitor(watch or WatchConfig()).check(micros(day))


def news(found: MonitorRound) -> dict[str, list[str]]:
    return {
        event: sorted(f.kind.value for f in getattr(found, event))
        for event in ("opened", "changed", "resolved")
        if getattr(found, event)
    }


def test_each_finding_is_reported_once_as_new_changed_and_resolved(tmp_path: Path) -> None:
    at = DAYS - 0.8
    first = look(tmp_path, at, weeks())
    assert news(first) == {"opened": ["column_retyped", "row_count_shift", "run_failed"]}
    assert news(look(tmp_path, at + 0.01, [])) == {}
    assert news(look(tmp_path, at + 0.02, weeks())) == {}  # the same events again
    empty = run("load", DAYS - 0.7, writes=[output("raw", schema(id="double"), rows(0))])
    changed = look(tmp_path, DAYS - 0.6, empty)
    assert news(changed) == {"changed": ["row_count_shift"]}
    assert changed.changed[0].revision == 2
    healthy = [
        *run("load", DAYS, writes=[output("raw", schema(id="int"), rows(1000))]),
        *run("sum", DAYS + 0.1, reads=["raw"], writes=[output("mart")]),
    ]
    after = look(tmp_path, DAYS + 0.15, healthy)
    assert news(after) == {"resolved": ["column_retyped", "row_count_shift", "run_failed"]}
    reasons = {f.kind.value: f.resolution for f in after.resolved}
    assert reasons == {
        "column_retyped": "the change was undone",
        "row_count_shift": "the values are normal again",
        "run_failed": "a later run completed",
    }


def test_a_finding_carries_downstream_owner_severity_and_evidence(tmp_path: Path) -> None:
    found = {f.kind.value: f for f in look(tmp_path, DAYS - 0.8, weeks()).opened}
    shift = found["row_count_shift"]
    assert shift.owners == ["ann"]
    assert shift.affected_count == 2
    assert {a.id.rpartition(":")[2] for a in shift.affected} == {"sum", "mart"}
    assert shift.evidence[0].run == f"load-{DAYS - 1}"
    assert found["column_retyped"].severity.value == "critical"  # it has a reader
    with Lineage.open(str(tmp_path)) as lineage:
        assert lineage.trace.find_event(shift.evidence[0].event)


def test_a_late_run_is_reported_when_it_is_due_and_again_after_a_missed_run(
    tmp_path: Path,
) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        events = [e for day in range(DAYS) for e in run("load", day, writes=[output("raw")])]
        lineage.ingest([encode(event) for event in events])
        monitor = lineage.govern.monitor(WatchConfig())
        assert news(monitor.check(micros(DAYS - 0.5))) == {}
        assert news(monitor.check(micros(DAYS, 2))) == {}  # two hours: within the tolerance
        late = monitor.check(micros(DAYS, 4))
        assert news(late) == {"opened": ["run_late"]}
        assert late.opened[0].severity.value == "warning"
        assert news(monitor.check(micros(DAYS, 10))) == {}
        missing = monitor.check(micros(DAYS + 1, 4))
        assert news(missing) == {"changed": ["run_late"]}
        assert missing.changed[0].severity.value == "critical"
        lineage.ingest([encode(e) for e in run("load", DAYS + 1.2)])
        assert news(monitor.check(micros(DAYS + 1.3))) == {"resolved": ["run_late"]}


def test_only_changed_entities_are_checked(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        quiet = [dataset_event(f"d{n}") for n in range(50)]
        lineage.ingest([encode(event) for event in quiet])
        monitor = lineage.govern.monitor(WatchConfig())
        assert monitor.check(micros(0)).inspected == 50
        assert monitor.check(micros(0)).inspected == 0
        lineage.ingest([encode(dataset_event("d7", at="2026-02-01T00:00:00Z"))])
        assert monitor.check(micros(0)).inspected == 1
        lineage.admin.rebuild()
        assert monitor.check(micros(0)).inspected == 50  # numbers may mean something else now


def test_what_is_ignored_is_no_finding_and_severities_can_be_set(tmp_path: Path) -> None:
    watch = parse_watch(
        {
            "ignore": [{"entity": "*raw", "kinds": ["row_count_shift"]}, {"entity": "job:*"}],
            "severities": {"column_retyped": "info"},
        }
    )
    (found,) = look(tmp_path, DAYS - 0.8, weeks(), watch).opened
    assert (found.kind.value, found.severity.value) == ("column_retyped", "info")


def test_other_settings_check_everything_again(tmp_path: Path) -> None:
    look(tmp_path, DAYS - 0.8, weeks())
    deaf = parse_watch({"rows": {"threshold": 1e9}})
    assert news(look(tmp_path, DAYS - 0.79, [], deaf)) == {"resolved": ["row_count_shift"]}


def test_since_limits_alerts_to_later_findings(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event) for event in weeks()])
        monitor = lineage.govern.monitor(WatchConfig())
        assert news(monitor.check(micros(DAYS - 0.8), since=micros(DAYS - 0.95))) == {
            "opened": ["run_failed"]
        }
        assert lineage.govern.findings().total == 3


def busy() -> list[dict]:
    """The same, and a job that gains an input, loses one, and makes a column of something else."""
    events = weeks()
    for day in range(DAYS):
        late = day > DAYS - 5
        reads = ["raw", "new"] if late else ["raw", "old"]
        total = derives(total="raw.net" if late else "raw.gross")
        mixed = output("mixed", {**schema(total="int"), **total})
        events += run("mix", day + 0.05, reads=reads, writes=[mixed])
    failed = {"assertions": [{"assertion": "unique", "column": "total", "success": False}]}
    tested = dataset("mixed", inputFacets={"dataQualityAssertions": failed})
    return [*events, run_event("test", "t1", at=moment(DAYS - 0.9), inputs=[tested])]


EVENTS = [encode(event) for event in busy()]
FOUND = [
    "column_retyped", "edge_appeared", "edge_appeared", "edge_vanished", "edge_vanished",
    "quality_failed", "row_count_shift", "run_failed",
]  # fmt: skip


def open_findings(lineage: Lineage) -> set[tuple[str, ...]]:
    return {
        (f.id, *f.fingerprint, f.first_seen) for f in lineage.govern.findings(limit=1000).findings
    }


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), looks=st.integers(1, 4))
def test_any_order_any_duplicates_and_any_number_of_checks_lead_to_the_same_open_findings(
    tmp_path_factory, seed: int, looks: int
) -> None:
    now = micros(DAYS - 0.8)
    with Lineage.open(str(tmp_path_factory.mktemp("once"))) as lineage:
        lineage.ingest(EVENTS)
        lineage.govern.monitor(WatchConfig()).check(now)
        expected = open_findings(lineage)
        assert sorted(f.kind.value for f in lineage.govern.findings().findings) == FOUND
    chance = random.Random(seed)
    told = [*EVENTS, *chance.choices(EVENTS, k=20)]
    chance.shuffle(told)
    with Lineage.open(str(tmp_path_factory.mktemp("shuffled"))) as lineage:
        monitor = lineage.govern.monitor(WatchConfig())
        for part in range(looks):
            lineage.ingest(told[part::looks])
            monitor.check(now)
        assert open_findings(lineage) == expected
        before = lineage.govern.findings(limit=1000).findings
        monitor.check(now)
        assert lineage.govern.findings(limit=1000).findings == before  # nothing flickers


def test_findings_of_a_node_are_about_that_node(tmp_path: Path) -> None:
    """Otherwise a check of one node would resolve findings of another node."""
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest(EVENTS)
        with lineage.session.reading() as (graph, reader):
            inspector = Inspector(graph, reader, WatchConfig(), micros(DAYS - 0.8))
            nodes = [n for kind in (0, 1) for n in reader.history.nodes_of_kind(kind)]
            for node, spoken in graph.nodes.identities.display_names(nodes, reader).items():
                assert {f.entity for f in inspector.inspect(node)} <= {str(spoken.id)}


def test_a_round_is_json(tmp_path: Path) -> None:
    found = look(tmp_path, DAYS - 0.8, weeks())
    assert msgspec.json.decode(msgspec.json.encode(found), type=MonitorRound) == found
