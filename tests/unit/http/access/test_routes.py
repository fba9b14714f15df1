"""Every route, for every kind of client: who is admitted and who is refused."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, NamedTuple

import pytest
from starlette.routing import Route
from tests.unit.http.test_app import TestClient, run_event

from downriver.http import build_app
from downriver.http.app import ENDPOINTS
from downriver.http.mcp import MCP_ENDPOINT
from downriver.service import Lineage
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.http.endpoint import Endpoint

TABLE = (*ENDPOINTS, MCP_ENDPOINT)
# Add a route here only if everybody on the network may use it.
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/openapi.json")}
# Add a route here only if it changes nothing although its method is not GET.
READS_BY_POST = {
    "/v1/lineage/impact",
    "/v1/preview",
    "/v1/impact",
    "/v1/fix",
    "/v1/ask",
    "/v1/column-edges",
    "/v1/export",
    "/v1/inventory",
    "/v1/schema-check",
    "/v1/incidents",
    "/v1/triggers/test",
    "/mcp",  # its tools that write need a writer
}
UNAUTHORIZED, FORBIDDEN = 401, 403


class Client(NamedTuple):
    """A kind of client: its key, the role that the key has, and whether it is limited."""

    name: str
    role: KeyRole | None = None
    limited: bool = False


CLIENTS = (
    Client("without a key"),
    Client("with an unknown key"),
    Client("with a revoked key"),
    Client("with an expired key"),
    Client("reader", KeyRole.READER),
    Client("writer", KeyRole.WRITER),
    Client("admin", KeyRole.ADMIN),
    Client("limited reader", KeyRole.READER, limited=True),
    Client("limited writer", KeyRole.WRITER, limited=True),
)


def expected_refusal(endpoint: Endpoint, client: Client) -> int | None:
    """Return the status by which a client is refused; None if it is admitted."""
    if endpoint.role is None:
        return None
    if client.role is None:
        return UNAUTHORIZED
    if client.role < endpoint.role or (endpoint.whole_store and client.limited):
        return FORBIDDEN
    return None


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, dict[str, str]]]:
    with Lineage.open(str(tmp_path_factory.mktemp("store"))) as lineage:
        create = lineage.admin.create_key
        secrets = {
            "without a key": "",
            "with an unknown key": "dr_unknown",
            "with a revoked key": create("revoked", "admin"),
            "with an expired key": create("expired", "admin", expires="1s"),
            "reader": create("reader", "reader"),
            "writer": create("writer", "writer"),
            "admin": create("admin", "admin"),
            "limited reader": create("limited reader", "reader", namespaces=["etl", "db"]),
            "limited writer": create("limited writer", "writer", namespaces=["etl", "db"]),
        }
        lineage.admin.revoke_key("revoked")
        lineage.ingest([_event("clean", ["raw"], ["orders"])])
        time.sleep(1.1)  # the shortest life of a key
        with TestClient(build_app(lineage), raise_server_exceptions=False) as client:
            yield client, secrets


def _event(*parts: object) -> bytes:
    return json.dumps(run_event(*parts)).encode()  # type: ignore[arg-type]


def _headers(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"} if secret else {}


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
@pytest.mark.parametrize("endpoint", TABLE, ids=lambda e: f"{e.method} {e.path}")
def test_every_route_admits_whom_its_row_admits(
    keyed: tuple[TestClient, dict[str, str]], endpoint: Endpoint, client: Client
) -> None:
    http, secrets = keyed
    path = re.sub(r"{\w+}", "unknown", endpoint.path)
    answer = http.request(endpoint.method, path, headers=_headers(secrets[client.name]))
    refusal = expected_refusal(endpoint, client)
    if refusal is None:
        assert answer.status_code not in (UNAUTHORIZED, FORBIDDEN), answer.text
    else:
        assert answer.status_code == refusal, answer.text


def test_the_application_has_no_route_beside_the_table(lineage: Lineage) -> None:
    app = build_app(lineage)
    served = {
        (method, re.sub(r":path}", "}", route.path))
        for route in app.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert len(app.routes) == len(TABLE)  # neither a mount nor another kind of route
    declared = {(e.method, e.path) for e in TABLE} | {("GET", "/mcp"), ("DELETE", "/mcp")}
    assert served == declared


def test_routes_without_a_role_are_those_that_are_meant_to_be_open() -> None:
    assert {(e.method, e.path) for e in TABLE if e.role is None} == OPEN


def test_a_route_that_writes_needs_a_writer() -> None:
    by_readers = {e.path for e in TABLE if e.method != "GET" and e.role is KeyRole.READER}
    assert by_readers == READS_BY_POST


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_every_method_of_mcp_needs_a_key(
    keyed: tuple[TestClient, dict[str, str]], method: str
) -> None:
    http, _ = keyed  # with a key, GET is a stream that does not end
    assert http.request(method, "/mcp").status_code == UNAUTHORIZED


def test_files_of_the_web_ui_need_no_key(keyed: tuple[TestClient, dict[str, str]]) -> None:
    http, _ = keyed
    assert http.get("/lineage").status_code in (200, 503)  # 503: the UI is not built


@pytest.mark.parametrize("endpoint", TABLE, ids=lambda e: f"{e.method} {e.path}")
def test_without_keys_every_route_is_for_this_machine_only(
    keyless: TestClient, endpoint: Endpoint
) -> None:
    path = re.sub(r"{\w+}", "unknown", endpoint.path)
    foreign = keyless.request(endpoint.method, path, headers={"Host": "marquez"})
    assert (foreign.status_code == UNAUTHORIZED) == (endpoint.role is not None)
    if endpoint.role is not None:
        assert "DOWNRIVER_ALLOWED_HOSTS" in foreign.text


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with (
        Lineage.open(str(tmp_path_factory.mktemp("keyless"))) as lineage,
        TestClient(build_app(lineage), raise_server_exceptions=False) as client,
    ):
        yield client


@pytest.fixture
def lineage(tmp_path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path)) as opened:
        yield opened
