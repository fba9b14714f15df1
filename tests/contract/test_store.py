"""The contract of a store. Each test runs on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import multiprocessing
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing, contextmanager
from itertools import chain, repeat
from types import SimpleNamespace
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import psycopg
import pytest
from msgspec.structs import replace
from tests.openlineage import (
    DATABASE,
    JOBS,
    Json,
    column_lineage,
    dataset,
    dataset_event,
    encode,
    job_event,
    parsed,
    run_event,
    schema,
    source,
)

from downriver.errors import (
    InvalidRequestError,
    StoreBusyError,
    StoreError,
    StoreNotFoundError,
    StoreVersionError,
)
from downriver.model.facts import RunState
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage import Event, fold, parse_event
from downriver.store import (
    GroupCommit,
    Receipt,
    Store,
    StoreState,
    open_store,
    sql_store,
    verify_chain,
)
from downriver.store import group_commit as group_commit
from downriver.store.catalog.encoding import decompress
from downriver.store.catalog.projection import Projection
from downriver.store.port import PreparedEvent
from downriver.store.sql_store import list_migrations

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import CatalogReader

Opener = Callable[[], Store]
PATIENCE = 10.0


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """The URL of an empty schema: made in a tenth of the time of a database."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        yield f"{postgres_url}?options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(params=["sqlite", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return where an empty store can be created."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_schema"))
    return str(tmp_path / "lineage.db")


@pytest.fixture
def opened(location: str) -> Iterator[Opener]:
    """Return a function that opens the store, each time as another process would."""
    stores: list[Store] = []

    def open_another() -> Store:
        stores.append(open_store(location))
        return stores[-1]

    yield open_another
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Opener) -> Store:
    return opened()


def load(number: int, *, tables: int = 5) -> Json:
    """Return one of many different events about the same few tables."""
    columns = [f"c{k}" for k in range(3)]
    origin, target = f"t{number % tables}", f"t{(number * 3 + 1) % tables}"
    lineage = column_lineage({c: [source(origin, c)] for c in columns})
    return run_event(
        job_name=f"job{number % 4}",
        run=f"run{number // 3}",
        state=["START", "RUNNING", "COMPLETE"][number % 3],
        at=f"2026-01-{1 + number % 28:02}T00:00:{number % 60:02}Z",
        inputs=[dataset(origin, {"schema": schema(*columns, f"extra{number % 7}")})],
        outputs=[dataset(target, {"schema": schema(*columns), "columnLineage": lineage})],
    )


def some_events(count: int) -> list[Event]:
    return [parsed(load(number)) for number in range(count)]


def unstorable() -> Event:
    """Return an event that fails while it is written. The parser would reject it."""
    event = parsed(load(1000, tables=1) | {"run": {"runId": "unstorable"}})
    assert event.wire.job
    job = replace(event.wire.job, facets={"\ud800": msgspec.Raw(b"{}")})
    return replace(event, wire=replace(event.wire, job=job))


def dump(store: Store) -> dict:
    with store.reader() as reader:
        return reader.dump()


def logged(store: Store) -> list[bytes]:
    with store.reader() as reader:
        return [decompress(entry.body) for entry in reader.log.entries()]


def verified(store: Store, **options):
    with store.reader() as reader:
        return verify_chain(reader.log.entries(), **options)


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


WRITER = """
import sys
from downriver.openlineage import parse_event
from downriver.store import open_store
store = open_store(sys.argv[1])
lines = sys.stdin.buffer.read().splitlines()
for start in range(0, len(lines), 4):
    store.append([parse_event(line) for line in lines[start:start + 4]])
store.close()
"""


@contextmanager
def another_process(location: str, events: list[Event]) -> Iterator[None]:
    """Write events from another process while the block runs."""
    command = [sys.executable, "-c", WRITER, location]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        sending = threading.Thread(
            target=lambda: failed.append(
                process.communicate(b"\n".join(event.raw for event in events))[1]
            )
        )
        failed: list[bytes] = []
        sending.start()
        yield
        sending.join()
    assert process.returncode == 0, failed[0].decode()


