"""An index follows its store, for any writer and any number of events."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    dataset_event,
    moment,
    run_event,
    schema,
    symlinks,
)

from downriver.errors import EntityNotFoundError
from downriver.service import Lineage
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("walks")


@pytest.fixture
def other(lineage: Lineage, tmp_path: Path) -> Iterator[Lineage]:
    """Another `Lineage` on the same store, as another server would have it."""
    with Lineage(SqliteStore(tmp_path / "lineage.db")) as other:
        yield other


def names(answer):
    return sorted(node.name for node in answer.nodes)


def test_two_stores_see_the_writes_of_each_other(lineage, other):
    lineage.ingest([run_event("j", ["a"], ["b"])])
    assert names(other.trace("a")) == ["a", "b", "j"]
    lineage.ingest([run_event("k", ["b"], ["c"])])
    assert names(other.trace("a")) == ["a", "b", "c", "j", "k"]
    other.ingest([run_event("l", ["c"], ["d"])])
    assert names(lineage.trace("a")) == ["a", "b", "c", "d", "j", "k", "l"]


def test_what_was_unknown_is_known_once_the_other_writes_it(lineage, other):
    with pytest.raises(EntityNotFoundError):
        other.trace("a")
    lineage.ingest([dataset_event("a")])
    assert names(other.trace("a")) == ["a"]


def test_new_columns_and_their_edges_are_seen(lineage, other):
    def told(**fields):
        return run_event("j", [], [dataset("b", columnLineage=column_lineage(**fields))])

    lineage.ingest([told(x=[copied("a.x")])])
    assert len(other.trace("a.x").nodes) == 2
    lineage.ingest([told(x=[copied("a.x")], y=[copied("a.x")])])
    assert [node.field for node in other.trace("a.x").nodes] == ["x", "x", "y"]
    lineage.ingest([dataset_event("b", schema=schema("z"))])
    assert other.trace("b.z").root.field == "z"


def test_new_names_of_known_things_are_seen(lineage, other):
    lineage.ingest([run_event("w", ["a"], ["path"]), run_event("r", ["table"], ["b"])])
    assert names(other.trace("a")) == ["a", "path", "w"]
    lineage.ingest([dataset_event("path", symlinks=symlinks("table"))])
    assert names(other.trace("a")) == ["a", "b", "r", "table", "w"]
    lineage.ingest([dataset_event("path", symlinks=symlinks(), day=2)])
    assert names(other.trace("a")) == ["a", "path", "w"]


def test_times_that_move_are_seen(lineage, other):
    def told(day):
        facet = column_lineage(x=[copied("a.x")])
        return run_event("j", ["a"], [dataset("b", columnLineage=facet)], day=day)

    lineage.ingest([told(5)])
    assert other.trace("a").edges[0].last_seen == moment(5)
    assert len(other.trace("a.x", as_of=moment(3)).nodes) == 1
    lineage.ingest([told(9), told(2)])
    assert other.trace("a").edges[0].last_seen == moment(9)
    assert len(other.trace("a.x", as_of=moment(3)).nodes) == 2
    assert len(other.trace("a", as_of=moment(3)).nodes) == 3


def test_after_a_rebuild_every_answer_is_the_same(lineage, other):
    facet = column_lineage(x=[copied("a.x")])
    written = dataset("b", columnLineage=facet, symlinks=symlinks("table"))
    for n in range(3):
        lineage.ingest([run_event(f"j{n}", ["a", f"in{n}"], [written]), dataset_event("a", day=3)])
    asked = ["a", "a.x", "table", "in1"]
    before = [other.trace(entity, "both") for entity in asked]
    lineage.admin.rebuild()
    assert [other.trace(entity, "both") for entity in asked] == before
    assert [lineage.trace(entity, "both") for entity in asked] == before
    lineage.ingest([run_event("k", ["table"], ["c"])])
    assert "c" in names(other.trace("a"))


def test_many_edges_at_once_and_few_after_are_all_found(lineage, other):
    lineage.ingest([run_event(f"j{n}", ["hub"], [f"out{n}"]) for n in range(3000)])
    assert other.trace("hub").omitted_count == 6001 - 1000
    for n in range(3):
        lineage.ingest([run_event(f"late{n}", ["hub", "out0"], [f"late_out{n}"])])
        assert other.trace("hub").omitted_count == 6001 - 1000 + 2 * (n + 1)
        assert f"late_out{n}" in names(other.trace("out0"))


def test_another_process_is_seen(lineage):
    lineage.ingest([run_event("j", ["a"], ["b"])])
    assert names(lineage.trace("a")) == ["a", "b", "j"]
    script = """
import sys
from downriver.service import Lineage
with Lineage.open(sys.argv[1]) as lineage:
    lineage.ingest([sys.stdin.buffer.read()])
    if "--rebuild" in sys.argv:
        lineage.admin.rebuild()
"""
    for event, option in (
        (run_event("k", ["b"], ["c"]), ""),
        (run_event("l", ["c"], ["d"]), "--rebuild"),
    ):
        subprocess.run(
            [sys.executable, "-c", script, lineage.store.url, option], input=event, check=True
        )
    assert names(lineage.trace("a")) == ["a", "b", "c", "d", "j", "k", "l"]


def test_threads_may_ask_while_others_write(lineage):
    lineage.ingest([run_event("j0", ["d0"], ["d1"])])
    done = threading.Event()

    def ask():
        counts = [len(lineage.trace("d0").nodes)]
        while not done.is_set():
            counts.append(len(lineage.trace("d0").nodes))
        return counts

    with ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask) for _ in range(3)]
        for n in range(1, 20):
            lineage.ingest([run_event(f"j{n}", [f"d{n}"], [f"d{n + 1}"])])
        done.set()
        for counts in asking:
            assert counts.result() == sorted(counts.result())
    assert len(lineage.trace("d0").nodes) == 41


def test_a_prepared_store_answers_with_later_events_too(lineage, other):
    lineage.ingest([run_event("j", ["a"], ["b"])])
    other.session.prepare()
    lineage.ingest([run_event("k", ["b"], ["c"])])
    assert names(other.trace("a")) == ["a", "b", "c", "j", "k"]
