"""Forgotten, pruned and dropped datasets and jobs leave the answers, and can come back."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset, dataset_event, encode, job_event, run_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, moment, output, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures

FLOW = [
    *run("clean", 0, reads=["raw"], writes=[output("clean", derives(id="raw.id"))]),
    *run("wrong", 0, reads=["raw"], writes=[output("other", derives(id="raw.id"))]),
]


def downstream(lineage: Lineage, entity: str, as_of: str | None = None) -> set[str]:
    answer = lineage.trace(entity, as_of=as_of)
    return {node.id.rpartition(":")[2] for node in answer.nodes[1:]}


def _ago(days: int) -> float:
    """Return the day of the scenario that is so many days before now."""
    first = dt.datetime.fromisoformat(moment(0).replace("Z", "+00:00"))
    return (dt.datetime.now(dt.timezone.utc) - first).days - days


def _switching(days: int) -> list[dict]:
    """Return runs of a job that reads another table, and writes one table less, after some days."""
    events = []
    for day in range(days):
        late = day >= 3
        writes = [output("mart", derives(n="new.n" if late else "old.n"))]
        writes += [] if late else [output("copy", derives(n="old.n"))]
        events += run("load", _ago(days - day), reads=["new" if late else "old"], writes=writes)
    return events


def test_stale_edges_are_pruned_and_can_be_restored(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in _switching(40)])
    before = dt.datetime.now(dt.timezone.utc).isoformat()
    assert downstream(lineage, "old") == {"load", "mart", "copy"}
    plan = lineage.retention.prune("30d", done=False)
    stale = {(e.source.rpartition(":")[2], e.target.rpartition(":")[2]) for e in plan.retired_edges}
    assert (stale, plan.protected_edges) == ({("old", "load"), ("load", "copy")}, [])
    assert downstream(lineage, "old") == {"load", "mart", "copy"}
    done = lineage.retention.prune("30d")
    assert (done.retired_edges, done.done) == (plan.retired_edges, True)
    assert downstream(lineage, "old") == set()
    assert downstream(lineage, "new") == {"load", "mart"}
    assert lineage.trace("old.n").edges == []
    assert downstream(lineage, "old", before) == {"load", "mart", "copy"}
    assert lineage.retention.prune("30d", done=False).retired_edges == []
    lineage.store.rebuild(lambda done, total: None)
    assert downstream(lineage, "old") == set()
    with pytest.raises(InvalidRequestError, match="no edge"):
        lineage.retention.forget_edge("old", "job:etl:load")
    assert lineage.retention.forget_edge("old", "job:etl:load", undo=True).restored
    assert downstream(lineage, "old") == {"load", "mart"}
    assert downstream(lineage, "old.n") == {"n"}


def test_a_retired_edge_is_shown_again_after_the_next_event_with_it(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in FLOW])
    lineage.retention.forget_edge("raw", "job:etl:wrong", reason="a trial")
    assert downstream(lineage, "raw") == {"clean"} | downstream(lineage, "raw") & {"clean"}
    assert "wrong" not in downstream(lineage, "raw")
    again = run_event("wrong", "late", "COMPLETE", "2999-01-01T00:00:00Z", inputs=[dataset("raw")])
    lineage.ingest([encode(again)])
    assert "wrong" in downstream(lineage, "raw")


def test_stale_edges_of_jobs_that_run_rarely_and_above_certified_data_stay(tmp_path: Path) -> None:
    rare = [
        *run("close", _ago(41), reads=["ledger"], writes=[output("books")]),
        *run("close", _ago(1), reads=["other"], writes=[output("books")]),
        *_switching(40),
        dataset_event("mart", tagged("certified")),
    ]
    with told(tmp_path, rare) as lineage:
        plan = lineage.retention.prune("30d", done=False)
        kept = {e.source.rpartition(":")[2]: e.reason for e in plan.protected_edges}
        assert kept == {
            "ledger": "it runs rarely: its longest interval between two runs is 40 days",
            "old": "upstream of a certified dataset",
        }
        assert [e.target.rpartition(":")[2] for e in plan.retired_edges] == ["copy"]


def test_edges_are_forgotten_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, _switching(40))))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    shown = downriver("prune", "--older-than", "30d", "--dry-run", cwd=tmp_path).stdout
    assert "2 stale edges would be removed\n  old → load job, last seen" in shown
    done = downriver("forget", "old", "--edge-to", "job:etl:load", cwd=tmp_path)
    assert done.stdout.startswith("forgotten: dataset:")
    again = downriver("forget", "old", "--edge-to", "job:etl:load", cwd=tmp_path)
    assert again.returncode == 2
    undone = downriver("forget", "old", "--edge-to", "load", "--undo", "--json", cwd=tmp_path)
    assert json.loads(undone.stdout)["restored"] is True
    empty = downriver("certified", cwd=tmp_path)
    assert (empty.returncode, "downriver tag set DATASET certified" in empty.stdout) == (0, True)
    with (
        told(tmp_path / "http", _switching(40)) as lineage,
        TestClient(build_app(lineage)) as client,
    ):
        edge = {"source": "old", "target": "job:etl:load"}
        assert (
            client.post("/v1/forget/edge", json={**edge, "dry_run": True}).json()["done"] is False
        )
        assert client.post("/v1/forget/edge", json=edge).status_code == 200
        assert client.post("/v1/forget/edge", json=edge).status_code == 400
        bad = {"source": "old", "target": "mart"}
        assert client.post("/v1/forget/edge", json=bad).status_code == 400
        answer = client.post("/v1/prune", json={"older_than": "30d", "dry_run": True}).json()
        assert len(answer["retired_edges"]) == 1


def test_a_forgotten_job_leaves_every_answer_and_can_be_restored(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in FLOW])
    before = dt.datetime.now(dt.timezone.utc).isoformat()
    assert downstream(lineage, "raw") == {"clean", "wrong", "other"}
    listed = lineage.retention.forget("job:etl:wrong", done=False)
    assert [entity.id for entity in listed.entities] == ["job:etl:wrong"]
    assert downstream(lineage, "raw") == {"clean", "wrong", "other"}
    lineage.retention.forget("job:etl:wrong", reason="registered by mistake", by="ann")
    assert downstream(lineage, "raw") == {"clean"}
    assert [n.name for n in lineage.trace("raw.id").nodes[1:]] == ["clean"]
    assert lineage.govern.kpis().jobs == 1
    assert downstream(lineage, "raw", as_of=before) == {"clean", "wrong", "other"}
    with store.reader() as reader:
        bodies = [reader.log.find_event(entry.digest) or b"" for entry in reader.log.entries()]
    assert any(b"registered by mistake" in body and b"ann" in body for body in bodies)
    with pytest.raises(InvalidRequestError, match="already forgotten"):
        lineage.retention.forget("job:etl:wrong")
    lineage.retention.forget("job:etl:wrong", undo=True)
    assert downstream(lineage, "raw") == {"clean", "wrong", "other"}
    assert len(lineage.trace("raw.id").nodes) == 3
    with pytest.raises(InvalidRequestError, match="not forgotten"):
        lineage.retention.forget("job:etl:wrong", undo=True)


def test_a_forgotten_dataset_is_shown_again_after_the_next_event(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage:
        lineage.retention.forget("clean")
        assert "clean" not in {n.name for n in lineage.trace("raw").nodes if n.kind == "dataset"}
        late = run_event("clean", "late", at=moment(0.5), outputs=[dataset("clean")])
        lineage.ingest([encode(late)])  # an event of before it was forgotten
        assert "clean" not in {n.name for n in lineage.trace("raw").nodes if n.kind == "dataset"}
        again = dt.datetime.now(dt.timezone.utc) + dt.timedelta(minutes=1)
        lineage.ingest(
            [encode(run_event("clean", "r9", at=again.isoformat(), outputs=[dataset("clean")]))]
        )
        assert "clean" in {n.name for n in lineage.trace("raw").nodes if n.kind == "dataset"}


def test_a_rebuild_keeps_forgotten_entities_hidden(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage:
        lineage.retention.forget("job:etl:wrong")
        lineage.store.rebuild(lambda done, total: None)
        assert downstream(lineage, "raw") == {"clean"}


def drop(name: str, at: str, change: str = "DROP") -> dict:
    facet = {"lifecycleStateChange": {"lifecycleStateChange": change}}
    return {**dataset_event(name, facet), "eventTime": at}


def test_a_dropped_table_that_nothing_reads_leaves_the_answers(tmp_path: Path) -> None:
    with told(tmp_path, [*FLOW, drop("other", moment(1))]) as lineage:
        assert downstream(lineage, "raw") == {"clean", "wrong"}
        assert downstream(lineage, "raw", as_of=moment(0.9)) == {"clean", "wrong", "other"}
        assert lineage.govern.kpis().datasets == 2
        lineage.ingest([encode(drop("other", moment(2), "CREATE"))])
        assert downstream(lineage, "raw") == {"clean", "wrong", "other"}


def test_a_dropped_table_that_a_job_reads_stays(tmp_path: Path) -> None:
    with told(tmp_path, [*FLOW, drop("raw", moment(1))]) as lineage:
        assert downstream(lineage, "raw") == {"clean", "wrong", "other"}


def ago(days: float) -> float:
    """Return the day of the scenario that was so many days ago."""
    start = dt.datetime.fromisoformat(moment(0).replace("Z", "+00:00"))
    return (dt.datetime.now(dt.timezone.utc) - start).total_seconds() / 86_400 - days


def months() -> list[dict]:
    events = [
        *run("gone", ago(200), reads=["old"], writes=[output("unused", schema(x="int"))]),
        *run("cert", ago(200), reads=["base"], writes=[output("gold", tagged("certified"))]),
        *run("daily", ago(1), reads=["raw"], writes=[output("mart")]),
        job_event("code", moment(ago(300)), outputs=[dataset("planned")]),
    ]  # fmt: skip
    for turn in range(4):
        events += run("quarterly", ago(100 + 90 * turn), reads=["raw"], writes=[output("report")])
    return events


def names(entities: list) -> set[str]:
    return {entity.id.rpartition(":")[2] for entity in entities}


def test_prune_lists_what_is_old_and_protects_what_is_expected(tmp_path: Path) -> None:
    with told(tmp_path, months()) as lineage:
        plan = lineage.retention.prune("90d", done=False)
        assert names(plan.retired) == {"gone", "old", "unused"}
        assert names(plan.protected) == {
            "cert", "base", "gold", "quarterly", "report", "code", "planned",
        }  # fmt: skip
        reasons = {entity.id.rpartition(":")[2]: entity.reason for entity in plan.protected}
        assert reasons["quarterly"].startswith("it runs rarely: its longest interval")
        assert reasons["base"] == "upstream of a certified dataset"
        assert downstream(lineage, "old") == {"gone", "unused"}
        done = lineage.retention.prune("90d")
        assert (done.retired, done.done) == (plan.retired, True)
        assert downstream(lineage, "old") == set()
        assert lineage.retention.prune("90d", done=False).retired == []
        assert lineage.store.state().seq == 3 + len(months())
        with pytest.raises(InvalidRequestError):
            lineage.retention.prune("soon")


def test_retention_through_the_command_line_and_http(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, FLOW)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    shown = downriver("forget", "job:etl:wrong", "--dry-run", cwd=tmp_path).stdout
    assert shown == "would be forgotten: job:etl:wrong\n"
    downriver("forget", "job:etl:wrong", "--reason", "a test", cwd=tmp_path)
    assert "wrong" not in downriver("trace", "raw", cwd=tmp_path).stdout
    undone = downriver("forget", "job:etl:wrong", "--undo", "--json", cwd=tmp_path)
    assert json.loads(undone.stdout)["restored"] is True
    assert "wrong" in downriver("trace", "raw", cwd=tmp_path).stdout
    assert downriver("forget", "raw.id", cwd=tmp_path).returncode == 2
    pruned = downriver("prune", "--older-than", "90d", "--dry-run", cwd=tmp_path).stdout
    assert "would be removed, last mentioned before" in pruned
    with told(tmp_path / "http", FLOW) as lineage, TestClient(build_app(lineage)) as client:
        answer = client.post("/v1/forget", json={"entity": "job:etl:wrong"})
        assert (answer.status_code, answer.json()["done"]) == (200, True)
        nodes = client.get("/v1/trace", params={"entity": "raw"}).json()["nodes"]
        assert "job:etl:wrong" not in {node["id"] for node in nodes}
        assert client.post("/v1/forget", json={"entity": "nowhere"}).status_code == 404
        plan = client.post("/v1/prune", json={"older_than": "1d", "dry_run": True}).json()
        assert (plan["done"], client.post("/v1/prune", json={}).status_code) == (False, 400)


def _nightly(job: str, nights: int, *, writes: str) -> list[dict]:
    return [
        event
        for night in range(nights)
        for event in run(job, _ago(nights - night), reads=["raw"], writes=[output(writes)])
    ]


def _listed(lineage: Lineage, job: str) -> int:
    return len(lineage.runs(f"job:etl:{job}", limit=200).runs)


RUNS = [
    *_nightly("nightly", 60, writes="mart"),
    *_nightly("certified", 40, writes="gold"),
    dataset_event("gold", tagged("certified")),
    *(e for n in range(4) for e in run("quarterly", _ago(91 * n + 1), writes=[output("books")])),
]


def test_old_runs_are_pruned_except_the_latest_and_those_above_certified_data(
    store: Store,
) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in RUNS])
    before = store.state()
    plan = lineage.retention.prune("30d", done=False)
    assert store.state() == before
    assert [(r.job, r.runs) for r in plan.retired_runs] == [("job:etl:nightly", 31)]
    kept = {r.job.rpartition(":")[2]: (r.runs, r.reason) for r in plan.protected_runs}
    assert kept == {
        "certified": (11, "upstream of a certified dataset"),
        "quarterly": (3, "the latest 20 runs of a job stay"),
    }
    assert _listed(lineage, "nightly") == 60
    lineage.retention.prune("30d", by="ana")
    listed = {job: _listed(lineage, job) for job in ("nightly", "certified", "quarterly")}
    assert listed == {"nightly": 29, "certified": 40, "quarterly": 4}
    assert lineage.retention.prune("30d", done=False).retired_runs == []
    lineage.store.rebuild(lambda done, total: None)
    assert _listed(lineage, "nightly") == 29
    closer = lineage.retention.prune("5d", done=False).retired_runs
    assert [(r.job.rpartition(":")[2], r.runs) for r in closer] == [("nightly", 9)]  # 20 stay
    restored = lineage.retention.restore_runs("job:etl:nightly")
    assert (restored.runs, restored.done) == (31, True)
    assert _listed(lineage, "nightly") == 60
    again = lineage.retention.restore_runs("job:etl:nightly")
    assert (again.runs, again.before) == (0, None)


def test_old_runs_are_pruned_and_restored_through_the_command_line_and_http(
    tmp_path: Path,
) -> None:
    (tmp_path / "events.jsonl").write_text("\n".join(map(json.dumps, RUNS)))
    downriver("ingest", "events.jsonl", cwd=tmp_path)
    dry = downriver("prune", "--older-than", "30d", "--dry-run", cwd=tmp_path).stdout
    assert "31 old runs would be removed\n  nightly job, 31 runs before " in dry
    assert "quarterly job, 3 runs: the latest 20 runs of a job stay" in dry
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        client = TestClient(build_app(lineage))
        runs = "/v1/runs?entity=job:etl:nightly&limit=200"
        api = "/api/v1/namespaces/etl/jobs/nightly/runs?limit=200"
        assert len(client.get(runs).json()["runs"]) == 60
        pruned = client.post("/v1/prune", json={"older_than": "30d"}).json()
        assert [each["runs"] for each in pruned["retired_runs"]] == [31]
        assert len(client.get(runs).json()["runs"]) == 29
        marquez = client.get(api).json()
        assert (len(marquez["runs"]), marquez["totalCount"]) == (29, 29)
        undo = client.post("/v1/forget/runs/undo", json={"job": "nightly"})
        assert (undo.status_code, undo.json()["runs"]) == (200, 31)
        again = client.post("/v1/forget/runs/undo", json={"job": "nightly"})
        assert (again.status_code, again.json()["runs"]) == (200, 0)
        assert len(client.get(runs).json()["runs"]) == 60
        client.post("/v1/prune", json={"older_than": "30d"})
    wrong = downriver("forget", "nightly", "--runs", cwd=tmp_path)
    assert (wrong.returncode, "--undo" in wrong.stderr) == (2, True)
    undone = downriver("forget", "nightly", "--runs", "--undo", cwd=tmp_path)
    assert undone.stdout == "restored: 31 runs of job:etl:nightly\n"
