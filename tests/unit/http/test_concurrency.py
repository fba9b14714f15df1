"""A server answers traces while questions about changes are under way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest
from tests.server import running_server, serving
from tests.unit.graph.events import run_event

from downriver import Lineage
from downriver.isolation import WorkerLimits, WorkerPool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 300  # seconds until a request that should have been answered counts as stuck
IMPACTS = 50  # more than the server has threads
CHANGE = {"type": "column_drop", "column": "x"}


class HeldWorkers(WorkerPool):
    """Workers whose calls wait until they are released."""

    def __init__(self) -> None:
        super().__init__(2, WorkerLimits(60, 1024, 1))
        self.reached = threading.Semaphore(0)
        self.let_go = threading.Event()

    def call(self, function: Callable[[bytes], bytes], payload: bytes) -> bytes:
        self.reached.release()
        assert self.let_go.wait(PATIENCE)
        return super().call(function, payload)


def test_traces_are_answered_while_many_impacts_are_under_way(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage, closing(HeldWorkers()) as held:
        lineage.ingest([run_event("j", ["a"], ["b"])])
        with (
            serving(lineage, held) as url,
            ThreadPoolExecutor(IMPACTS) as pool,
            httpx.Client(base_url=url, timeout=PATIENCE, limits=httpx.Limits()) as client,
        ):
            body = {"asset_id": "a", "proposed_changes": [CHANGE]}
            running = [
                pool.submit(client.post, "/v1/lineage/impact", json=body) for _ in range(IMPACTS)
            ]
            try:
                assert held.reached.acquire(timeout=PATIENCE)
                for _ in range(20):
                    answer = client.get("/v1/trace", params={"entity": "a"})
                    assert len(answer.json()["nodes"]) == 3
                assert not any(impact.done() for impact in running)
            finally:
                held.let_go.set()
            assert {impact.result(PATIENCE).status_code for impact in running} == {200}


# Each is one C call that holds the interpreter, or that takes gigabytes.
HOSTILE_TEMPLATES = {
    "sum of lists": "{% set q = ([[1]*1000]*100000)|sum(start=[]) %}",
    "replace": "{% set a = 'x' * 1000000 %}{% set b = a.replace('x', a) %}",
    "translate": "{% set a = 'x' * 900000 %}{% set b = a.translate({120: a}) %}",
    "nested sets": "{% set a = 'x' * 1000000 %}"
    + "".join(
        f"{{% set {name} = [a, a, a, a]|join %}}{{% set a = {name} %}}" for name in "bcdefghijk"
    ),
}


@contextmanager
def hostile_server(folder: Path, **settings: str) -> Iterator[str]:
    """Serve a store with one consumer of the table `a`."""
    code = folder / "code"
    (code / "jobs").mkdir(parents=True)
    (code / "jobs" / "b.sql").write_text("create table b as select x from a")
    with Lineage.open(str(folder / "store")) as lineage:
        lineage.capture.scan(code)
    with running_server(folder / "store", **settings) as url:
        yield url


def fix_request(template: str) -> dict[str, object]:
    """Return a request to rename a column in a file that starts with a template."""
    code = f"{template} create table b as select x from a"
    change = {"entity_id": "a", "change_type": "column_rename", "column": "x", "to": "y"}
    return {**change, "files": {"jobs/b.sql": code}}


@pytest.mark.parametrize("template", HOSTILE_TEMPLATES.values(), ids=HOSTILE_TEMPLATES)
def test_a_server_answers_while_it_reads_hostile_code(tmp_path: Path, template: str) -> None:
    limits = {"DOWNRIVER_CODE_SECONDS": "4", "DOWNRIVER_CODE_MB": "512"}
    with (
        hostile_server(tmp_path, **limits) as url,
        ThreadPoolExecutor(2) as pool,
        httpx.Client(base_url=url, timeout=PATIENCE) as client,
    ):
        plain = client.post("/v1/fix", json=fix_request(""))
        assert "select y" in plain.json()["patches"][0]["diff"]
        request = fix_request(template)
        running = [pool.submit(client.post, "/v1/fix", json=request) for _ in range(2)]
        for _ in range(20):
            assert client.get("/healthz").status_code == 200
            assert client.get("/v1/trace", params={"entity": "a"}).status_code == 200
        # Read within the limits, or refused because of them.
        assert {fix.result(PATIENCE).status_code for fix in running} <= {200, 422}
        assert client.get("/readyz").status_code == 200


def test_a_server_stops_while_it_reads_hostile_code(tmp_path: Path) -> None:
    limits = {"DOWNRIVER_CODE_SECONDS": "1000", "DOWNRIVER_CODE_MB": "8000"}
    request = fix_request(HOSTILE_TEMPLATES["sum of lists"])
    # Leaving ends the server by SIGTERM, and fails if it has not ended in 20 seconds.
    with ThreadPoolExecutor(1) as pool, hostile_server(tmp_path, **limits) as url:
        pool.submit(httpx.post, f"{url}/v1/fix", json=request, timeout=PATIENCE)
        assert httpx.get(f"{url}/healthz").status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/gate", "/v1/preview", "/v1/lineage/impact", "/v1/impact", "/v1/fix", "/v1/sql"]
)
@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"changes": ' + b"[" * 5000], ids=["list", "in object"]
)
def test_deeply_nested_json_is_a_client_error(tmp_path: Path, path: str, body: bytes) -> None:
    with Lineage.open(str(tmp_path)) as lineage, serving(lineage) as url:
        answer = httpx.post(f"{url}{path}", content=body, timeout=PATIENCE)
        assert 400 <= answer.status_code < 500
        assert answer.json()["detail"]
