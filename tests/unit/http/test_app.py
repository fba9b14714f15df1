"""The HTTP API, as its clients use it."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import socket
import stat
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from starlette import testclient
from starlette.requests import Request
from tests.server import free_port

from downriver import errors
from downriver.http import build_app
from downriver.http.access import AccessControl, check_bind
from downriver.http.errors import status_of
from downriver.service import Lineage
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.store import Receipt
    from downriver.store.port import PreparedEvent


class TestClient(testclient.TestClient):
    """A client on this machine."""

    __test__ = False

    def __init__(self, app, **options) -> None:
        here = {"base_url": "http://localhost", "client": ("127.0.0.1", 50000)}
        super().__init__(app, **here, **options)


def run_event(job: str, inputs: Sequence[str], outputs: Sequence[str], **changes: object) -> dict:
    event = {
        "eventTime": "2026-01-01T00:00:00Z",
        "eventType": "COMPLETE",
        "run": {"runId": f"run-of-{job}"},
        "job": {"namespace": "etl", "name": job},
        "inputs": [{"namespace": "db", "name": name} for name in inputs],
        "outputs": [{"namespace": "db", "name": name} for name in outputs],
    }
    return {**event, **changes}


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path)) as opened:
        yield opened


@pytest.fixture
def client(lineage: Lineage) -> Iterator[TestClient]:
    with TestClient(build_app(lineage)) as opened:
        yield opened


def test_an_event_is_created_and_the_same_event_again_is_too(
    client: TestClient, lineage: Lineage
) -> None:
    event = run_event("clean", ["raw"], ["orders"])
    for _ in range(2):
        answer = client.post("/api/v1/lineage", json=event)
        assert (answer.status_code, answer.content) == (201, b"")
    assert lineage.admin.status().counts.events == 1


def test_gzip_is_understood(client: TestClient, lineage: Lineage) -> None:
    body = gzip.compress(json.dumps(run_event("clean", ["raw"], ["orders"])).encode())
    answer = client.post("/api/v1/lineage", content=body, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 201
    assert lineage.admin.status().counts.datasets == 2


def test_gzip_of_several_members_is_read_whole(client: TestClient, lineage: Lineage) -> None:
    body = json.dumps(run_event("clean", ["raw"], ["orders"])).encode()
    members = b"".join(gzip.compress(body[at : at + 40]) for at in range(0, len(body), 40))
    answer = client.post("/api/v1/lineage", content=members, headers={"Content-Encoding": "gzip"})
    assert answer.status_code == 201
    assert lineage.admin.status().counts.datasets == 2


@pytest.mark.parametrize(
    ("body", "encoding", "status", "field"),
    [
        (b"{", "", 400, None),
        (b"", "", 400, None),
        (b"\xff", "", 400, None),
        (b'{"eventTime": "2026-01-01T00:00:00Z"}', "", 400, "job"),
        (
            b'{"eventTime": "yesterday", "job": {"namespace": "a", "name": "b"}}',
            "",
            400,
            "eventTime",
        ),
        (b'{"eventTime": "2026-01-01", "job": null}', "", 400, "job"),
        (b"not gzip", "gzip", 400, None),
        (gzip.compress(b"{}", mtime=0)[:-4], "gzip", 400, None),
        (b"{}", "br", 400, "Content-Encoding"),
    ],
)
def test_an_invalid_event_is_400_with_the_field(
    client: TestClient, body: bytes, encoding: str, status: int, field: str | None
) -> None:
    headers = {"Content-Encoding": encoding} if encoding else {}
    answer = client.post("/api/v1/lineage", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"] == "InvalidEvent"
    assert answer.json().get("field") == field


def test_a_body_over_the_limit_is_refused_also_when_compressed(
    lineage: Lineage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_MAX_EVENT_MB", "1")
    client = TestClient(build_app(lineage))
    bomb = gzip.compress(b" " * (64 * 2**20))
    plain = client.post("/api/v1/lineage", content=b" " * (2**20 + 1))
    packed = client.post("/api/v1/lineage", content=bomb, headers={"Content-Encoding": "gzip"})
    assert [plain.status_code, packed.status_code] == [413, 413]


def test_an_event_of_several_megabytes_is_stored(client: TestClient, lineage: Lineage) -> None:
    event = run_event("wide", ["raw"], ["orders"])
    fields = [{"name": f"column_{n}", "description": "x" * 400} for n in range(10_000)]
    event["outputs"][0]["facets"] = {"schema": {"fields": fields}}
    assert client.post("/api/v1/lineage", json=event).status_code == 201
    assert lineage.admin.status().counts.columns == 10_000


def test_a_batch_stores_valid_events_and_names_invalid_ones(
    client: TestClient, lineage: Lineage
) -> None:
    good = run_event("clean", ["raw"], ["orders"])
    assert client.post("/api/v1/lineage/batch", json=[good]).status_code == 204
    answer = client.post("/api/v1/lineage/batch", json=[run_event("b", [], []), {"eventTime": 1}])
    assert answer.status_code == 200
    assert answer.json()["status"] == "partial_success"
    assert answer.json()["failed_events"] == [
        {"index": 1, "reason": "eventTime: expected str, got int", "retriable": False}
    ]
    assert lineage.admin.status().counts.events == 2


class SlowStore(SqliteStore):
    """A store whose disk has stopped answering until `go` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()
        self.writing = threading.Event()

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        self.writing.set()
        self.go.wait(30)
        return super().write(events)