class TestAppending:
    def test_receipts_number_the_log_in_order(self, store):
        first, second = some_events(5)[:3], some_events(5)[3:]
        assert store.append(first) == [Receipt(n, duplicate=False) for n in (1, 2, 3)]
        assert store.append(second) == [Receipt(n, duplicate=False) for n in (4, 5)]
        assert logged(store) == [event.raw for event in first + second]

    def test_an_empty_batch_appends_nothing(self, store):
        before = store.state()
        assert store.append([]) == []
        assert store.state() == before

    def test_a_duplicate_is_acknowledged_again_without_effect(self, store):
        events = some_events(3)
        store.append(events)
        before, state = dump(store), store.state()
        assert store.append([events[1]]) == [Receipt(2, duplicate=True)]
        assert (dump(store), store.state(), len(logged(store))) == (before, state, 3)

    def test_a_duplicate_within_one_batch(self, store):
        one, two = some_events(2)
        assert store.append([one, one, two, one]) == [
            Receipt(1, duplicate=False),
            Receipt(1, duplicate=True),
            Receipt(2, duplicate=False),
            Receipt(1, duplicate=True),
        ]
        assert len(logged(store)) == 2

    def test_a_duplicate_of_what_another_process_wrote(self, location, store):
        events = some_events(3)
        with another_process(location, events):
            pass
        assert [r.duplicate for r in store.append([*events, parsed(load(9))])] == [
            True,
            True,
            True,
            False,
        ]

    def test_the_same_event_in_other_bytes_is_another_log_entry_and_the_same_facts(self, store):
        event = run_event(inputs=[dataset("a")])
        store.append([parsed(event)])
        before = {name: len(rows) for name, rows in dump(store).items()}
        respelled = parse_event(encode(event) + b" ")
        assert store.append([respelled]) == [Receipt(2, duplicate=False)]
        assert {name: len(rows) for name, rows in dump(store).items()} == before

    def test_what_is_in_the_log_is_what_was_sent_to_the_byte(self, store):
        raw = (
            b' {"eventTime":"2026-01-01",  "job":{"name":"a\\u0000\\ud800","namespace":"\xc3\xa9"}}'
        )
        event = parse_event(raw)
        store.append([event])
        with store.reader() as reader:
            assert reader.log.find_event(event.ref.digest) == raw
            assert reader.log.find_event(b"\0" * 32) is None

    def test_an_event_of_several_megabytes(self, store):
        wide = {"fields": [{"name": f"column_{n}"} for n in range(50_000)]}
        event = parsed(run_event(inputs=[dataset("wide", {"schema": wide})]))
        store.append([event])
        with store.reader() as reader:
            assert reader.log.find_event(event.ref.digest) == event.raw
            node = reader.nodes.find(DatasetId(DATABASE, "wide"))
            assert len(reader.columns.list_names(node)) == 50_000

    def test_a_store_reopened_goes_on_where_it_was(self, opened):
        events = some_events(20)
        first = opened()
        first.append(events[:10])
        first.close()
        second = opened()
        assert second.append(events)[9:11] == [Receipt(10, True), Receipt(11, False)]
        assert verified(second).ok

    def test_batches_of_any_size_end_in_the_same_catalog(self, opened, tmp_path):
        events = some_events(60)
        whole = opened()
        whole.append(events)
        with closing(open_store(str(tmp_path / "other"))) as piecemeal:
            shuffled = random.Random(5).sample(events, len(events))
            for start in range(0, len(shuffled), 7):
                piecemeal.append(shuffled[start : start + 7])
            assert dump(piecemeal) == dump(whole)

    def test_a_small_cache_of_ids_gives_the_same_catalog(self, opened, tmp_path):
        events = some_events(60)
        forgetful = opened()
        forgetful._projection = Projection(remembered=2)
        for event in events:
            forgetful.append([event])
        with closing(open_store(str(tmp_path / "other"))) as other:
            other.append(events)
            assert dump(forgetful) == dump(other)


class TestTogether:
    def test_both_stores_hold_the_same_catalog(self, tmp_path, postgres_schema):
        with (
            closing(open_store(str(tmp_path))) as sqlite,
            closing(open_store(postgres_schema)) as postgres,
        ):
            for start in range(0, 80, 16):
                batch = [parsed(load(n)) for n in range(start, start + 16)]
                assert sqlite.append(batch) == postgres.append(batch)
            assert dump(sqlite) == dump(postgres)
            assert sqlite.state() == postgres.state()
            with sqlite.reader() as one, postgres.reader() as other:
                assert one.counts() == other.counts()
                assert list(one.changes.edges(0)) == list(other.changes.edges(0))
                assert list(one.changes.claims(0)) == list(other.changes.claims(0))
                assert list(one.changes.columns(0)) == list(other.changes.columns(0))
                assert list(one.changes.derivations(0)) == list(other.changes.derivations(0))

    def test_four_processes_write_at_once(self, location, opened, tmp_path):
        events = some_events(120)
        shares = [events[0:60], events[30:90], events[60:120], events[0:120:2]]
        with (  # the store does not exist yet: only one of them may create it
            another_process(location, shares[0]),
            another_process(location, shares[1]),
            another_process(location, shares[2]),
            another_process(location, shares[3]),
        ):
            pass
        shared = opened()
        assert verified(shared).ok
        assert sorted(logged(shared)) == sorted(event.raw for event in events)
        with closing(open_store(str(tmp_path / "alone"))) as alone:
            alone.append(events)
            assert dump(shared) == dump(alone)

    def test_a_forked_process_writes_through_the_store_it_inherited(self, opened):
        store, events = opened(), some_events(40)
        store.append(events[:10])
        store._write_lock.acquire()  # as if another thread were writing while the process forks
        forked = multiprocessing.get_context("fork").Process(
            target=store.append, args=(events[10:30],)
        )
        forked.start()
        store._write_lock.release()
        store.append(events[30:])
        forked.join(60)
        assert forked.exitcode == 0
        store.append(some_events(41)[40:])
        assert verified(store).ok
        assert len(logged(store)) == 41

    def test_ids_stay_dense_when_processes_take_turns(self, opened):
        one, other = opened(), opened()
        for number, event in enumerate(some_events(40)):
            (one, other)[number % 2].append([event])
        with one.reader() as reader:
            for ids in (
                reader.changes.edges(0),
                reader.changes.claims(0),
                reader.changes.columns(0),
            ):
                numbers = [row[0] for row in ids]
                assert numbers == list(range(1, len(numbers) + 1))

    def test_a_column_another_process_added_is_not_added_again(self, opened):
        one, other = opened(), opened()
        for number, store in enumerate((one, other, one, other)):
            fields = ["a", "b", "c", "d"][: number + 1]
            facets = {"schema": schema(*fields), "tags": {"n": number}}
            store.append([parsed(dataset_event("t", facets))])
        with one.reader() as reader:
            assert len(list(reader.changes.columns(0))) == 4


