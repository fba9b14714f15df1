"""Verdicts of the gate are recorded, and give the blast radius per change."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset, encode, run_event
from tests.unit.cli.command import downriver
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.model.changes import ColumnDrop, ColumnRename
from downriver.service import Lineage
from downriver.store.backup import write_backup
from downriver.store.hash_chain import verify_chain

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures

FIELDS = {"schema": {"fields": [{"name": "id", "type": "int"}, {"name": "n", "type": "int"}]}}
EVENTS = [
    run_event("clean", inputs=[dataset("raw", FIELDS)], outputs=[dataset("clean", FIELDS)]),
    run_event("sum", "r2", inputs=[dataset("clean")], outputs=[dataset("mart", FIELDS)]),
]


def test_every_verdict_is_recorded_on_both_stores(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in EVENTS])
    state = store.state()
    verdict = lineage.impact.gate(
        lineage.impact([ColumnDrop(dataset="raw", column="id")]), by="ann"
    )
    (found,) = lineage.govern.verdicts().verdicts
    assert (found.decision, found.affected, found.by) == (verdict.decision, verdict.affected, "ann")
    assert found.changes == verdict.impact.changes
    assert store.state() == state  # the graph need not be loaded again
    assert lineage.govern.verdicts(decision="approved").total == 0
    assert lineage.govern.verdicts(decision=verdict.decision.value).total == 1
    assert lineage.govern.verdicts(since="1h").total == 1


def test_the_radius_per_change_counts_a_change_once(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event) for event in EVENTS])
        assert lineage.govern.kpis().change_radius.median is None
        for _ in range(3):
            far = lineage.impact.gate(lineage.impact([ColumnDrop(dataset="raw", column="id")]))
        near = lineage.impact.gate(
            lineage.impact([ColumnRename(dataset="mart", column="id", to="key")])
        )
        radius = lineage.govern.kpis().change_radius
        assert lineage.govern.verdicts().total == 4
    assert far.affected > near.affected
    assert (radius.changes, radius.largest) == (2, far.affected)
    assert radius.median == (far.affected + near.affected) / 2


def test_a_backup_contains_the_verdicts(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / "one")) as lineage:
        lineage.ingest([encode(event) for event in EVENTS])
        lineage.impact.gate(lineage.impact([ColumnDrop(dataset="raw", column="id")]))
        with lineage.store.reader() as reader:
            write_backup(reader, verify_chain, tmp_path / "backup")
        recorded = lineage.govern.verdicts()
    with Lineage.open(str(tmp_path / "two")) as other:
        other.store.restore(tmp_path / "backup")
        assert other.govern.verdicts() == recorded


def test_verdicts_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "changes.json").write_text(
        json.dumps([{"type": "column_drop", "dataset": "raw", "column": "id"}])
    )
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, EVENTS)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    gated = downriver("gate", "--changes", "changes.json", "--format", "json", cwd=tmp_path)
    decision = json.loads(gated.stdout)["decision"]
    (listed,) = json.loads(downriver("verdicts", "--json", cwd=tmp_path).stdout)["verdicts"]
    assert listed["decision"] == decision
    shown = downriver("verdicts", cwd=tmp_path).stdout
    assert decision in shown
    assert shown.endswith("1 of 1 verdict\n")
    assert downriver("verdicts", "--decision", "MAYBE", cwd=tmp_path).returncode == 2
    assert "blast radius per change: median" in downriver("kpis", cwd=tmp_path).stdout
    with (
        Lineage.open(str(tmp_path / ".downriver")) as lineage,
        TestClient(build_app(lineage)) as client,
    ):
        body = {"changes": [{"type": "column_drop", "dataset": "clean", "column": "n"}]}
        answer = client.post("/v1/gate", json=body)
        assert answer.status_code == 200
        found = client.get("/v1/verdicts").json()
        assert (found["total"], found["verdicts"][1]) == (2, listed)
        assert client.get("/v1/verdicts", params={"decision": "x"}).status_code == 400
        assert client.get("/v1/verdicts", params={"limit": 1}).json()["complete"] is False
