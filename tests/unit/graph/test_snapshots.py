"""Questions run in parallel, and each is answered from one state of the store."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.unit.graph.events import (
    column_lineage,
    copied,
    dataset,
    dataset_event,
    filtered_by,
    run_event,
    symlinks,
)

from downriver.errors import EntityNotFoundError, StoreError
from downriver.graph import GraphIndex, Question, trace
from downriver.graph.names.resolution import resolve
from downriver.model.answers import Direction
from downriver.openlineage import parse_event
from downriver.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.graph import CatalogSnapshot
    from downriver.model.answers import Trace
    from downriver.store import CatalogReader

pytestmark = pytest.mark.usefixtures("walks")

PATIENCE = 30  # seconds until a thread that should have continued counts as stuck
ENTITIES = ("d0", "d0.x", "d3", "table", "missing")
NAMES = [f"d{number}" for number in range(8)]


@pytest.fixture
def store(tmp_path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "lineage.db")) as store:
        yield store


def batches(seed: int, count: int) -> list[list[bytes]]:
    """Make events that add edges, columns and names, and move the times of known ones."""
    chance = random.Random(seed)
    made = []
    for number in range(count):
        source, target = chance.sample(NAMES, 2)
        facet = column_lineage(
            filtered_by(f"{source}.y"), x=[copied(f"{source}.{chance.choice('xy*')}")]
        )
        written = dataset(target, columnLineage=facet)
        day = chance.randint(1, 60)
        events = [run_event(f"j{chance.randint(0, 5)}", [source], [written], day=day)]
        if number % 3 == 0:
            others = chance.choice(((), ("table",), ("table", "view")))
            events.append(dataset_event("d1", symlinks=symlinks(*others), day=number + 1))
        if number % 5 == 0:
            events.append(run_event(f"new{number}", ["d0"], [f"new{number}"], day=day))
        made.append(events)
    return made


def answer(view: CatalogSnapshot, entity: str) -> Trace | None:
    graph, reader = view
    try:
        found = resolve(entity, reader, graph.nodes.identities)
    except EntityNotFoundError:
        return None
    return trace(graph, reader, found, Question(Direction.BOTH))


def append(store: SqliteStore, events: list[bytes]) -> None:
    store.append([parse_event(event) for event in events])


@pytest.mark.parametrize("smallest_fold", [0, 2, 4096])
@pytest.mark.parametrize("seed", range(2))
def test_every_answer_is_that_of_one_state(tmp_path, seed, smallest_fold):
    """A state between the question and the reply: nothing acknowledged before is missing."""
    written = batches(seed, 24)
    expected: list[dict[str, Trace | None]] = []
    with closing(SqliteStore(tmp_path / "alone.db")) as store:
        index = GraphIndex(store, smallest_fold=smallest_fold)
        for events in [[], *written]:
            append(store, events)
            with index.reading() as view:
                expected.append({entity: answer(view, entity) for entity in ENTITIES})

    begun = acknowledged = 0
    done = threading.Event()
    with closing(SqliteStore(tmp_path / "shared.db")) as store:
        index = GraphIndex(store, smallest_fold=smallest_fold)

        def ask(chance: random.Random) -> int:
            asked = 0
            while not done.is_set() or not asked:
                entity = chance.choice(ENTITIES)
                first = acknowledged
                with index.reading() as view:
                    found = answer(view, entity)
                last = begun
                assert found in [state[entity] for state in expected[first : last + 1]]
                asked += 1
            return asked

        with ThreadPoolExecutor(4) as pool:
            asking = [pool.submit(ask, random.Random(seed * 10 + n)) for n in range(4)]
            try:
                for number, events in enumerate(written, 1):
                    begun = number
                    append(store, events)
                    acknowledged = number
            finally:
                done.set()
            assert all(asked.result() > 0 for asked in asking)
        with index.reading() as view:
            assert {entity: answer(view, entity) for entity in ENTITIES} == expected[-1]


@pytest.mark.parametrize("smallest_fold", [0, 2, 4096])
def test_an_open_view_does_not_see_what_is_written_later(store, smallest_fold):
    index = GraphIndex(store, smallest_fold=smallest_fold)
    first, *later = batches(7, 30)
    append(store, first)

    def ask_elsewhere() -> None:
        with index.reading() as view:
            answer(view, "d0")

    with ThreadPoolExecutor(1) as pool, index.reading() as view:
        before = {entity: answer(view, entity) for entity in ENTITIES}
        for events in later:
            append(store, events)
            pool.submit(ask_elsewhere).result(PATIENCE)
        assert {entity: answer(view, entity) for entity in ENTITIES} == before
        with index.reading() as inner:
            assert inner is view


def test_questions_are_answered_at_the_same_time(store):
    append(store, [run_event("j", ["d0"], ["d1"])])
    index = GraphIndex(store)
    inside = threading.Barrier(4, timeout=PATIENCE)

    def ask() -> int:
        with index.reading() as view:
            inside.wait()  # passes only when all four are inside
            found = answer(view, "d0")
            assert found is not None
            return len(found.nodes)

    with ThreadPoolExecutor(4) as pool:
        assert [asked.result() for asked in [pool.submit(ask) for _ in range(4)]] == [3] * 4


class FailingStore:
    """A store whose readers fail once, in the middle of a load."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.fail = False

    @contextmanager
    def reader(self) -> Iterator[CatalogReader]:
        with self._store.reader() as reader:
            yield _FailingReader(reader) if self.fail else reader


class _FailingReader:
    def __init__(self, part: object) -> None:
        self._part = part

    def __getattr__(self, name: str) -> object:
        if name == "changes":
            return _FailingReader(getattr(self._part, name))
        if name == "claims":  # read after the edges and the columns
            raise StoreError("the disk is gone")
        return getattr(self._part, name)


@pytest.mark.parametrize("smallest_fold", [0, 2, 4096])
def test_a_load_that_fails_changes_nothing(store, smallest_fold):
    failing = FailingStore(store)
    index, expected = GraphIndex(failing, smallest_fold=smallest_fold), GraphIndex(store)
    for number, events in enumerate(batches(3, 24)):
        append(store, events)
        if number % 2:
            failing.fail = True
            with pytest.raises(StoreError), index.reading():
                pass
            failing.fail = False
        with index.reading() as view, expected.reading() as other:
            for entity in ENTITIES:
                assert answer(view, entity) == answer(other, entity)


def test_a_question_inside_an_older_read_transaction_is_answered_from_that_state(store):
    append(store, [run_event("j", ["d0"], ["d1"])])
    index = GraphIndex(store)

    def ask() -> int:
        with index.reading() as view:
            found = answer(view, "d0")
            assert found is not None
            return len(found.nodes)

    with ThreadPoolExecutor(1) as pool, store.reader() as reader:
        assert reader.state().seq == 1
        append(store, [run_event("k", ["d1"], ["d2"])])
        assert pool.submit(ask).result(PATIENCE) == 5
        assert ask() == 3
    assert ask() == 5
