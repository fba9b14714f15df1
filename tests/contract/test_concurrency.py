"""A question never waits for another one, on any store."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.unit.graph.events import dataset_event, run_event, schema

from downriver import Lineage
from downriver.model.changes import ColumnRename

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 60  # seconds until a question that should have been answered counts as stuck
RENAME = ColumnRename(dataset="d0", column="x", to="y")


@pytest.fixture(params=["sqlite", "postgres"])
def lineage(request, tmp_path) -> Iterator[Lineage]:
    location = (
        str(tmp_path / "store")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres_database")
    )
    with Lineage.open(location) as lineage:
        lineage.ingest(
            [
                dataset_event("d0", schema=schema("x")),
                *(run_event(f"j{n}", [f"d{n}"], [f"d{n + 1}"]) for n in range(20)),
            ]
        )
        yield lineage


class HeldFiles:
    """Source files whose reader waits, so that the question that reads them is not finished."""

    def __init__(self) -> None:
        self.reached = threading.Semaphore(0)
        self.let_go = threading.Event()

    def read(self, path: str) -> str | None:
        return None

    def list_yaml(self) -> list[str]:
        self.reached.release()
        assert self.let_go.wait(PATIENCE)
        return []


@pytest.mark.parametrize("impacts", [1, 4])
def test_traces_are_answered_while_impacts_are_under_way(lineage: Lineage, impacts: int) -> None:
    held, traces = HeldFiles(), 50
    with ThreadPoolExecutor(impacts + 2) as pool:
        running = [pool.submit(lineage.impact.fix, [RENAME], held) for _ in range(impacts)]
        try:
            for _ in running:
                assert held.reached.acquire(timeout=PATIENCE)
            asked = [pool.submit(lineage.trace, "d0", depth=n % 20) for n in range(traces)]
            answered = [len(trace.result(PATIENCE).nodes) for trace in asked]
            assert answered == [1 + 2 * (n % 20) for n in range(traces)]
            assert not any(impact.done() for impact in running)
        finally:
            held.let_go.set()
        assert [impact.result(PATIENCE).patches for impact in running] == [[]] * impacts


def test_what_is_written_while_an_impact_is_under_way_is_in_the_next_answer(
    lineage: Lineage,
) -> None:
    held = HeldFiles()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(lineage.impact.fix, [RENAME], held)
        try:
            assert held.reached.acquire(timeout=PATIENCE)
            for number in range(5):
                lineage.ingest([run_event(f"new{number}", ["d20"], [f"new{number}"])])
                assert len(lineage.trace("d20").nodes) == 1 + 2 * (number + 1)
            assert not running.done()
        finally:
            held.let_go.set()
        running.result(PATIENCE)