class TestBeingKilled:
    ACKNOWLEDGING = """
import sys
from downriver.openlineage import parse_event
from downriver.store import open_store
store = open_store(sys.argv[1])
for line in sys.stdin.buffer:
    store.append([parse_event(line)])
    print(parse_event(line).ref.digest.hex(), flush=True)
"""

    def killed(self, location: str, events: list[Event], after: int) -> list[bytes]:
        """Write from another process, kill it in the middle; return what it acknowledged."""
        with subprocess.Popen(
            [sys.executable, "-c", self.ACKNOWLEDGING, location],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            process.stdin.write(b"".join(event.raw + b"\n" for event in events))
            process.stdin.flush()
            lines = [process.stdout.readline() for _ in range(after)]
            process.kill()
            lines += process.stdout.readlines()
            process.stdin.close()
        return [bytes.fromhex(line.decode()) for line in lines if line.endswith(b"\n")]

    def test_what_was_acknowledged_is_there(self, location, opened, tmp_path):
        events = some_events(60)  # few enough for the buffer of a pipe
        acknowledged = [
            digest
            for after in (1, 8, 20)
            for digest in self.killed(location, random.Random(after).sample(events, 60), after)
        ]
        store = opened()
        assert verified(store).ok
        with store.reader() as reader:
            assert all(reader.log.find_event(digest) for digest in acknowledged)
        stored = [parse_event(raw) for raw in logged(store)]
        with closing(open_store(str(tmp_path / "alone"))) as alone:
            alone.append(stored)
            assert dump(store) == dump(alone)


class TestSeeingEachOther:
    def test_another_process_is_seen_through_state_and_reader(self, location, store):
        assert store.state() == StoreState(1, 0)
        with another_process(location, some_events(5)):
            pass
        assert eventually(lambda: store.state() == StoreState(1, 5))
        with store.reader() as reader:
            assert reader.counts().events == 5

    def test_a_process_reads_its_own_writes_at_once(self, store):
        for number, event in enumerate(some_events(30), start=1):
            store.append([event])
            assert store.state() == StoreState(1, number)

    def test_another_store_in_this_process_is_seen(self, opened):
        writing, watching = opened(), opened()
        watching.state()
        for number, event in enumerate(some_events(5), start=1):
            writing.append([event])
            assert eventually(lambda number=number: watching.state().seq == number)

    def test_a_reader_sees_one_moment(self, opened):
        reading, writing = opened(), opened()
        writing.append(some_events(3))
        with reading.reader() as reader:
            before = reader.counts(), reader.state()
            writing.append(some_events(9))
            assert (reader.counts(), reader.state()) == before
        with reading.reader() as reader:
            assert reader.counts().events == 9

    def test_a_reader_within_a_reader_is_the_same_view(self, opened):
        reading, writing = opened(), opened()
        with reading.reader() as outer:
            outer.state()
            writing.append(some_events(3))
            with reading.reader() as inner:
                assert inner.state() == outer.state() == StoreState(1, 0)
            assert outer.counts().events == 0
        with reading.reader() as reader:
            assert reader.counts().events == 3

    def test_queries_may_run_while_a_scan_is_under_way(self, store):
        events = some_events(10)
        store.append(events)
        with store.reader() as reader:
            found = [reader.log.find_event(entry.digest) for entry in reader.log.entries()]
            assert found == [event.raw for event in events]
            scans = zip(reader.log.entries(), reader.changes.columns(0), strict=False)
            assert [entry.seq for entry, _ in scans] == list(range(1, 11))

    def test_an_abandoned_scan_does_not_affect_other_readers(self, store):
        store.append(some_events(10))
        for _ in range(3):
            with store.reader() as reader:
                assert next(reader.log.entries()).seq == 1
                assert next(reader.changes.columns(0))[0] == 1
        store.append(some_events(11))

    def test_a_reader_is_over_when_its_block_is(self, store):
        store.append(some_events(5))
        with store.reader() as reader:
            reader.counts()
        for use in (reader.counts, lambda: list(reader.log.entries())):
            with pytest.raises(StoreError, match="inside its `with`"):
                use()

    def test_many_threads_read_while_one_writes(self, store):
        events = some_events(40)
        seen: list[int] = []

        def read() -> None:
            last = 0
            while last < len(events):
                with store.reader() as reader:
                    counted, state = reader.counts().events, reader.state().seq
                assert counted == state >= last
                last = counted
            seen.append(last)

        readers = [threading.Thread(target=read) for _ in range(12)]
        for reader in readers:
            reader.start()
        for event in events:
            store.append([event])
        for reader in readers:
            reader.join(PATIENCE)
        assert seen == [len(events)] * len(readers)

    def test_an_error_inside_a_reader_stays_what_it_is(self, store):
        with pytest.raises(FileNotFoundError), store.reader():
            open("/no/such/file")  # noqa: SIM115
        with store.reader() as reader:
            assert reader.counts().events == 0


def _last_fold() -> int:
    """Return the newest migration after which the log is folded again."""
    return max(m.number for m in list_migrations("sqlite") if "SET projected = 0" in m.sql)


class TestRebuilding:
    def test_a_rebuild_ends_in_the_identical_catalog_and_another_generation(self, store):
        store.append(some_events(50))
        before, state = dump(store), store.state()
        steps: list[tuple[int, int]] = []
        assert store.rebuild(lambda done, total: steps.append((done, total))) == 50
        assert dump(store) == before
        assert store.state() == StoreState(state.generation + 1, 50)
        assert steps[-1] == (50, 50)

    @pytest.mark.parametrize("version", range(1, _last_fold()))
    def test_a_store_of_an_older_version_is_folded_again(
        self, version, location, opened, tmp_path, monkeypatch, caplog
    ):
        monkeypatch.setattr("downriver.store.sql_store._LOG_EVERY", 0)
        with closing(open_store(str(tmp_path / "of today"))) as today:
            today.append(some_events(30))
            catalog = dump(today)
            with today.reader() as reader:
                entries = list(reader.log.entries())
        with monkeypatch.context() as then:
            then.setattr(sql_store, "list_migrations", lambda name: list_migrations(name)[:version])
            opened().close()
        insert = "INSERT INTO log (seq, digest, received_at, chain, body) VALUES (?, ?, ?, ?, ?)"
        if location.startswith("postgresql://"):
            insert = insert.replace("?", "%s")
        with connected(location) as connection:
            for entry in entries:
                connection.execute(insert, msgspec.structs.astuple(entry))
            connection.execute("UPDATE meta SET projected = 30")
        again = opened()
        assert "30 of 30 events done" in caplog.text
        assert dump(again) == catalog
        assert verified(again).ok
        again.append(some_events(31))
        with again.reader() as reader:
            assert reader.counts().events == 31

    def test_an_up_to_date_catalog_is_not_folded_again(self, opened, monkeypatch):
        before = opened().append(some_events(3)) and opened().state()
        monkeypatch.setattr(
            "downriver.store.catalog.reader.CatalogReader.is_behind", lambda reader: True
        )
        assert opened().state() == before

    def test_a_rebuild_repairs_a_damaged_catalog(self, location, store):
        store.append(some_events(30))
        before = dump(store)
        for table in ("derivations", "claims", "edges", "column_sets"):
            tamper(location, f"DELETE FROM {table}")
        assert dump(store) != before
        store.rebuild(lambda done, total: None)
        assert dump(store) == before

    def test_an_empty_log_is_rebuilt_to_nothing(self, store):
        assert store.rebuild(lambda done, total: None) == 0
        assert store.state() == StoreState(2, 0)

    def test_another_open_store_survives_it(self, opened, tmp_path):
        events = some_events(60)
        one, other = opened(), opened()
        one.append(events[:20])
        other.append(events[20:40])  # it has cached ids that the rebuild gives to other rows
        one.append(events[40:45])
        one.rebuild(lambda done, total: None)
        assert eventually(lambda: other.state() == one.state())
        other.append(events[45:])
        with closing(open_store(str(tmp_path / "alone"))) as alone:
            alone.append(events)
            assert dump(other) == dump(one) == dump(alone)

    def test_another_open_store_forgets_the_ids_a_rebuild_gave_to_other_rows(self, opened):
        def derived(name: str, at: str) -> Event:
            facet = column_lineage({"x": [source("a", "p")]})
            return parsed(run_event(at=at, outputs=[dataset(name, {"columnLineage": facet})]))

        one, other = opened(), opened()
        other.append([derived("b", "2026-01-01T00:00:00Z")])
        other.append([parsed(dataset_event("c", {"schema": schema("k")}))])
        # Now in one batch, in which the columns of schemas come first.
        one.rebuild(lambda done, total: None)
        other.append([derived("d", "2026-01-02T00:00:00Z")])
        after = dump(other)
        other.rebuild(lambda done, total: None)
        assert dump(other) == after
        assert {row[3] for row in after["derives"]} == {"p"}

    def test_a_rebuild_that_is_interrupted_changes_nothing(self, store):
        store.append(some_events(30))
        before, state = dump(store), store.state()

        def interrupt(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.rebuild(interrupt)
        assert (dump(store), store.state()) == (before, state)
        store.append(some_events(31))
        assert verified(store).entries == 31

    def test_readers_see_the_old_catalog_until_the_new_one_is_whole(self, opened):
        rebuilding, reading = opened(), opened()
        rebuilding.append(some_events(30))
        before = dump(reading)
        during: list[dict] = []
        rebuilding.rebuild(lambda done, total: during.append(dump(reading)))
        assert during == [before]


class PoliteLock:
    """A lock whose first holder continues only after the next holder has released it, too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.taken = threading.Event()
        self.turns = 0

    def __enter__(self) -> None:
        self._lock.acquire()
        self.taken.set()

    def __exit__(self, *failure: object) -> None:
        self.turns += 1
        first = self.turns == 1
        self._lock.release()
        assert not first or eventually(lambda: self.turns == 2)


class TestFailing:
    def test_a_failed_append_leaves_no_trace(self, store):
        store.append(some_events(5))
        before, state = dump(store), store.state()
        with pytest.raises(UnicodeEncodeError):
            store.append([parsed(load(50)), unstorable(), parsed(load(51))])
        assert (dump(store), store.state(), len(logged(store))) == (before, state, 5)

    def test_events_of_a_failed_append_can_be_stored_later(self, store, tmp_path):
        events = some_events(20)
        with pytest.raises(UnicodeEncodeError):
            store.append([*events, unstorable()])
        store.append(events)
        with closing(open_store(str(tmp_path / "clean"))) as clean:
            clean.append(events)
            assert dump(store) == dump(clean)
        assert verified(store).ok

    def test_a_failed_write_does_not_affect_the_next_write_of_another_thread(self, store, tmp_path):
        events = some_events(20)
        store._write_lock = lock = PoliteLock()

        def fail() -> None:
            with pytest.raises(UnicodeEncodeError):
                store.append([*events, unstorable()])

        failing = threading.Thread(target=fail)
        failing.start()
        assert lock.taken.wait(PATIENCE)
        store.append(events)
        failing.join()
        assert lock.turns == 2
        with closing(open_store(str(tmp_path / "clean"))) as clean:
            clean.append(events)
            assert dump(store) == dump(clean)

    def test_a_closed_store_raises_an_error(self, opened):
        store = opened()
        store.append(some_events(1))
        store.close()
        store.close()
        for use in (store.state, lambda: store.append(some_events(2)), lambda: dump(store)):
            with pytest.raises(StoreError, match="closed"):
                use()


def connected(location: str) -> closing:
    if location.startswith("postgresql://"):
        return closing(psycopg.connect(location, autocommit=True))
    return closing(sqlite3.connect(location, isolation_level=None))


def tamper(location: str, *statements: str) -> None:
    """Change the database as no store does."""
    triggers = ("log_is_append_only_update", "log_is_append_only_delete")
    unguarded = [f"DROP TRIGGER IF EXISTS {trigger}" for trigger in triggers]
    if location.startswith("postgresql://"):
        unguarded = ["ALTER TABLE log DISABLE TRIGGER ALL"]
    with connected(location) as connection:
        for statement in (*unguarded, *statements):
            connection.execute(statement)


class TestLog:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE log SET received_at = 0",
            "UPDATE log SET body = digest WHERE seq = 2",
            "DELETE FROM log",
            "DELETE FROM log WHERE seq = 3",
        ],
    )
    def test_the_log_refuses_to_be_changed(self, location, store, statement):
        store.append(some_events(3))
        before = logged(store)
        refused = (psycopg.errors.RaiseException, sqlite3.IntegrityError)
        with pytest.raises(refused, match="append-only"), connected(location) as connection:
            connection.execute(statement)
        assert logged(store) == before

    def test_an_untouched_log_verifies(self, store):
        store.append(some_events(7))
        result = verified(store)
        assert (result.ok, result.entries, result.altered_seq) == (True, 7, None)

    def test_an_empty_log_verifies(self, store):
        assert verified(store).ok

    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            ("UPDATE log SET body = (SELECT body FROM log WHERE seq = 1) WHERE seq = 3", "body"),
            ("UPDATE log SET body = digest WHERE seq = 3", "body"),
            ("UPDATE log SET digest = chain WHERE seq = 3", "body"),
            ("UPDATE log SET received_at = received_at + 1 WHERE seq = 3", "does not match"),
            ("UPDATE log SET chain = digest WHERE seq = 3", "does not match"),
            ("DELETE FROM log WHERE seq = 3", "is missing"),
        ],
        ids=["other body", "damaged body", "digest", "received_at", "chain", "deleted"],
    )
    def test_the_first_altered_entry_is_named(self, location, store, statement, reason):
        store.append(some_events(6))
        tamper(location, statement)
        result = verified(store)
        assert (result.ok, result.altered_seq) == (False, 3)
        assert reason in result.reason

    def test_two_entries_swapped_are_named(self, location, store):
        store.append(some_events(6))
        tamper(
            location,
            "UPDATE log SET seq = -3 WHERE seq = 3",
            "UPDATE log SET seq = 3 WHERE seq = 4",
            "UPDATE log SET seq = 4 WHERE seq = -3",
        )
        assert verified(store).altered_seq == 3

    def test_a_checkpoint_detects_a_log_that_was_cut(self, location, store):
        store.append(some_events(6))
        head = bytes.fromhex(verified(store).head)
        assert verified(store, expected=(6, head)).ok
        tamper(location, "DELETE FROM log WHERE seq > 4")
        assert verified(store).ok
        result = verified(store, expected=(6, head))
        assert (result.ok, result.altered_seq) == (False, 5)
        assert "truncated" in result.reason

    def test_nothing_is_appended_to_a_log_that_was_cut(self, location, store):
        store.append(some_events(6))
        tamper(location, "DELETE FROM log WHERE seq > 4")
        for use in (
            lambda: store.append(some_events(8)),
            lambda: store.rebuild(lambda done, total: None),
            store.check,
        ):
            with pytest.raises(StoreError, match=r"ends at entry 4.*made from 6.*audit verify"):
                use()
        assert len(logged(store)) == 4

    def test_a_cut_log_is_seen_although_the_catalog_was_set_back(self, location, store):
        store.append(some_events(6))
        tamper(location, "DELETE FROM log WHERE seq > 4", "UPDATE meta SET projected = 4")
        with pytest.raises(StoreError, match="ends at entry 4"):
            store.append(some_events(8))

    def test_a_checkpoint_detects_a_rewritten_log(self, store, tmp_path):
        store.append(some_events(6))
        head = bytes.fromhex(verified(store).head)
        with closing(open_store(str(tmp_path / "forged"))) as forged:
            forged.append(some_events(7)[1:])
            assert verified(forged).ok
            result = verified(forged, expected=(6, head))
        assert (result.ok, result.altered_seq) == (False, 6)

    def test_a_damaged_entry_is_not_folded_into_a_rebuilt_catalog(self, location, store):
        store.append([parsed(run_event(inputs=[dataset("a", {"schema": schema(*"abc" * 99)})]))])
        tamper(location, damage_to_body(location))
        with pytest.raises(StoreError, match="log entry 1 cannot be read"):
            store.rebuild(lambda done, total: None)


def damage_to_body(location: str) -> str:
    if location.startswith("postgresql://"):
        return "UPDATE log SET body = substr(body, 1, 50)"
    return "UPDATE log SET body = CAST(substr(body, 1, 50) AS BLOB)"


class HeldStore:
    """A store whose writes wait until they are released."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.batches: list[int] = []
        self.reached = threading.Event()
        self.let_go = threading.Event()

    def hold(self) -> None:
        self.reached.clear()
        self.let_go.clear()

    def prepare(self, event: Event) -> PreparedEvent:
        return self._store.prepare(event)

    def write(self, events: list[PreparedEvent]) -> list[Receipt]:
        self.batches.append(len(events))
        self.reached.set()
        assert self.let_go.wait(PATIENCE)
        return self._store.write(events)

    def reader(self):
        return self._store.reader()


class DeadStore:
    """A store that can neither be written nor read."""

    def __init__(self, failure: StoreError) -> None:
        self.failure = failure
        self.attempts = 0
        self.let_go = threading.Event()

    def prepare(self, event: Event) -> PreparedEvent:
        return PreparedEvent(event, fold(event), event.raw)

    def write(self, events: list[PreparedEvent]) -> list[Receipt]:
        assert self.let_go.wait(PATIENCE)
        self.attempts += 1
        raise self.failure

    def reader(self):
        raise self.failure


@contextmanager
def committing(store, capacity: int = 10**9) -> Iterator[GroupCommit]:
    group = GroupCommit(store, capacity)
    try:
        yield group
    finally:
        group.close()


def results(futures: list[Future[Receipt]]) -> list[Receipt]:
    return [future.result(PATIENCE) for future in futures]


@pytest.fixture
def long_waits(monkeypatch) -> None:
    """Writes seem so long, and events so rare, that no time limit ends a wait."""
    clock = chain([0.0, 0.0], repeat(100 * PATIENCE))
    monkeypatch.setattr(group_commit, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(group_commit, "_LULL", 100 * PATIENCE)


class TestGroupCommit:
    def test_a_future_resolves_when_others_can_see_its_event_and_not_before(self, opened):
        store, elsewhere = opened(), opened()
        events = some_events(60)
        unseen: list[Event] = []

        def check(event: Event) -> Callable[[Future[Receipt]], None]:
            def resolved(_: Future[Receipt]) -> None:
                with elsewhere.reader() as reader:
                    if reader.log.find_event(event.ref.digest) is None:
                        unseen.append(event)

            return resolved

        with committing(store) as group:
            for event in events:
                [future] = group.submit([event])
                future.add_done_callback(check(event))
        assert unseen == []
        assert len(logged(elsewhere)) == 60

    def test_waiting_events_are_written_in_one_batch_in_order(self, store):
        held = HeldStore(store)
        events = some_events(20)
        with committing(held) as group:
            futures = group.submit(events[:1])
            held.reached.wait(PATIENCE)
            for event in events[1:]:
                futures += group.submit([event])
            held.let_go.set()
            assert [receipt.seq for receipt in results(futures)] == list(range(1, 21))
        assert held.batches == [1, 19]

    def test_a_batch_waits_for_a_client_that_was_just_answered(self, store, long_waits):
        held = HeldStore(store)
        events = some_events(4)
        with committing(held) as group:
            first = group.submit(events[:1])
            held.reached.wait(PATIENCE)
            others = group.submit(events[1:3])
            held.let_go.set()
            results(first)
            results([*others, *group.submit(events[3:])])
        assert held.batches == [1, 3]

    def test_a_full_batch_is_committed_without_waiting(self, store, long_waits, monkeypatch):
        held = HeldStore(store)
        events = some_events(3)
        monkeypatch.setattr(group_commit, "_LARGEST_BATCH_BYTES", 1)
        with committing(held) as group:
            first = group.submit(events[:1])
            held.reached.wait(PATIENCE)
            others = group.submit(events[1:])
            held.let_go.set()
            results([*first, *others])
        assert held.batches == [1, 1, 1]

    def test_a_single_writer_does_not_wait(self, store, long_waits):
        with committing(store) as group:
            for event in some_events(3):
                results(group.submit([event]))

    def test_the_wait_for_a_client_that_sends_no_further_event_is_short(self, store):
        held = HeldStore(store)
        events = some_events(21)
        with committing(held) as group:
            futures = group.submit(events[:1])
            held.reached.wait(PATIENCE)
            futures += group.submit(events[1:20])
            held.let_go.set()
            results(futures)
            results(group.submit(events[20:]))
        assert held.batches == [1, 19, 1]

    def test_a_full_queue_rejects_new_events_and_keeps_accepted_ones(self, store):
        held = HeldStore(store)
        events = some_events(10)
        with committing(held, capacity=3 * len(events[1].raw)) as group:
            futures = group.submit(events[:1])
            held.reached.wait(PATIENCE)
            futures += group.submit(events[1:3])
            with pytest.raises(StoreBusyError) as refused:
                group.submit(events[3:])
            assert refused.value.retriable
            assert group.waiting == 2
            assert "2 events are waiting" in refused.value.message
            held.let_go.set()
            results(futures)
            held.hold()
            futures = group.submit(events[3:4])
            held.reached.wait(PATIENCE)
            futures += group.submit(events[4:5])  # there is room again
            futures += group.submit(events[5:6])
            held.let_go.set()
            assert [receipt.seq for receipt in results(futures)] == [4, 5, 6]

    def test_an_event_larger_than_the_capacity_is_accepted_by_an_empty_queue(self, store):
        with committing(store, capacity=10) as group:
            assert results(group.submit(some_events(1))) == [Receipt(1, duplicate=False)]

    def test_closing_writes_accepted_events_and_rejects_new_ones(self, store):
        group = GroupCommit(store, 10**9)
        futures = [future for event in some_events(50) for future in group.submit([event])]
        group.close()
        assert all(future.done() for future in futures)
        assert len(logged(store)) == 50
        with pytest.raises(StoreError, match="closing"):
            group.submit(some_events(1))

    def test_one_bad_event_does_not_affect_the_others(self, store):
        held = HeldStore(store)
        good = some_events(6)
        with committing(held) as group:
            first = group.submit(good[:1])
            held.reached.wait(PATIENCE)
            before, bad, after = (
                group.submit(good[1:3]),
                group.submit([unstorable()]),
                group.submit(good[3:]),
            )
            held.let_go.set()
            receipts = results([*first, *before, *after])
            assert [receipt.seq for receipt in receipts] == [1, 2, 3, 4, 5, 6]
            with pytest.raises(UnicodeEncodeError):
                results(bad)
            assert results(group.submit([parsed(load(77))]))[0].seq == 7
        assert verified(store).ok

    @pytest.mark.parametrize("failure", [StoreError("gone"), StoreBusyError(1)])
    def test_an_unreachable_store_is_not_tried_for_every_event(self, failure):
        dead = DeadStore(failure)
        with committing(dead) as group:
            futures = [f for event in some_events(50) for f in group.submit([event])]
            dead.let_go.set()
            for future in futures:
                assert future.exception(PATIENCE) is failure
        assert dead.attempts <= 2  # the first may have been alone

    def test_a_submitted_event_cannot_be_cancelled(self, store):
        held = HeldStore(store)
        events = some_events(4)
        with committing(held) as group:
            futures = group.submit(events[:3])
            assert not futures[1].cancel()  # what was queued is written
            held.let_go.set()
            assert len(results(futures)) == 3
            assert results(group.submit(events[3:]))[0].seq == 4


class TestNames:
    NAMES = (
        "plain",
        "",
        " ",
        "with space",
        "quote'\"`",
        "back\\slash",
        "per%cent %s ? $1 :x {y}",
        "'; DROP TABLE log; --",
        "tab\tnew\nline",
        "größe",
        "GRÖSSE",
        "データ",
        "🦆👩‍👩‍👧",
        "שלום עולם",
        "\u202egnp.xe",
        "e\u0301",
        "é",
        "nul\0nul",
        "low\udc00",
        "high\ud800",
        "x" * 4096,
        "x" * 4095 + "y",
        "ΐ" * 500,
        "🦆" * 1024,
        "".join(map(chr, random.Random(5).choices(range(0x4E00, 0x9FFF), k=2000))),
    )

    def event(self, name: str) -> Event:
        lineage = column_lineage({name: [source(f"in {name}", name)]})
        event = run_event(
            job_name=name or "job",
            run=name or "run",
            inputs=[dataset(f"in {name}", {"schema": schema(name), name: {"a": name}})],
            outputs=[
                dataset(name, {"columnLineage": lineage}),
                dataset(name, namespace=f"in {name}"),
            ],
        )
        return parse_event(ascii_json(event))

    def test_any_name_is_stored_and_found(self, store):
        for name in self.NAMES:
            store.append([self.event(name)])
            with store.reader() as reader:
                node = reader.nodes.find(DatasetId(DATABASE, name))
                assert node is not None, name
                assert reader.nodes.find(JobId(JOBS, name or "job")) is not None, name
                assert node in reader.nodes.named(name), name
                origin = reader.nodes.find(DatasetId(DATABASE, f"in {name}"))
                if name:
                    assert reader.columns.find(origin, name) is not None, name

    def test_names_that_differ_are_different(self, store):
        store.append([self.event(name) for name in self.NAMES])
        with store.reader() as reader:
            found = [reader.nodes.find(DatasetId(DATABASE, name)) for name in self.NAMES]
        assert len(set(found)) == len(self.NAMES)

    def test_both_stores_hold_the_same_names(self, tmp_path, postgres_schema):
        with (
            closing(open_store(str(tmp_path))) as sqlite,
            closing(open_store(postgres_schema)) as postgres,
        ):
            for store in (sqlite, postgres):
                store.append([self.event(name) for name in self.NAMES])
            assert dump(sqlite) == dump(postgres)


def ascii_json(event: Json) -> bytes:
    """Return JSON in which everything beyond ASCII is escaped, lone surrogates too."""
    return json.dumps(event, ensure_ascii=True).encode()


class TestFacets:
    def facets(self, reader: CatalogReader, name: str) -> dict[str, bytes]:
        return reader.facets.of(reader.nodes.find(DatasetId(DATABASE, name)))

    def test_unknown_facets_come_back_byte_for_byte(self, store):
        small = b'{ "a" :1.0,"b":[ ] }'
        large = b'{"text": "' + b"long and dull " * 500 + b'" ,"n": 1e5}'
        event = encode(dataset_event("a", {"acme_small": "SMALL", "acme_large": "LARGE"}))
        raw = event.replace(b'"SMALL"', small).replace(b'"LARGE"', large)
        store.append([parse_event(raw)])
        with store.reader() as reader:
            assert self.facets(reader, "a") == {"acme_small": small, "acme_large": large}

    def test_the_newest_version_of_a_facet_is_current_in_any_order_of_arrival(self, store):
        days = [
            dataset_event("a", {"tags": {"day": day}}, at=f"2026-01-0{day}T00:00:00Z")
            for day in (2, 3, 1)
        ]
        store.append([parsed(event) for event in days])
        with store.reader() as reader:
            assert self.facets(reader, "a") == {"tags": b'{"day": 3}'}

    def test_a_deleted_facet_is_gone_until_it_is_sent_again(self, store):
        def at(day: int, facet: Json) -> Event:
            return parsed(dataset_event("a", {"tags": facet}, at=f"2026-01-0{day}T00:00:00Z"))

        store.append([at(1, {"x": 1}), at(2, {"_deleted": True})])
        with store.reader() as reader:
            assert self.facets(reader, "a") == {}
        store.append([at(3, {"x": 1})])
        with store.reader() as reader:
            assert self.facets(reader, "a") == {"tags": b'{"x": 1}'}

    def test_a_facet_is_found_on_every_node_that_has_it_now(self, store):
        def at(day: int, name: str, facet: Json) -> Event:
            return parsed(dataset_event(name, {"acme": facet}, at=f"2026-01-0{day}T00:00:00Z"))

        store.append([at(2, "a", {"n": 2}), at(1, "a", {"n": 1}), at(1, "b", {"n": 3})])
        store.append([at(2, "b", {"_deleted": True}), parsed(job_event("j", facets={"acme": {}}))])
        with store.reader() as reader:
            found = reader.facets.named("acme")
            names = {node.name: found[n] for n, node in reader.nodes.by_ids(found).items()}
        assert names == {"a": b'{"n": 2}', "j": b"{}"}

    def test_the_schema_is_the_current_one_and_old_columns_stay_known(self, store):
        store.append(
            [
                parsed(dataset_event("a", {"schema": schema("x", "y")}, at="2026-01-01T00:00:00Z")),
                parsed(dataset_event("a", {"schema": schema("z", "y")}, at="2026-01-02T00:00:00Z")),
            ]
        )
        with store.reader() as reader:
            node = reader.nodes.find(DatasetId(DATABASE, "a"))
            assert [column.path for column in reader.facets.schema(node)] == ["z", "y"]
            assert reader.columns.list_names(node) == ["x", "y", "z"]

    def test_a_runs_own_facets_are_not_the_datasets(self, store):
        event = run_event(outputs=[dataset("a", outputFacets={"outputStatistics": {"size": 5}})])
        store.append([parsed(event)])
        with store.reader() as reader:
            assert self.facets(reader, "a") == {}


class TestRuns:
    def test_a_late_start_does_not_revert_a_completed_run(self, store):
        store.append([parsed(run_event(state="COMPLETE", at="2026-01-01T10:00:00Z"))])
        store.append([parsed(run_event(state="START", at="2026-01-01T11:00:00Z"))])
        store.append([parsed(run_event(state="START", at="2026-01-01T09:00:00Z"))])
        store.append([parsed(run_event(state="RUNNING", at="2026-01-01T12:00:00Z"))])
        with store.reader() as reader:
            [run] = reader.runs.latest(reader.nodes.find(JobId(JOBS, "load")), 10)
        assert run.state is RunState.COMPLETE
        assert run.started_at < run.ended_at

    def test_missing_inputs_erase_nothing(self, store):
        store.append([parsed(run_event(state="START", inputs=[dataset("a")]))])
        store.append([parsed(run_event(state="COMPLETE", inputs=[], outputs=[dataset("b")]))])
        store.append([parsed(run_event(run="2", at="2026-02-01T00:00:00Z"))])
        with store.reader() as reader:
            assert len(list(reader.changes.edges(0))) == 2

    def test_a_declared_job_has_no_runs(self, store):
        store.append([parsed(job_event("load", inputs=[dataset("a")]))])
        with store.reader() as reader:
            assert reader.runs.latest(reader.nodes.find(JobId(JOBS, "load")), 10) == []


class TestChanges:
    """The changes that keep an index up to date: everything touched after a log entry."""

    def test_edges_and_claims_are_marked_with_the_batch_that_touched_them(self, store):
        store.append(some_events(10))
        with store.reader() as reader:
            known = reader.state().seq
            assert list(reader.changes.edges(known)) == list(reader.changes.claims(known)) == []
            everything = len(list(reader.changes.edges(0)))
        store.append([parsed(load(0) | {"eventTime": "2027-01-01T00:00:00Z"})])
        with store.reader() as reader:
            touched = list(reader.changes.edges(known))
            assert 0 < len(touched) < everything
            assert {row[6] for row in touched} == {parsed(run_event(at="2027-01-01")).ref.at}

    @pytest.mark.parametrize("limit", ["CHANGES_KEPT", "_MOST_TOUCHED"])
    def test_a_reader_far_behind_reads_all_changes(self, store, monkeypatch, limit):
        monkeypatch.setattr(f"downriver.store.catalog.reader.{limit}", 3)
        for event in some_events(20):
            store.append([event])
        with store.reader() as reader:
            assert list(reader.changes.edges(2)) == list(reader.changes.edges(0))
            assert len(list(reader.changes.claims(2))) == len(list(reader.changes.claims(0)))

    def test_old_changes_are_dropped(self, location, store, monkeypatch):
        monkeypatch.setattr("downriver.store.catalog.tables.CHANGES_KEPT", 100)
        for event in some_events(150):
            store.append([event])
        with connected(location) as connection:
            [[oldest, kept]] = connection.execute("SELECT min(seq), count(*) FROM changes")
        assert (oldest, kept) == (50, 101)

    def test_a_watcher_that_stores_its_position_misses_no_event(self, opened):
        stores = [opened() for _ in range(3)]
        events = some_events(60)
        seen: dict[int, tuple] = {}
        writers = [
            threading.Thread(
                target=lambda s, share: [s.append([e]) for e in share], args=(s, events[n::3])
            )
            for n, s in enumerate(stores)
        ]
        for writer in writers:
            writer.start()
        watching, after = opened(), 0
        while any(writer.is_alive() for writer in writers) or after < len(events):
            with watching.reader() as reader:
                seen.update((row[0], row) for row in reader.changes.edges(after))
                after = reader.state().seq
        with watching.reader() as reader:
            assert sorted(seen.values()) == list(reader.changes.edges(0))


class TestOpening:
    def test_a_store_written_by_a_newer_downriver_is_left_alone(self, location, opened):
        opened().append(some_events(2))
        if location.startswith("postgresql://"):
            tamper(location, "INSERT INTO downriver_migrations VALUES (999, '0999_future')")
        else:
            tamper(location, "PRAGMA user_version = 999")
        with pytest.raises(StoreVersionError) as refused:
            opened()
        assert refused.value.found == 999
        assert "upgrade" in str(refused.value)

    def test_opening_twice_migrates_once(self, opened):
        opened().append(some_events(2))
        assert len(logged(opened())) == 2

    def test_a_store_that_must_exist(self, tmp_path):
        with pytest.raises(StoreNotFoundError):
            open_store(str(tmp_path), create=False)
        assert list(tmp_path.iterdir()) == []
        open_store(str(tmp_path)).close()
        open_store(str(tmp_path), create=False).close()

    def test_a_file_that_is_no_database(self, tmp_path):
        path = tmp_path / "lineage.db"
        path.write_text("dear diary, " * 1000)
        with pytest.raises(StoreError, match="not a database") as refused:
            open_store(str(path))
        assert str(path) in str(refused.value)
        assert path.read_text().startswith("dear diary")

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(StoreError, match="file"):
            open_store(str(tmp_path / "file" / "store"))

    def test_a_folder_in_the_place_of_the_file(self, tmp_path):
        (tmp_path / "lineage.db").mkdir()
        with pytest.raises(StoreError, match="unable to open"):
            open_store(str(tmp_path / "lineage.db"))

    def test_a_location_of_another_kind_is_refused_and_its_password_not_shown(self):
        with pytest.raises(InvalidRequestError) as refused:
            open_store("mysql://user:s3cret@host/db")
        assert "mysql" in str(refused.value)
        assert "s3cret" not in str(refused.value)