def test_overload_is_503_and_loses_nothing_that_was_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOWNRIVER_QUEUE_MB", "1")
    store = SlowStore(tmp_path / "lineage.db")
    padding = {"padding": {"text": "x" * 700_000}}
    bodies = [
        run_event(f"job{n}", [], [], run={"runId": str(n), "facets": padding}) for n in range(3)
    ]
    with Lineage(store) as lineage, TestClient(build_app(lineage)) as client:
        codes: dict[int, int] = {}

        def post(number: int) -> None:
            answer = client.post("/api/v1/lineage", json=bodies[number])
            codes[number] = answer.status_code

        threads = [threading.Thread(target=post, args=(number,)) for number in range(2)]
        threads[0].start()
        assert store.writing.wait(10)
        threads[1].start()
        _wait_until(lambda: lineage.session.waiting == 1)
        refused = client.post("/api/v1/lineage", json=bodies[2])
        store.go.set()
        for thread in threads:
            thread.join(30)
        assert refused.status_code == 503
        assert refused.headers["Retry-After"] == "1"
        assert codes == {0: 201, 1: 201}
        assert lineage.admin.status().counts.events == 2


def _wait_until(condition) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never happened")


@pytest.fixture
def file_store(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as opened:
        opened.ingest([json.dumps(run_event("clean", ["raw"], ["orders"])).encode()])
        yield opened


@pytest.mark.parametrize("suffix", ["", "-wal"])
@pytest.mark.parametrize("replaced", [False, True])
def test_an_event_is_not_acknowledged_when_the_files_were_deleted(
    file_store: Lineage, suffix: str, replaced: bool
) -> None:
    client = TestClient(build_app(file_store))
    assert client.get("/readyz").json() == {"status": "ok"}
    location = file_store.admin.store_url
    path = Path(location + suffix)
    kept = path.rename(path.with_name("kept"))
    if replaced:
        shutil.copy(kept, path)
    written = client.post("/api/v1/lineage", json=run_event("more", ["orders"], ["report"]))
    ready = client.get("/readyz")
    assert [written.status_code, ready.status_code] == [503, 503]
    assert ("replaced" if replaced else "deleted") in ready.json()["detail"]
    assert location not in ready.text + written.text  # no path of the server
    path.unlink(missing_ok=True)
    kept.rename(path)
    assert client.get("/readyz").status_code == 200
    assert client.post("/api/v1/lineage", json=run_event("b", ["c"], ["d"])).status_code == 201


def test_a_store_can_be_read_by_its_owner_only(file_store: Lineage) -> None:
    path = Path(file_store.admin.store_url)
    files = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert set(files.values()) == {0o600}, files
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_status_shows_no_path(file_store: Lineage) -> None:
    answer = TestClient(build_app(file_store)).get("/v1/status")
    assert answer.json()["store"] == "sqlite"


def test_unknown_paths_and_methods_have_the_same_error_shape(client: TestClient) -> None:
    assert client.get("/v1/nope").json()["error"] == "NotFound"
    assert client.delete("/v1/trace").json()["error"] == "MethodNotAllowed"


def test_an_unexpected_error_shows_no_details(lineage: Lineage) -> None:
    app = build_app(lineage)
    app.state.context = None
    answer = TestClient(app, raise_server_exceptions=False).get("/v1/status")
    assert answer.status_code == 500
    assert answer.json() == {
        "error": "InternalError",
        "detail": "unexpected error; see the log of the server",
    }


def test_trace_over_http_is_the_same_answer_as_from_python(
    client: TestClient, lineage: Lineage
) -> None:
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    client.post("/api/v1/lineage", json=run_event("sum", ["orders"], ["revenue"]))
    answer = client.get("/v1/trace", params={"entity": "raw", "depth": 1}).json()
    assert {
        "root",
        "nodes",
        "edges",
        "complete",
        "blind_spots",
        "omitted_count",
        "reader_count",
    } == set(answer)
    assert [node["name"] for node in answer["nodes"]] == ["raw", "orders", "clean"]
    assert (answer["complete"], answer["omitted_count"]) == (False, 2)
    assert answer["blind_spots"][0]["kind"] == "depth_limit"


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ({}, 400, "InvalidRequest"),
        ({"entity": "raw", "depth": "-1"}, 400, "InvalidRequest"),
        ({"entity": "raw", "depth": "many"}, 400, "InvalidRequest"),
        ({"entity": "raw", "limit": "0"}, 400, "InvalidRequest"),
        ({"entity": "raw", "direction": "sideways"}, 400, "InvalidRequest"),
        ({"entity": "raw", "as_of": "soon"}, 400, "InvalidRequest"),
        ({"entity": "rww"}, 404, "EntityNotFound"),
    ],
)
def test_invalid_requests_get_clear_errors(
    client: TestClient, query: dict[str, str], status: int, error: str
) -> None:
    client.post("/api/v1/lineage", json=run_event("clean", ["raw"], ["orders"]))
    answer = client.get("/v1/trace", params=query)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_with_the_first_key_every_request_needs_one_and_roles_count(
    client: TestClient, lineage: Lineage
) -> None:
    reader = lineage.admin.create_key("dash", "reader")
    writer = lineage.admin.create_key("etl", "writer")
    client = TestClient(build_app(lineage))
    event = run_event("clean", ["raw"], ["orders"])

    def post(key: str | None) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return client.post("/api/v1/lineage", json=event, headers=headers).status_code

    assert [post(None), post("dr_wrong"), post(reader), post(writer)] == [401, 401, 403, 201]
    assert client.get("/healthz").status_code == 200
    lineage.admin.revoke_key("etl")
    assert TestClient(build_app(lineage)).get(
        "/v1/status", headers={"Authorization": f"Bearer {writer}"}
    ).status_code == 401  # fmt: skip


