"""Properties of the PostgreSQL store only: its server, its connections and its URL."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors
from tests.openlineage import (
    DATABASE,
    JOBS,
    dataset,
    dataset_event,
    parsed,
    run_event,
    schema,
)

from downriver.errors import DownriverError, InvalidRequestError, StoreBusyError, StoreError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage import Event
from downriver.store import Store, StoreState, open_store, verify_chain
from downriver.store.postgres.arrays import encode_array, register_array_dumper

PATIENCE = 10.0


def some_events(count: int) -> list[Event]:
    facets = [{"schema": schema("a", f"b{n % 3}")} for n in range(count)]
    return [
        parsed(run_event(run=str(n), inputs=[dataset(f"t{n % 4}", facets[n])]))
        for n in range(count)
    ]


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def admin(postgres_database: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        yield connection


@pytest.fixture
def store(postgres_database: str) -> Iterator[Store]:
    with closing(open_store(postgres_database)) as store:
        yield store


def cut_connections(admin: psycopg.Connection, query: str = "%") -> None:
    """End the server's side of connections, as a restart or a firewall would."""
    admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND datname = current_database() AND query LIKE %s",
        (query,),
    )


class TestUrl:
    def test_the_password_is_never_shown(self, postgres_database):
        parts = urlsplit(postgres_database)
        url = parts._replace(netloc=f"postgres:s3cret@{parts.netloc.partition('@')[2]}").geturl()
        with closing(open_store(f"{url}?password=s3cret&application_name=x")) as store:
            assert store.url == f"{postgres_database}?application_name=x"

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://me:s3cret@127.0.0.1:1/db?connect_timeout=2",
            "postgresql://me:s3cret@no.such.host.invalid/db",
            "postgresql://127.0.0.1:1/db?user=me&password=s3cret",
            "postgresql://me:x@s3cret@127.0.0.1:1/db",
            "postgresql://me:s3cret/x@127.0.0.1:1/db",
            "postgresql://me:s3cret@127.0.0.1:port/db",
            "postgresql://me:s3cret@127.0.0.1:1/db?no_such_option=1",
            "postgresql://me:s3cret%zz@127.0.0.1:1/db",
            "postgresql://[s3cret",
        ],
    )
    def test_an_unreachable_server_is_reported_without_the_password(self, url):
        with pytest.raises(DownriverError) as refused:
            open_store(url)
        assert isinstance(refused.value, StoreError | InvalidRequestError)
        assert "s3cret" not in "".join(traceback.format_exception(refused.value))

    def test_a_refused_connection_names_the_server(self):
        with pytest.raises(StoreError, match=r"me@127.0.0.1:1/db: .*refused"):
            open_store("postgresql://me:s3cret@127.0.0.1:1/db")

    def test_a_database_that_is_not_there(self, postgres_url):
        url = urlsplit(postgres_url)._replace(path="/nowhere").geturl()
        with pytest.raises(StoreError, match='"nowhere" does not exist'):
            open_store(url)

    def test_a_wrong_password_is_reported_and_not_shown(self, postgres_url):
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute("CREATE ROLE nologin_role PASSWORD 's3cret'")
        parts = urlsplit(postgres_url)
        host = parts.netloc.partition("@")[2]
        url = parts._replace(netloc=f"nologin_role:s3cret@{host}").geturl()
        with pytest.raises(StoreError, match="not permitted to log in") as refused:
            open_store(url)
        assert "s3cret" not in "".join(traceback.format_exception(refused.value))

    def test_a_database_that_cannot_hold_every_name_is_refused(self, postgres_url):
        with psycopg.connect(postgres_url, autocommit=True) as admin:
            admin.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0")
            with pytest.raises(StoreError, match="SQL_ASCII, not UTF8"):
                open_store(urlsplit(postgres_url)._replace(path="/ascii").geturl())
            admin.execute("DROP DATABASE ascii")


