"""Questions have their own threads and a limited queue; events are accepted meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.openlineage import dataset, encode, run_event
from tests.server import serving

from downriver import Lineage
from downriver.store import KeyRole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from downriver.model.views.search import SearchPage

PATIENCE = 300  # seconds until a request that should have been answered counts as stuck
SEARCHES = 50
READERS = 4
QUEUE = 8


class HeldSearches:
    """Searches that wait until they are released."""

    def __init__(self, lineage: Lineage) -> None:
        self._search = lineage.search
        self.reached = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(self, text: str, **options: Any) -> SearchPage:
        self.reached.release()
        assert self.let_go.wait(PATIENCE)
        return self._search(text, **options)


@pytest.fixture(params=["without keys", "with keys"])
def headers(request: pytest.FixtureRequest, lineage: Lineage) -> dict[str, str]:
    if request.param == "without keys":
        return {}
    return {"Authorization": f"Bearer {lineage.store.add_key('test', KeyRole.ADMIN)}"}


@pytest.fixture
def lineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lineage]:
    monkeypatch.setenv("DOWNRIVER_READERS", str(READERS))
    monkeypatch.setenv("DOWNRIVER_READ_QUEUE", str(QUEUE))
    with Lineage.open(str(tmp_path)) as opened:
        opened.ingest([encode(run_event(inputs=[dataset("a")], outputs=[dataset("b")]))])
        yield opened


@contextmanager
def searches_in_flight(
    lineage: Lineage, headers: dict[str, str]
) -> Iterator[tuple[httpx.Client, list, HeldSearches]]:
    """Yield a client, the searches that it sent and that are not answered yet, and their hold."""
    held = HeldSearches(lineage)
    lineage.search = held  # type: ignore[assignment]
    with (
        serving(lineage) as url,
        ThreadPoolExecutor(SEARCHES) as pool,
        httpx.Client(
            base_url=url, timeout=PATIENCE, limits=httpx.Limits(), headers=headers
        ) as client,
    ):
        sent = [
            pool.submit(client.get, "/v1/search", params={"text": str(n)}) for n in range(SEARCHES)
        ]
        try:
            for _ in range(READERS):
                assert held.reached.acquire(timeout=PATIENCE)
            yield client, sent, held
        finally:
            held.let_go.set()


def test_events_are_stored_while_50_searches_are_in_flight(lineage, headers):
    with searches_in_flight(lineage, headers) as (client, _, held):
        for number in range(20):
            event = encode(run_event(run=f"run-{number}", outputs=[dataset(f"new_{number}")]))
            assert client.post("/api/v1/lineage", content=event).status_code == 201
        # Not one search was answered meanwhile, and no further one got a thread.
        assert not held.let_go.is_set()
        assert not held.reached.acquire(blocking=False)
        assert client.get("/healthz").status_code == 200
        assert client.get("/readyz").status_code == 200
    with lineage.store.reader() as reader:
        assert reader.counts().events == 21


def test_questions_beyond_the_queue_get_503_and_the_others_are_answered(lineage, headers):
    with searches_in_flight(lineage, headers) as (_, sent, held):
        refused = []
        for search in as_completed(sent, PATIENCE):
            refused.append(search.result())
            if len(refused) == SEARCHES - READERS - QUEUE:
                break
        assert {answer.status_code for answer in refused} == {503}
        assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
        assert {answer.json()["error"] for answer in refused} == {"StoreBusy"}
        held.let_go.set()
        answers = [search.result(PATIENCE) for search in sent]
    assert sorted(answer.status_code for answer in answers) == [
        *[200] * (READERS + QUEUE),
        *[503] * len(refused),
    ]
