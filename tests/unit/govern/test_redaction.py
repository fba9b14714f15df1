"""A person's name is erased from facets; the chain proves that nothing else was changed."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import psycopg
import pytest
from tests.openlineage import dataset_event, encode
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import output, owned_by, run, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.http import build_app
from downriver.service import Lineage
from downriver.store.catalog.encoding import compress

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
    assert "· 2 redacted ·" in downriver("audit", "verify", cwd=tmp_path).stdout


def test_postgres_redacts_and_stays_append_only(postgres_database: str) -> None:
    with Lineage.open(postgres_database) as lineage:
        lineage.ingest([encode(event) for event in EVENTS])
        assert lineage.retention.redact(NAME).entries == 2
        found = lineage.admin.verify()
        assert (found.ok, found.redacted) == (True, 2)
    with psycopg.connect(postgres_database) as raw, pytest.raises(psycopg.Error, match="append"):
        raw.execute("UPDATE log SET body = '' WHERE seq = 1")