def test_keys_are_stored_hashed_and_listed_without_themselves(lineage: Lineage) -> None:
    key = lineage.admin.create_key("etl", "writer")
    assert key.encode() not in b"".join(
        path.read_bytes() for path in __import__("pathlib").Path(lineage.store.url).parent.iterdir()
    )
    assert lineage.admin.find_key(key).role == "writer"
    assert [k.name for k in lineage.admin.list_keys()] == ["etl"]
    with pytest.raises(errors.InvalidRequestError):
        lineage.admin.create_key("etl", "writer")


def test_a_server_without_keys_does_not_listen_to_other_machines() -> None:
    for host in ("127.0.0.1", "localhost"):
        check_bind(host, free_port(), keyed=False)
    check_bind("0.0.0.0", free_port(), keyed=True)
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.com"):
        with pytest.raises(errors.InvalidRequestError, match="keys create"):
            check_bind(host, free_port(), keyed=False)


def test_a_used_port_is_an_error_before_serving() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(errors.InvalidRequestError, match="cannot listen"):
            check_bind("127.0.0.1", taken.getsockname()[1], keyed=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://[::1"},
        {"Host": "evil.example"},
        {"Host": "localhost@evil.example"},
        {"Host": "evil.example@localhost"},
        {"Host": "[::1"},
        {"Host": ""},
    ],
)
def test_a_web_page_cannot_use_a_server_without_keys(
    client: TestClient, headers: dict[str, str]
) -> None:
    body = run_event("clean", [], ["orders"])
    assert client.post("/api/v1/lineage", json=body, headers=headers).status_code == 401
    own = {"Origin": "http://localhost:5000"}
    assert client.post("/api/v1/lineage", json=body, headers=own).status_code == 201


@pytest.mark.parametrize("failure", [None, errors.StoreError("gone")])
def test_concurrent_requests_read_the_keys_once(failure: Exception | None) -> None:
    asked: list[str] = []

    class Store:
        def has_keys(self) -> bool:
            asked.append("once")
            if failure:
                raise failure
            return False

    async def request(access: AccessControl) -> None:
        scope = {"type": "http", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
        await access.identify(Request(scope))

    async def all_requests(access: AccessControl) -> list[BaseException | None]:
        return await asyncio.gather(*(request(access) for _ in range(20)), return_exceptions=True)

    access = AccessControl(cast("Lineage", SimpleNamespace(admin=Store())))
    assert asyncio.run(all_requests(access)) == [failure] * 20
    assert asked == ["once"]
    if failure:  # the next requests read the keys again
        asyncio.run(all_requests(access))
        assert asked == ["once", "once"]


def test_an_odd_escape_in_a_batch_does_not_affect_other_events(
    client: TestClient, lineage: Lineage
) -> None:
    good = json.dumps(run_event("good", ["a"], []))
    odd = json.dumps(run_event("odd", ["b"], [])).replace('"b"', '"b\\ud800"')
    answer = client.post("/api/v1/lineage/batch", content=f"[{odd}, {good}]".encode())
    assert answer.status_code == 204
    assert lineage.admin.status().counts.events == 2


def test_a_number_of_thousands_of_digits_is_an_invalid_request(client: TestClient) -> None:
    answer = client.get("/v1/trace", params={"entity": "a", "depth": "9" * 5000})
    assert answer.status_code == 400


def test_every_error_has_a_status() -> None:
    made = {
        errors.InvalidEventError("a", "b"): 400,
        errors.EntityNotFoundError("a"): 404,
        errors.AmbiguousNameError("a", []): 409,
        errors.StoreBusyError("x"): 503,
        errors.EventTooLargeError(1): 413,
        errors.UnauthorizedError("x"): 401,
        errors.ForbiddenError("a"): 403,
        errors.MissingDependencyError("a", "b"): 501,
    }
    assert {error: status_of(type(error)) for error in made} == made
