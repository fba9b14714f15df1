"""What a key that is limited to namespaces can write, and what it can see."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.http.app import ENDPOINTS
from downriver.service import Lineage
from downriver.store import AuditFilter

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS, THEIRS = "team-a", "team-b"
SECRET = "hidden_thing"  # part of every name outside the namespaces


def event(job: str, inputs: list[str], outputs: list[str], **more: Any) -> dict[str, Any]:
    """Return an event; a name that contains SECRET is in the namespace of the others."""

    def placed(name: str) -> dict[str, Any]:
        return {"namespace": THEIRS if SECRET in name else OURS, "name": name}

    facets = more.pop("facets", {})
    return {
        "eventTime": more.pop("at", "2026-01-01T00:00:00Z"),
        "eventType": "COMPLETE",
        "run": {"runId": f"run-of-{job}", "facets": more.pop("run_facets", {})},
        "job": {**placed(job), "facets": more.pop("job_facets", {})},
        "inputs": [placed(name) for name in inputs],
        "outputs": [{**placed(name), "facets": facets.get(name, {})} for name in outputs],
    }


def column_lineage(**sources: tuple[str, str]) -> dict[str, Any]:
    """Return the facet that derives each column from (dataset, column)."""
    return {
        "columnLineage": {
            "_producer": "test",
            "_schemaURL": "test",
            "fields": {
                column: {
                    "inputFields": [
                        {
                            "namespace": THEIRS if SECRET in dataset else OURS,
                            "name": dataset,
                            "field": field,
                        }
                    ]
                }
                for column, (dataset, field) in sources.items()
            },
        }
    }


EVENTS = [
    event(
        "load",
        [f"{SECRET}_source"],
        ["orders"],
        facets={"orders": column_lineage(amount=(f"{SECRET}_source", f"{SECRET}_column"))},
    ),
    event(
        "mart",
        ["orders"],
        ["daily"],
        facets={"daily": column_lineage(total=("orders", "amount"))},
    ),
    event(f"{SECRET}_job", ["daily"], [f"{SECRET}_report"]),
    event("publish", ["daily"], [f"{SECRET}_feed"]),
    event(f"{SECRET}_alone", [f"{SECRET}_x"], [f"{SECRET}_y"]),
    event(
        "dag_child",
        ["daily"],
        ["kept"],
        run_facets={
            "parent": {
                "_producer": "test",
                "_schemaURL": "test",
                "run": {"runId": "p"},
                "job": {"namespace": THEIRS, "name": f"{SECRET}_dag"},
            }
        },
    ),
    event(
        "rename",
        [],
        ["aliased"],
        facets={
            "aliased": {
                "symlinks": {
                    "_producer": "test",
                    "_schemaURL": "test",
                    "identifiers": [
                        {"namespace": THEIRS, "name": f"{SECRET}_alias", "type": "TABLE"}
                    ],
                }
            }
        },
    ),
]


@pytest.fixture(scope="module")
def lineage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path_factory.mktemp("store"))) as opened:
        opened.ingest([json.dumps(each).encode() for each in EVENTS])
        yield opened


@pytest.fixture(scope="module")
def clients(lineage: Lineage) -> Iterator[dict[str, TestClient]]:
    keys = {
        "reader": lineage.admin.create_key("reader", "reader"),
        "ours": lineage.admin.create_key("ours", "writer", namespaces=["team-a*"]),
    }
    with TestClient(build_app(lineage), raise_server_exceptions=False) as shared:
        yield {
            name: _Keyed(shared.app, headers={"Authorization": f"Bearer {key}"})
            for name, key in keys.items()
        }


class _Keyed(TestClient):
    """A client with a key. The application is already started."""


VALUES = {
    "entity": "orders",
    "nodeId": f"dataset:{OURS}:orders",
    "source": "orders",
    "target": "daily",
    "dataset": "orders",
    "column": "amount",
    "field": "orders.amount",
    "q": "+daily+",
    "direction": "both",
    "text": SECRET,
    "tag": "pii",
    "limit": "100",
    "depth": "10",
    "format": "json",
    "include": "columns,runs",
    "job": f"job:{OURS}:load",
    "group": "namespace",
    "readers": "true",
    "runId": "run-of-load",
    "period": "DAY",
    "from": "2025-01-01T00:00:00Z",
    "type": "run",
}
IN_PATH = {
    "id": f"dataset:{OURS}:orders",
    "namespace": OURS,
    "dataset": "orders",
    "job": "load",
    "run": "run-of-load",
    "name": "orders",
    "field": "amount",
}
READS = [e for e in ENDPOINTS if e.method == "GET" and e.role is not None and not e.whole_store]


def _get(client: TestClient, endpoint: Any, **changed: str) -> Any:
    path = endpoint.path.replace("runs/{id}", "runs/run-of-load")
    path = re.sub(r"{(\w+)}", lambda found: IN_PATH.get(found[1], "orders"), path)
    known = {name: VALUES[name] for name in endpoint.query if name in VALUES}
    if "entity" in known:
        known.pop("q", None)
    return client.get(path, params={**known, **changed})


@pytest.mark.parametrize("endpoint", READS, ids=lambda e: e.path)
def test_no_answer_names_what_is_outside_the_namespaces(
    clients: dict[str, TestClient], endpoint: Any
) -> None:
    for changed in ({}, {"entity": "daily", "dataset": "daily", "column": "total"}):
        used = {name: value for name, value in changed.items() if name in endpoint.query}
        answer = _get(clients["ours"], endpoint, **used)
        assert SECRET not in answer.text.replace(f"'{SECRET}'", ""), answer.text


def test_every_question_is_answered(clients: dict[str, TestClient]) -> None:
    """A question that is refused because of its parameters would show nothing anyway."""
    statuses = {e.path: _get(clients["ours"], e).status_code for e in READS}
    other = {path for path, status in statuses.items() if status not in (200, 403)}
    unknown = ("/versions/{version}", "/sources/{source}", "/schema-diff")  # one schema is known
    assert all(path.endswith(unknown) for path in other), other


def test_a_search_does_not_claim_that_nothing_else_exists(clients: dict[str, TestClient]) -> None:
    for text in ("orders", SECRET, "hidden"):
        found = clients["ours"].get("/v1/search", params={"text": text}).json()
        assert found["complete"] is False
        assert not [hit for hit in found["hits"] if "outside-scope" in hit["id"]]
    assert clients["reader"].get("/v1/search", params={"text": "orders"}).json()["complete"] is True


def test_the_sources_of_a_column_state_that_some_are_hidden(clients: dict[str, TestClient]) -> None:
    asked = {"dataset": "orders", "column": "amount"}
    found = clients["ours"].get("/v1/column-lineage", params=asked).json()
    assert found["complete"] is False
    assert "outside-scope" in json.dumps(found["blind_spots"])
    assert clients["reader"].get("/v1/column-lineage", params=asked).json()["complete"] is True


def test_without_limits_the_same_questions_name_it(clients: dict[str, TestClient]) -> None:
    shown = [e.path for e in READS if SECRET in _get(clients["reader"], e, entity="daily").text]
    assert len(shown) > 5, shown


@pytest.mark.parametrize("name", [f"{SECRET}_source", f"dataset:{THEIRS}:{SECRET}_source"])
def test_an_entity_outside_does_not_exist_for_the_key(
    clients: dict[str, TestClient], name: str
) -> None:
    answer = clients["ours"].get("/v1/trace", params={"entity": name})
    unknown = clients["ours"].get("/v1/trace", params={"entity": "no_such_thing"})
    assert (answer.status_code, unknown.status_code) == (404, 404)
    assert answer.json().keys() == unknown.json().keys()


@pytest.mark.parametrize(
    ("entity", "direction"),
    [
        ("orders", "upstream"),  # fed by a hidden dataset
        ("daily", "downstream"),  # read by a hidden job, and by a job that writes a hidden dataset
        ("orders", "downstream"),  # two steps away
        ("orders.amount", "upstream"),  # derived from a hidden column
        ("daily.total", "downstream"),
        ("aliased", "downstream"),  # the other name has consumers that are not shown
        ("aliased", "upstream"),
    ],
)
def test_an_answer_that_ends_at_a_hidden_node_is_not_complete(
    clients: dict[str, TestClient], entity: str, direction: str
) -> None:
    asked = {"entity": entity, "direction": direction}
    answer = clients["ours"].get("/v1/trace", params=asked).json()
    assert answer["complete"] is False
    about = [spot for spot in answer["blind_spots"] if "outside-scope" in json.dumps(spot)]
    assert about, answer["blind_spots"]


def test_a_hidden_consumer_is_one_node_with_its_blind_spot(clients: dict[str, TestClient]) -> None:
    asked = {"entity": "daily", "direction": "downstream"}
    answer = clients["ours"].get("/v1/trace", params=asked).json()
    hidden = [node for node in answer["nodes"] if node["id"].startswith("job:outside-scope:")]
    spots = [spot for spot in answer["blind_spots"] if spot["kind"] == "outside_scope"]
    assert {node["id"] for node in hidden} == {spot["entity"] for spot in spots}
    assert len(hidden) == 2  # the hidden job, and the consumers of the hidden feed


def test_what_is_all_inside_is_complete(clients: dict[str, TestClient]) -> None:
    asked = {"entity": "kept", "direction": "downstream"}
    assert clients["ours"].get("/v1/trace", params=asked).json()["complete"] is True


def test_a_change_with_hidden_consumers_is_not_approved(clients: dict[str, TestClient]) -> None:
    drop = {"changes": [{"type": "column_drop", "dataset": "daily", "column": "total"}]}
    answer = clients["ours"].post("/v1/gate", json=drop)
    assert answer.status_code == 200
    assert answer.json()["decision"] != "APPROVED"
    assert answer.json()["impact"]["complete"] is False
    assert SECRET not in answer.text


def test_new_events_of_others_are_seen_at_once(
    clients: dict[str, TestClient], lineage: Lineage
) -> None:
    asked = {"entity": "kept", "direction": "downstream"}
    assert clients["ours"].get("/v1/trace", params=asked).json()["complete"] is True
    lineage.ingest([json.dumps(event(f"{SECRET}_late", ["kept"], [f"{SECRET}_z"])).encode()])
    answer = clients["ours"].get("/v1/trace", params=asked)
    assert answer.json()["complete"] is False
    assert SECRET not in answer.text


@pytest.mark.parametrize(
    "written",
    [
        event("mine", [f"{SECRET}_in"], ["out"]),
        event("mine", ["in"], [f"{SECRET}_out"]),
        event(f"{SECRET}_job", ["in"], ["out"]),
        event("mine", [], ["out"], facets={"out": column_lineage(a=(f"{SECRET}_in", "b"))}),
        event(
            "mine",
            [],
            ["out"],
            facets={
                "out": {
                    "symlinks": {
                        "_producer": "t",
                        "_schemaURL": "t",
                        "identifiers": [
                            {"namespace": THEIRS, "name": f"{SECRET}_out", "type": "TABLE"}
                        ],
                    }
                }
            },
        ),
    ],
    ids=["input", "output", "job", "column lineage", "symlink"],
)
def test_an_event_about_something_outside_is_refused_and_named(
    clients: dict[str, TestClient], lineage: Lineage, written: dict[str, Any]
) -> None:
    before = lineage.admin.status().counts.events
    answer = clients["ours"].post("/api/v1/lineage", json=written)
    assert answer.status_code == 403
    assert answer.json()["outside"]
    assert all(SECRET in name for name in answer.json()["outside"])
    assert SECRET in answer.json()["detail"]
    assert "team-a*" in answer.json()["detail"]
    assert lineage.admin.status().counts.events == before


def test_an_event_inside_is_stored_with_the_name_of_the_key(
    clients: dict[str, TestClient], lineage: Lineage
) -> None:
    assert clients["ours"].post("/api/v1/lineage", json=event("m", ["i"], ["o"])).status_code == 201
    entry = lineage.admin.audit_log(AuditFilter(actor="ours", action="write", limit=1))[0]
    assert entry.last_seq == lineage.admin.status().head


def test_of_a_batch_only_events_inside_are_stored(clients: dict[str, TestClient]) -> None:
    batch = [event("n1", ["i"], ["o1"]), event("n2", ["i"], [f"{SECRET}_o"])]
    answer = clients["ours"].post("/api/v1/lineage/batch", json=batch).json()
    assert (answer["summary"]["successful"], answer["summary"]["failed"]) == (1, 1)
    assert answer["failed_events"][0]["index"] == 1
    assert SECRET in answer["failed_events"][0]["reason"]


@pytest.mark.parametrize(
    ("route", "body"),
    [
        ("/v1/flows", {"flows": [{"source_id": "table:elsewhere", "target_id": "table:there"}]}),
        ("/v1/pipelines", {"name": "p", "steps": [{"source_id": "s", "target_id": "t"}]}),
        ("/v1/sql", {"sql": "insert into elsewhere select a from there"}),
        ("/v1/lineage/trace", {"asset_type": "table", "name": "elsewhere"}),
    ],
)
def test_registrations_outside_are_refused(
    clients: dict[str, TestClient], lineage: Lineage, route: str, body: dict[str, Any]
) -> None:
    before = lineage.admin.status().counts.events
    answer = clients["ours"].post(route, json=body)
    assert answer.status_code == 403, answer.text
    assert lineage.admin.status().counts.events == before


def test_two_keys_share_no_cached_answer(clients: dict[str, TestClient]) -> None:
    asked = {"entity": "daily", "direction": "downstream"}
    whole = clients["reader"].get("/v1/trace", params=asked)
    kept = {"If-None-Match": whole.headers["etag"]}
    limited = clients["ours"].get("/v1/trace", params=asked, headers=kept)
    assert limited.status_code == 200
    assert SECRET not in limited.text
