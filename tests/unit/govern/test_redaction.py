"""A person's name is erased from facets; the chain proves that nothing else was changed."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.openlineage import dataset_event, encode, run_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import output, owned_by, run, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError, StoreError
from downriver.http import build_app
from downriver.model.access import Scope
from downriver.service import Lineage
from downriver.store.catalog.encoding import compress, decompress
from downriver.store.redaction import NamePattern

if TYPE_CHECKING:
    from pathlib import Path

NAME = "Jane.Doe@acme.example"
EVENTS = [
    dataset_event(
        "mart",
        {
            **owned_by(NAME, "finance"),
            "documentation": {"description": f"Ask {NAME.lower()}, not x{NAME}."},
        },
    ),
    *run(f"mail_{NAME}", 0, reads=["raw"], writes=[output("sent")]),
    *run("job", 0, reads=["raw"], writes=[output("mart")], state="FAIL", error=f"{NAME} was here"),
]


def test_a_name_is_erased_and_the_chain_stays_intact(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        before = lineage.admin.verify()
        planned = lineage.retention.redact(NAME, done=False)
        assert (planned.entries, planned.done) == (2, False)
        assert lineage.admin.verify() == before
        done = lineage.retention.redact(NAME, reason="asked", by="me")
        assert done.entries == 2
        found = lineage.admin.verify(expected=(before.entries, bytes.fromhex(before.head)))
        assert (found.ok, found.redacted, found.entries) == (True, 2, before.entries + 1)
        report = lineage.govern.incident_report("mart")
        assert report.owners == ["[redacted]", "finance"]
        assert "[redacted] was here" in report.failures[0].message
        assert len(done.remaining) == 3  # as a part of a word, and in the name of a job
        assert lineage.retention.redact(NAME).entries == 0
        traced = lineage.trace("raw")
        with lineage.store.reader() as reader:
            for edge in traced.edges:
                assert reader.log.find_event(bytes.fromhex(edge.first_event))


def test_another_change_is_still_detected(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        lineage.retention.redact(NAME)
    (database,) = tmp_path.glob("*.db")
    with sqlite3.connect(database) as raw:
        raw.execute("DROP TRIGGER log_is_append_only_update")
        raw.execute("UPDATE log SET body = ? WHERE seq = 1", (compress(b"{}"),))
    with told(tmp_path, []) as lineage:
        found = lineage.admin.verify()
        assert (found.ok, found.altered_seq, found.reason) == (False, 1, "has an altered body")


def _alter(folder: Path, seq: int, body: bytes) -> None:
    (database,) = folder.glob("*.db")
    with sqlite3.connect(database) as raw:
        raw.execute("UPDATE meta SET redacting = 1")
        raw.execute("UPDATE log SET body = ? WHERE seq = ?", (compress(body), seq))
        raw.execute("UPDATE meta SET redacting = 0")


def test_an_altered_log_is_not_redacted(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS):
        pass
    altered = encode(dataset_event("mart", owned_by(NAME, "somebody else")))
    _alter(tmp_path, 1, altered)
    with told(tmp_path, []) as lineage:
        with pytest.raises(StoreError, match="entry 1 has an altered body"):
            lineage.retention.redact(NAME)
        found = lineage.admin.verify()
        assert (found.ok, found.altered_seq) == (False, 1)


def test_the_redaction_does_not_add_the_name_again(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS[:1]) as lineage:
        lineage.retention.redact(NAME, reason=f"{NAME} has asked", by=NAME)
        with lineage.store.reader() as reader:
            (_, redaction) = reader.log.entries()
        assert NAME.encode() not in decompress(redaction.body)
        assert b"[redacted] has asked" in decompress(redaction.body)


def test_a_redaction_can_be_redacted(tmp_path: Path) -> None:
    with told(tmp_path / "one", EVENTS) as lineage:
        lineage.retention.redact(NAME, by="Max Admin")
        assert lineage.retention.redact("Max Admin", by="Eve").entries == 1
        assert lineage.retention.redact("finance").entries == 1  # an entry that was redacted
        found = lineage.admin.verify()
        assert (found.ok, found.redacted) == (True, 3)
        lineage.admin.backup(tmp_path / "backup")
    with Lineage.open(str(tmp_path / "other.db")) as restored:
        assert restored.admin.restore(tmp_path / "backup").redacted == 3
        restored.admin.rebuild()
        assert restored.admin.verify().ok
    _alter(tmp_path / "one", 1, b"{}")
    with told(tmp_path / "one", []) as lineage:
        assert lineage.admin.verify().altered_seq == 1


def test_a_fault_is_named_and_not_the_redacted_entries_before_it(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        lineage.retention.redact(NAME)
    (database,) = tmp_path.glob("*.db")
    with sqlite3.connect(database) as raw:
        raw.execute("DROP TRIGGER log_is_append_only_update")
        raw.execute("UPDATE log SET received_at = 0 WHERE seq = 3")
    with told(tmp_path, []) as lineage:
        found = lineage.admin.verify()
        assert (found.ok, found.altered_seq) == (False, 3)
        assert found.reason == "does not match the entry before it"


@pytest.mark.parametrize("extra", [r'"\ud800"', "1e400", "[" * 900 + "]" * 900])
def test_odd_json_does_not_stop_a_redaction(tmp_path: Path, extra: str) -> None:
    start = '"documentation": {'
    odd = encode(EVENTS[0]).decode().replace(start, f'{start}"x": {extra}, ')
    assert extra in odd
    with told(tmp_path, []) as lineage:
        lineage.ingest([odd.encode(), encode(EVENTS[-1])])
        done = lineage.retention.redact(NAME)
        assert done.entries == 2 or done.remaining == [1]
        assert lineage.admin.verify().ok


def test_letters_outside_ascii_are_found_in_any_case(tmp_path: Path) -> None:
    events = [dataset_event("mart", owned_by("JÖRG MÜLLER"))]
    with told(tmp_path, events) as lineage:
        assert lineage.retention.redact("Jörg Müller").entries == 1


def test_names_of_jobs_and_words_with_a_meaning_stay(tmp_path: Path) -> None:
    parent = {"parent": {"job": {"namespace": "d", "name": "jane.daily"}, "run": {"runId": "1"}}}
    event = run_event("jane.daily.task", run_facets=parent)
    pattern = NamePattern("jane")
    assert pattern.redact_event(encode(event)) == encode(event)
    body = b'{"target":"dataset:d:jane.orders","state":"waiting","result":"mail to jane"}'
    redacted = body.replace(b"to jane", b"to [redacted]")
    assert pattern.redact_body(body) == redacted
    assert NamePattern("waiting").redact_body(body) == body


def test_a_short_name_is_refused(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage, pytest.raises(InvalidRequestError):
        lineage.retention.redact(" ab ")


def test_cli_and_http(tmp_path: Path) -> None:
    with told(tmp_path / ".downriver", EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        found = client.post("/v1/redact", json={"name": "finance", "dry_run": True}).json()
        assert found == {"entries": 1, "remaining": [], "done": False}
        assert client.post("/v1/redact", json={"name": ""}).status_code == 400
    done = downriver("redact", NAME, cwd=tmp_path)
    assert done.stdout.startswith("2 log entries redacted\nthe name remains outside facets")
    assert "lakes that were made before still contain the name" in " ".join(done.stdout.split())
    assert "· 2 redacted ·" in downriver("audit", "verify", cwd=tmp_path).stdout


def test_a_limited_key_gets_the_same_hashes_of_redacted_events(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        lineage.retention.redact(NAME)
        limited = lineage.scoped(Scope(("*",)))
        whole = {edge.first_event for edge in lineage.trace("raw").edges}
        assert {edge.first_event for edge in limited.trace("raw").edges} == whole


def test_a_producer_cannot_state_a_redaction(tmp_path: Path) -> None:
    forged = {
        "eventTime": "2026-01-01T12:00:00Z",
        "dataset": {
            "namespace": "downriver:redactions",
            "name": "log",
            "facets": {"downriver_redaction": {"entries": {"1": "00" * 32}}},
        },
    }
    with told(tmp_path, EVENTS) as lineage, TestClient(build_app(lineage)) as client:
        before = lineage.admin.status().head
        refused = client.post("/api/v1/lineage", json=forged)
        assert (refused.status_code, "redaction" in refused.text) == (400, True)
        batch = client.post("/api/v1/lineage/batch", json=[forged]).json()
        assert batch["status"] == "failure"
        assert lineage.admin.status().head == before


def test_postgres_redacts_and_stays_append_only(postgres_database: str) -> None:
    with Lineage.open(postgres_database) as lineage:
        lineage.ingest([encode(event) for event in EVENTS])
        assert lineage.retention.redact(NAME).entries == 2
        found = lineage.admin.verify()
        assert (found.ok, found.redacted) == (True, 2)
    with psycopg.connect(postgres_database) as raw, pytest.raises(psycopg.Error, match="append"):
        raw.execute("UPDATE log SET body = '' WHERE seq = 1")
