"""Hostile bodies to every route that takes one: a clear 4xx, never a server error."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.http.test_app import TestClient, run_event

from downriver.govern.audit.checkpoints import sign_checkpoint
from downriver.govern.signing_key import load_signing_key
from downriver.http import build_app
from downriver.http.app import ENDPOINTS
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = {e.path: e.method for e in ENDPOINTS if e.body is not None}
BODY_ROUTES = list(METHODS)
ROUTES = [*BODY_ROUTES, "/mcp"]


def signed_checkpoints() -> Any:
    """A valid checkpoint of another log, and the key that signed it."""
    with tempfile.TemporaryDirectory() as folder:
        key = load_signing_key(Path(folder) / "signing.key")
    checkpoint = sign_checkpoint(1, bytes(32), "2026-01-01T00:00:00Z", key)
    return {"checkpoints": [msgspec.to_builtins(checkpoint)], "key": key.public}


CONTRACT = {
    "dataset": "orders",
    "columns": [{"name": "id", "type": "int"}],
    "freshness": "1d",
    "owner": "ana",
}
SAMPLES: dict[str, Any] = {
    "/api/v1/lineage": run_event("clean", ["raw"], ["orders"]),
    "/api/v1/lineage/batch": [run_event("clean", ["raw"], ["orders"])],
    "/api/atlas/v2/entity/bulk": {
        "entities": [
            {"typeName": "hive_table", "attributes": {"qualifiedName": "shop.orders@cl1"}},
            {
                "typeName": "Process",
                "attributes": {
                    "qualifiedName": "load@cl1",
                    "inputs": [
                        {
                            "typeName": "hive_table",
                            "uniqueAttributes": {"qualifiedName": "shop.raw@cl1"},
                        }
                    ],
                    "outputs": [
                        {
                            "typeName": "hive_table",
                            "uniqueAttributes": {"qualifiedName": "shop.orders@cl1"},
                        }
                    ],
                },
            },
        ]
    },
    "/v1/lineage/trace": {
        "asset_type": "table",
        "name": "mart",
        "upstream_assets": ["table:orders"],
    },
    "/v1/lineage/impact": {"asset_id": "orders", "proposed_changes": [{"type": "table_drop"}]},
    "/v1/gate": {"ddl": "drop table orders", "dialect": "postgres"},
    "/v1/same": {"one": "orders", "other": "raw"},
    "/v1/flows": {"flows": [{"source_id": "raw", "target_id": "mart", "metadata": {"a": 1}}]},
    "/v1/pipelines": {"name": "p", "steps": [{"source_id": "raw", "target_id": "mart"}]},
    "/v1/sql": {"sql": "insert into mart select a from orders"},
    "/v1/impact": {
        "entity_id": "orders",
        "changes": [{"dataset": "orders", "type": "table_drop"}],
        "policy": {},
    },
    "/v1/fix": {"entity_id": "orders", "files": {"a.sql": "select a from orders"}},
    "/v1/preview": {"ddl": "drop table orders", "dialect": "postgres"},
    "/v1/tags": {"entity": "orders", "tags": ["pii"], "remove": ["gold"]},
    "/v1/tags/propagation": {"tags": ["gdpr"], "remove": ["gold"]},
    "/v1/inventory": {"tables": ["orders", "returns"], "source": "a list"},
    "/v1/forget": {"entity": "raw", "reason": "wrong", "dry_run": True},
    "/v1/forget/edge": {"source": "raw", "target": "clean", "dry_run": True},
    "/v1/forget/runs/undo": {"job": "clean", "dry_run": True},
    "/v1/evidence": {"dataset": "orders", "as_of": "2026-01-01T00:00:00Z"},
    "/v1/contracts": {"contracts": [CONTRACT], "dry_run": True},
    "/v1/contracts/check": {"contracts": [CONTRACT], "record": False},
    "/v1/schema-check": {
        "dataset": "orders",
        "mode": "backward",
        "schema": '{"type": "record", "name": "o", "fields": [{"name": "id", "type": "int"}]}',
        "format": "avro",
    },
    "/v1/audit/checkpoints": {},
    "/v1/audit/verification": signed_checkpoints(),
    "/v1/prune": {"older_than": "90d", "dry_run": True},
    "/v1/redact": {"name": "jane.doe@acme.example", "dry_run": True},
    "/v1/incidents": {"entity": "orders"},
    "/v1/triggers/test": {
        "entity": "orders",
        "triggers": [{"name": "note", "downstream": {"names": ["*"]}, "command": ["true"]}],
    },
    "/v1/column-edges": {"datasets": ["dataset:db:orders"], "as_of": None},
    "/v1/export": {
        "format": "svg",
        "title": "orders",
        "nodes": [{"id": "a", "kind": "dataset", "namespace": "db", "name": "orders"}],
        "edges": [{"source": "a", "target": "a"}],
    },
    "/v1/ask": {"question": "what feeds orders?", "history": []},
    "/v1/keys": {"name": "etl", "role": "writer", "namespaces": ["db*"], "expires": "90d"},
    "/api/v1/namespaces/{namespace}": {"ownerName": "ana", "description": "ours"},
    "/api/v1/sources/{source}": {"type": "POSTGRESQL", "connectionUrl": "postgres://db"},
    "/api/v1/tags/{tag}": {"description": "personal"},
    "/api/v1/namespaces/{namespace}/datasets/{dataset}": {
        "type": "DB_TABLE",
        "physicalName": "orders",
        "sourceName": "db",
        "fields": [{"name": "id", "type": "INT", "tags": ["key"]}],
        "tags": ["gold"],
    },
    "/api/v1/namespaces/{namespace}/jobs/{job}": {
        "type": "BATCH",
        "inputs": [{"namespace": "db", "name": "raw"}],
        "location": "https://example.com/code",
    },
    "/api/v1/namespaces/{namespace}/jobs/{job}/runs": {
        "nominalStartTime": "2026-01-01T00:00:00Z",
        "args": {"a": "1"},
    },
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("store")
    with (
        Lineage.open(str(folder)) as lineage,
        TestClient(build_app(lineage), raise_server_exceptions=False) as opened,
    ):
        # A key from the start: a route creates keys, and the next request then needs one.
        opened.headers["Authorization"] = f"Bearer {lineage.admin.create_key('fuzz', 'admin')}"
        opened.post("/api/v1/lineage", json=SAMPLES["/api/v1/lineage"])
        fields = {"schema": {"fields": [{"name": "id", "type": "int"}]}}
        orders = {"namespace": "db", "name": "orders", "facets": fields}
        opened.post(
            "/api/v1/lineage", json={"eventTime": "2026-01-01T00:00:00Z", "dataset": orders}
        )
        yield opened


def nested(levels: int, inner: str) -> list[str]:
    return [
        "[" * levels,
        "[" * levels + inner + "]" * levels,
        '{"a":' * levels + inner + "}" * levels,
        '{"sql":' + "[" * levels + "]" * levels + "}",
    ]


HOSTILE = {
    "empty": b"",
    "null": b"null",
    "a number": b"1e999",
    "a long number": b"9" * 5000,
    "NaN": b"NaN",
    "not UTF-8": b'{"sql": "\xff\xfe"}',
    "a lone surrogate": b'{"sql": "\\ud800", "name": "\\ud800"}',
    "NUL": b'{"sql": "\\u0000", "entity": "\\u0000"}',
    "not gzip": b"\x1f\x8b\x08\x00broken",
    **{
        f"{levels} levels, shape {n}": text.encode()
        for levels in (500, 5_000, 100_000)
        for n, text in enumerate(nested(levels, "1"))
    },
}


def send(client: TestClient, route: str, body: bytes, **headers: str) -> int:
    accepted = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    path = route.format(namespace="etl", job="clean", dataset="shipments", source="db", tag="pii")
    method = METHODS.get(route, "POST")
    answer = client.request(method, path, content=body, headers={**accepted, **headers})
    assert answer.status_code < 500, (route, body[:200], answer.text[:500])
    return answer.status_code


@pytest.mark.parametrize("route", ROUTES)
def test_every_route_has_a_sample_that_it_accepts(client: TestClient, route: str) -> None:
    assert send(client, route, json.dumps(SAMPLES[route]).encode()) < 300


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE)
def test_hostile_bodies_are_refused(client: TestClient, route: str, body: bytes) -> None:
    reported = {
        "/mcp": 200,
        "/api/v1/lineage/batch": 200,
        "/v1/sql": 201,
        "/api/v1/tags/{tag}": 200,  # all its keys are optional
        "/api/v1/namespaces/{namespace}/jobs/{job}/runs": 201,  # likewise
        "/v1/ask": 200,
    }  # in the answer's body
    status = send(client, route, body)
    assert status >= 400 or status == reported.get(route)
    send(client, route, gzip.compress(body), **{"content-encoding": "gzip"})


@pytest.mark.parametrize("route", BODY_ROUTES)
@pytest.mark.parametrize("levels", [90, 600, 5_000])
def test_hostile_values_in_a_usual_body_are_no_server_error(
    client: TestClient, route: str, levels: int
) -> None:
    deep = "[" * levels + "]" * levels
    sample = SAMPLES[route]
    for place in _places(sample):
        text = json.dumps(_replaced(sample, place, "@deep@")).replace('"@deep@"', deep)
        send(client, route, text.encode())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize("route", ROUTES)
@settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_changed_bodies_are_no_server_error(
    client: TestClient, route: str, data: st.DataObject
) -> None:
    sample = SAMPLES[route]
    place = data.draw(st.sampled_from(list(_places(sample))))
    body = json.dumps(_replaced(sample, place, data.draw(json_values)))
    send(client, route, body.encode())


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(item, (*place, key))


def _replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = _replaced(value[place[0]], place[1:], new)
    return copy