class TestServer:
    def test_what_is_acknowledged_is_on_disk_whatever_the_servers_default(self, admin, store):
        # Our test server runs with synchronous_commit off: only so can this fail.
        assert admin.execute("SHOW synchronous_commit").fetchone() == ("off",)
        with store._transaction("SELECT 1") as (tx, _):
            assert tx.rows("SHOW synchronous_commit") == [("on",)]

    def test_a_stronger_default_is_left_as_it_is(self, admin, postgres_database):
        admin.execute("ALTER ROLE CURRENT_USER SET synchronous_commit = remote_apply")
        try:
            with (
                closing(open_store(postgres_database)) as store,
                store._transaction("SELECT 1") as (tx, _),
            ):
                assert tx.rows("SHOW synchronous_commit") == [("remote_apply",)]
        finally:
            admin.execute("ALTER ROLE CURRENT_USER RESET synchronous_commit")

    @pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
    def test_writers_take_turns_whatever_the_servers_isolation(
        self, admin, postgres_database, isolation
    ):
        name = urlsplit(postgres_database).path.strip("/")
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_isolation = '{isolation}'")
        events = some_events(40)
        stores = [open_store(postgres_database) for _ in range(4)]
        failures: list[BaseException] = []

        def write(store: Store, share: list[Event]) -> None:
            try:
                for event in share:
                    store.append([event])
            except DownriverError as exc:
                failures.append(exc)

        threads = [
            threading.Thread(target=write, args=(store, events[n::4]))
            for n, store in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        with stores[0].reader() as reader:
            assert verify_chain(reader.log.entries()).entries == 40
        for store in stores:
            store.close()

    def test_everything_is_in_the_schema_the_url_names(self, admin, postgres_database):
        admin.execute("CREATE SCHEMA team")
        with closing(open_store(f"{postgres_database}?options=-csearch_path%3Dteam")) as team:
            team.append(some_events(3))
            with closing(open_store(postgres_database)) as public:
                assert public.state() == StoreState(1, 0)
        found = admin.execute(
            "SELECT DISTINCT table_schema, count(*) FROM information_schema.tables"
            " WHERE table_schema IN ('team', 'public') GROUP BY 1"
        ).fetchall()
        assert len({count for _, count in found}) == 1

    def test_a_store_in_a_schema_further_down_the_path_is_not_taken_for_ours(
        self, admin, postgres_database, store
    ):
        store.append(some_events(3))
        admin.execute("CREATE SCHEMA team")
        url = f"{postgres_database}?options=-csearch_path%3Dteam,public"
        with closing(open_store(url)) as team:
            assert team.state() == StoreState(1, 0)

    def test_a_store_that_is_up_to_date_opens_while_another_writes(self, postgres_database, store):
        with store._transaction("SELECT 1"), closing(open_store(postgres_database)) as other:
            assert other.state() == StoreState(1, 0)

    def test_too_many_connections_is_a_transient_error(self, admin, postgres_database):
        admin.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 0")
        parts = urlsplit(postgres_database)
        url = parts._replace(netloc=f"few@{parts.netloc.partition('@')[2]}").geturl()
        with pytest.raises(StoreBusyError) as refused:
            open_store(url)
        assert refused.value.retriable

    @pytest.mark.parametrize(
        "failure",
        [
            errors.LockNotAvailable,
            errors.DeadlockDetected,
            errors.SerializationFailure,
            errors.TooManyConnections,
        ],
    )
    def test_contention_is_a_transient_error(self, store, failure):
        with pytest.raises(StoreBusyError), store._transaction("SELECT 1"):
            raise failure

    def test_other_failures_are_not(self, store):
        with (
            pytest.raises(StoreError, match="disk full") as refused,
            store._transaction("SELECT 1"),
        ):
            raise errors.DiskFull("disk full")
        assert not refused.value.retriable

    def test_a_failure_on_the_server_raises_the_same_error_in_the_client(self, admin, store):
        # Statements go out in a pipeline: the first failure, not its echo in the next one.
        admin.execute("ALTER TABLE edges ADD CHECK (kind <> 1)")
        with pytest.raises(StoreError, match='violates check constraint "edges_kind_check"'):
            store.append(some_events(2))
        admin.execute("ALTER TABLE edges DROP CONSTRAINT edges_kind_check")
        assert [receipt.seq for receipt in store.append(some_events(2))] == [1, 2]

    def test_lists_have_the_order_they_have_in_sqlite_whatever_the_servers_language(
        self, postgres_url, tmp_path
    ):
        name = f"icu_{uuid4().hex}"
        names = ["b", "B", "a", "_a", "é", "e", "Z", "ß", "10", "9", "🦆", "a b", "a-b"]
        events = [parsed(run_event(run=name)) for name in names]
        events.append(parsed(dataset_event("t", {"schema": schema(*names)})))

        def lists(store: Store) -> tuple:
            store.append(events)
            with store.reader() as reader:
                table = reader.nodes.find(DatasetId(DATABASE, "t"))
                job = reader.nodes.find(JobId(JOBS, "load"))
                return reader.columns.list_names(table), [
                    run.run for run in reader.runs.latest(job, 100)
                ]

        with psycopg.connect(postgres_url, autocommit=True) as admin:
            try:
                admin.execute(
                    f"CREATE DATABASE {name} TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en'"
                )
            except psycopg.Error as exc:
                pytest.skip(f"this server knows no other language: {exc}")
            url = urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
            with closing(open_store(url)) as store, closing(open_store(str(tmp_path))) as sqlite:
                assert lists(store) == lists(sqlite)
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


class TestConnections:
    def test_connections_that_died_while_idle_are_replaced(self, admin, store):
        store.append(some_events(1))
        for count in (2, 3):
            with store.reader():
                pass
            cut_connections(admin)
            with store.reader() as reader:
                assert reader.counts().events == count - 1
            cut_connections(admin)
            store.append(some_events(count))
        assert eventually(lambda: store.state().seq == 3)

    def test_a_connection_that_dies_while_writing_leaves_nothing(self, admin, store):
        store.append(some_events(5))
        with pytest.raises(StoreError):
            store.rebuild(lambda done, total: cut_connections(admin))
        store.append(some_events(8))
        with store.reader() as reader:
            assert reader.counts().events == 8
            assert reader.counts().datasets == 4
            assert reader.state() == StoreState(1, 8)

    def test_a_lost_connection_while_reading_is_reported(self, admin, store):
        store.append(some_events(5))

        def read_on() -> None:
            with store.reader() as reader:
                entries = reader.log.entries()
                cut_connections(admin)
                list(entries)

        with pytest.raises(StoreError):
            read_on()
        with store.reader() as reader:
            assert reader.counts().events == 5

    def test_readers_share_a_few_connections(self, admin, store):
        def read() -> None:
            for _ in range(5):
                with store.reader() as reader:
                    reader.state()

        threads = [threading.Thread(target=read) for _ in range(24)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [[count]] = admin.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
        assert count <= 16 + 1  # and the writer, which migrated

    def test_closing_leaves_no_connection_and_no_thread(self, admin, postgres_database):
        store = open_store(postgres_database)
        store.append(some_events(3))
        assert eventually(lambda: store._listener.state() is not None)
        began = time.monotonic()
        store.close()
        assert time.monotonic() - began < 1
        assert "downriver-listener" not in {thread.name for thread in threading.enumerate()}
        assert eventually(
            lambda: (
                admin.execute(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchone()
                == (0,)
            )
        )


class TestListening:
    def listening(self, store: Store) -> Store:
        assert eventually(lambda: store._listener.state() is not None)
        return store

    def test_the_state_is_known_without_asking(self, admin, store):
        store.append(some_events(3))
        self.listening(store)
        admin.execute("ALTER TABLE meta RENAME TO hidden")  # any query fails
        assert {store.state() for _ in range(100)} == {StoreState(1, 3)}
        admin.execute("ALTER TABLE hidden RENAME TO meta")

    def test_events_of_another_store_are_seen_soon(self, postgres_database, store):
        self.listening(store)
        with closing(open_store(postgres_database)) as other:
            for number in range(1, 20):
                other.append(some_events(number))
                began = time.monotonic()
                assert eventually(lambda number=number: store.state().seq == number)
                assert time.monotonic() - began < 2  # long before its next regular query
            other.rebuild(lambda done, total: None)
            assert eventually(lambda: store.state() == StoreState(2, 19))

    def test_without_notifications_the_store_polls_and_then_listens_again(
        self, admin, postgres_database, store
    ):
        self.listening(store)
        cut_connections(admin, "SELECT generation%")
        assert eventually(lambda: store._listener.state() is None)
        with closing(open_store(postgres_database)) as other:
            other.append(some_events(4))
            assert store.state() == StoreState(1, 4)
            assert self.listening(store).state() == StoreState(1, 4)
            other.append(some_events(5))
            assert eventually(lambda: store.state() == StoreState(1, 5))

    def test_an_older_state_read_late_does_not_replace_a_newer_one(self, store):
        self.listening(store)
        for late in (StoreState(2, 5), StoreState(2, 4), StoreState(1, 9)):
            store._listener.note(late)
            assert store.state() == StoreState(2, 5)

    def test_the_state_never_goes_back(self, postgres_database, store):
        self.listening(store)
        seen: list[StoreState] = []
        done = threading.Event()

        def watch() -> None:
            while not done.wait(0.0005):
                seen.append(store.state())

        watcher = threading.Thread(target=watch)
        watcher.start()
        with closing(open_store(postgres_database)) as other:
            for number, event in enumerate(some_events(60)):
                (store, other)[number % 2].append([event])
        done.set()
        watcher.join()
        positions = [(state.generation, state.seq) for state in seen]
        assert positions == sorted(positions)


class TestArrays:
    @pytest.mark.parametrize(
        ("kind", "values"),
        [
            ("smallint", [0, 1, -1, 32767, -32768]),
            ("int", [0, 1, -1, 2**31 - 1, -(2**31)]),
            ("bigint", [0, 2**63 - 1, -(2**63)]),
            ("bigint", [1, None, -5, None]),
            ("text", ["", "a", "größe 🦆", "NULL", '{"x"}', "x" * 100_000]),
            ("bytea", [b"", b"\0\xff", b"\\x00", b"x" * 100_000]),
        ],
    )
    def test_what_is_sent_arrives(self, admin, kind, values):
        register_array_dumper(admin)
        sql = f"SELECT unnest(%b::{kind}[])"
        rows = admin.execute(sql, [encode_array(kind, values)]).fetchall()
        assert [row[0] for row in rows] == values
