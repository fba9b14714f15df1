"""Stored findings and alerts, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import encode
from tests.unit.govern.scenario import micros
from tests.unit.govern.watch.test_monitor import DAYS, news, weeks

from downriver.govern.watch import AlertDispatcher, WatchConfig, parse_watch
from downriver.model.governance import Finding, FindingKind, Severity
from downriver.service import Lineage
from downriver.store.findings import FindingFilter

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.test_store import Opener

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures


def finding(entity: str, severity: Severity = Severity.WARNING, state: str = "") -> Finding:
    return Finding(
        kind=FindingKind.RUN_FAILED, entity=entity, severity=severity, message="failed",
        first_seen="2026-01-01T00:00:00Z", state=state,
    )  # fmt: skip


def test_findings_are_filtered(store: Store) -> None:
    resolved = finding("job:etl:c")
    resolved.status = "resolved"
    with store.ledger() as ledger:
        ledger.save(finding("job:etl:a"), 100, 1)
        ledger.save(finding("job:etl:b", Severity.CRITICAL), 200, 3)
        ledger.save(resolved, 300, 2)
        ledger.save(finding("job:etl:a", state="other"), 100, 4)  # the same one, changed

    def entities(**wanted: object) -> list[str]:
        with store.reader() as reader:
            found = reader.findings.find(FindingFilter(**wanted))  # type: ignore[arg-type]
        assert found.complete == (found.total == len(found.findings))
        return [f.entity[-1] for f in found.findings]

    assert entities() == ["a", "b"]
    assert entities(status=None) == ["a", "b", "c"]
    assert entities(severity=Severity.CRITICAL) == ["b"]
    assert entities(status=None, since=200) == ["b", "c"]
    assert entities(entity="job:etl:a") == ["a"]
    assert entities(limit=1) == ["a"]
    with store.ledger() as ledger:
        assert (
            ledger.of_entities(["job:etl:a", "job:etl:c"])[finding("job:etl:a").id].state == "other"
        )
        assert ledger.last_revision("unknown") == 0


def test_an_alert_is_claimed_by_one_monitor_and_kept_until_sent(store: Store) -> None:
    with store.ledger() as ledger:
        for number in range(3):
            ledger.queue("pager", 10 * number, b"%d" % number)
        ledger.queue("other", 0, b"x")
    with store.ledger() as ledger:
        assert [a.body for a in ledger.claim("pager", 15, 100, 10)] == [b"0", b"1"]
        assert ledger.claim("pager", 15, 100, 10) == []
        again = ledger.claim("pager", 100, 200, 10)
        assert [a.body for a in again] == [b"0", b"1", b"2"]
        ledger.delete_sent(again[:1])
        ledger.postpone(again[1:], 300, "answered 503")
    with store.reader() as reader:
        found = {w.channel: (w.alerts, w.attempts, w.error) for w in reader.findings.waiting()}
    assert found == {"other": (1, 0, ""), "pager": (2, 1, "answered 503")}


def test_a_failed_transaction_records_nothing(store: Store) -> None:
    def half_a_round() -> None:
        with store.ledger() as ledger:
            ledger.save(finding("job:etl:a"), 1, 1)
            ledger.queue("pager", 0, b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_a_round()
    with store.reader() as reader:
        assert reader.findings.find(FindingFilter()).total == 0
        assert reader.findings.waiting() == []


def test_two_monitors_on_one_store_send_each_alert_once(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    watch = parse_watch({"channels": [{"type": "file", "path": str(path)}]})
    now = micros(DAYS - 0.8)
    with closing(Lineage(opened())) as one, closing(Lineage(opened())) as other:
        one.ingest([encode(event) for event in weeks()])
        found: list[dict[str, list[str]]] = []

        def look(lineage: Lineage) -> None:
            found.append(news(lineage.govern.monitor(watch).check(now)))
            AlertDispatcher(lineage.store, watch, lambda: now).send_all()

        threads = [threading.Thread(target=look, args=(lineage,)) for lineage in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        reported = sorted(kind for each in found for kind in each.get("opened", []))
        assert reported == ["column_retyped", "row_count_shift", "run_failed"]
        assert len(path.read_text().splitlines()) == 3


def test_figures_and_incidents_are_the_same_on_both(opened: Opener) -> None:
    with closing(Lineage(opened())) as lineage:
        lineage.ingest([encode(event) for event in weeks()])
        found = lineage.govern.kpis()
        assert (found.datasets, found.jobs, found.failing_jobs.count) == (2, 2, 1)
        report = lineage.govern.incident_report("mart", "2026-01-18T06:00:00Z")
        assert report.suspects[0].id.endswith(":raw")
        assert lineage.govern.monitor(WatchConfig()).check(micros(DAYS - 0.8)).opened
