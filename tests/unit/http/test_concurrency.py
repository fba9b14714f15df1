"""A server answers traces while questions about changes are under way."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
from tests.server import serving
from tests.unit.graph.events import run_event

from downriver import Lineage
from downriver.model.verdicts import Impact

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from downriver.model.changes import Change

PATIENCE = 60  # seconds until a request that should have been answered counts as stuck
IMPACTS = 50  # more than the server has threads
CHANGE = {"type": "column_drop", "column": "x"}


class HeldImpact:
    """Impact questions that wait until they are let go."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.let_go = threading.Event()

    def __call__(self, changes: Sequence[Change]) -> Impact:
        self.reached.release()
        assert self.let_go.wait(PATIENCE)
        return Impact(
            changes=["drop x"],
            change_types=["column_drop"],
            targets=[],
            target_names=[],
            effects=[],
            untouched=0,
            complete=True,
            blind_spots=[],
        )


class HeldLineage(Lineage):
    """Lineage whose impact part is held."""

    impact = HeldImpact()  # type: ignore[assignment]


def test_traces_are_answered_while_many_impacts_are_under_way(tmp_path: Path) -> None:
    with HeldLineage.open(str(tmp_path)) as lineage:
        lineage.ingest([run_event("j", ["a"], ["b"])])
        held = HeldLineage.impact
        with (
            serving(lineage) as url,
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
