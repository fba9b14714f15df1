"""`downriver export atlas` posts entities that the bulk route of Atlas accepts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.openlineage import dataset, encode, run_event
from tests.recorder import recording_server
from tests.unit.cli.command import downriver

from downriver.capture.catalogs import parse_atlas
from downriver.export import batch_entities
from downriver.model.ids import DatasetId
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

PATH = "/api/atlas/v2/entity/bulk"
EVENTS = [
    run_event("clean", "r1", inputs=[dataset("raw")], outputs=[dataset("orders")]),
    run_event("sum", "r2", inputs=[dataset("orders")], outputs=[dataset("mart")]),
]


def stored(folder: Path) -> Path:
    with Lineage.open(str(folder / ".downriver")) as lineage:
        lineage.ingest([encode(event) for event in EVENTS])
    return folder


def test_entities_are_sent_with_the_login_and_have_the_same_lineage(tmp_path: Path) -> None:
    stored(tmp_path)
    with recording_server({PATH: {"guidAssignments": {}}}) as server:
        options = ("--api-key", "admin:secret", "--json")
        done = downriver("export", "atlas", server.url, *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert (counts["datasets"], counts["jobs"], counts["complete"]) == (3, 2, True)
    (request,) = server.requests
    assert request.headers["authorization"].startswith("Basic ")
    namespace = EVENTS[0]["inputs"][0]["namespace"]
    raw, orders, mart = (DatasetId(namespace, name) for name in ("raw", "orders", "mart"))
    export = parse_atlas(json.dumps(request.body), "body")
    assert export.unread == []
    assert {table.id for table in export.tables} == {raw, orders, mart}
    assert [(job.inputs, list(job.outputs)) for job in export.jobs] == [
        ([raw], [orders]),
        ([orders], [mart]),
    ]


def test_a_selection_is_sent_and_counted(tmp_path: Path) -> None:
    stored(tmp_path)
    with recording_server({PATH: {"guidAssignments": {}}}) as server:
        done = downriver("export", "atlas", server.url, "--select", "+orders", cwd=tmp_path)
    assert (done.returncode, "sent 2 datasets, 1 job to http" in done.stderr) == (0, True)


def test_a_server_that_refuses_is_an_error_with_its_answer(tmp_path: Path) -> None:
    stored(tmp_path)
    with recording_server({}) as server:
        done = downriver("export", "atlas", server.url, cwd=tmp_path)
    assert done.returncode != 0
    assert "status 404" in done.stderr


def test_a_dataset_that_derives_without_a_job_has_a_process(tmp_path: Path) -> None:
    event = {
        "eventTime": "2026-01-01T00:00:00Z",
        "dataset": dataset(
            "view",
            {
                "lineage": {
                    "_producer": "https://example.com",
                    "_schemaURL": "https://example.com/lineage.json",
                    "inputs": [{"namespace": "shop", "name": "orders", "type": "DATASET"}],
                }
            },
        ),
    }
    with Lineage.open(str(tmp_path)) as lineage:
        lineage.ingest([encode(event)])
        text = lineage.export.selection("*", "atlas").diagram
    (job,) = parse_atlas(text, "text").jobs
    assert job.id.name.startswith("lineage of view@")
    assert [one.name for one in job.inputs] == ["orders"]
    assert [one.name for one in job.outputs] == ["view"]


def test_each_part_has_the_datasets_that_its_processes_name() -> None:
    datasets = [{"typeName": "DataSet", "guid": f"-{n}", "attributes": {}} for n in range(1, 252)]
    processes = [
        {
            "typeName": "Process",
            "guid": f"-{1000 + n}",
            "attributes": {"inputs": [{"guid": f"-{n}"}], "outputs": []},
        }
        for n in range(1, 251)
    ]
    parts = list(batch_entities(json.dumps({"entities": [*datasets, *processes]})))
    assert [len(part) for part in parts] == [400, 100, 1]
    for part in parts:
        sent = {one["guid"] for one in part}
        ends = [e["guid"] for one in part for e in one["attributes"].get("inputs", [])]
        assert sent.issuperset(ends)
    assert parts[2][0]["guid"] == "-251"
