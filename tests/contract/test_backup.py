"""A restored backup of a store in use gives the same answers as the store."""

from __future__ import annotations

import sqlite3
import stat
import threading
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import psycopg
import pytest
from tests.openlineage import column_lineage, dataset, encode, run_event, schema, source
from tests.unit.cli.command import downriver

from downriver.errors import InvalidRequestError, StoreError
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Return where an empty store of a kind may be made."""
    made: list[tuple[str, str]] = []

    def find(kind: str) -> str:
        if kind == "sqlite":
            return str(tmp_path / uuid4().hex)
        url = str(request.getfixturevalue("postgres_url"))
        name = f"test_{uuid4().hex}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        made.append((url, name))
        return f"{url}?options=-csearch_path%3D{name}"

    yield find
    for url, name in made:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def event(number: int) -> bytes:
    lineage = column_lineage({"c": [source(f"t{number % 7}", "c")]})
    return encode(
        run_event(
            job_name=f"job{number % 5}",
            run=f"run{number}",
            inputs=[dataset(f"t{number % 7}", {"schema": schema("c")})],
            outputs=[
                dataset(f"t{(number + 3) % 11}", {"schema": schema("c"), "columnLineage": lineage})
            ],
        )
    )


def fill(lineage: Lineage, events: int = 300) -> str:
    lineage.session.ingest([event(n) for n in range(events)])
    lineage.admin.create_key("old", "reader")
    lineage.admin.revoke_key("old")
    return lineage.admin.create_key("writer", "writer")


def answers(lineage: Lineage) -> bytes:
    """Return the answers of the store, without its name."""
    verified = lineage.admin.verify()
    assert verified.ok
    traces = [lineage.trace(f"t{n}", "upstream") for n in range(7)]
    counts = lineage.admin.status().counts
    kpis = msgspec.structs.replace(lineage.govern.kpis(), at="now")
    said = (traces, kpis, counts, verified, lineage.admin.list_keys())
    return msgspec.json.encode(said)


@pytest.mark.parametrize("source_kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("target_kind", ["sqlite", "postgres"])
def test_a_restored_store_answers_the_same(
    source_kind: str, target_kind: str, place: Callable[[str], str], tmp_path: Path
) -> None:
    file = tmp_path / "store.backup"
    with Lineage.open(place(source_kind)) as lineage:
        key = fill(lineage)
        expected = answers(lineage)
        written = lineage.admin.backup(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with Lineage.open(place(target_kind)) as restored:
        assert restored.admin.restore(file) == written
        assert answers(restored) == expected
        found = restored.admin.find_key(key)
        assert found is not None
        assert found.name == "writer"
        restored.session.ingest([event(1000)])  # the chain continues
        assert restored.admin.verify().ok


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_backup_during_writes_is_one_moment(
    kind: str, place: Callable[[str], str], tmp_path: Path
) -> None:
    stop = threading.Event()
    with Lineage.open(place(kind)) as lineage:
        lineage.session.ingest([event(n) for n in range(50)])

        def write() -> None:
            for number in count(100):
                if stop.is_set():
                    return
                lineage.session.ingest([event(number)])

        writer = threading.Thread(target=write)
        writer.start()
        try:
            written = [lineage.admin.backup(tmp_path / f"{n}.backup") for n in range(3)]
        finally:
            stop.set()
            writer.join()
    for number, expected in enumerate(written):
        with Lineage.open(place("sqlite")) as restored:
            assert restored.admin.restore(tmp_path / f"{number}.backup") == expected
            assert restored.admin.status().counts.events == expected.entries >= 50


def test_findings_are_restored(place: Callable[[str], str], tmp_path: Path) -> None:
    store = place("sqlite")
    with Lineage.open(store) as lineage:
        fill(lineage, 20)
        with lineage.store.ledger() as ledger:
            ledger.keep("rounds", b"7")
        lineage.admin.backup(tmp_path / "x")
    other = place("postgres")
    with Lineage.open(other) as restored:
        restored.admin.restore(tmp_path / "x")
        with restored.store.reader() as reader:
            assert list(reader.rows_of("watch_state", ("name", "body"))) == [("rounds", b"7")]


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_store_with_content_is_not_overwritten(
    kind: str, place: Callable[[str], str], tmp_path: Path
) -> None:
    with Lineage.open(place(kind)) as lineage:
        fill(lineage, 20)
        lineage.admin.backup(tmp_path / "x")
        with pytest.raises(InvalidRequestError, match="is not empty"):
            lineage.admin.restore(tmp_path / "x")
        assert lineage.admin.status().counts.events == 20


def test_a_damaged_backup_restores_nothing(place: Callable[[str], str], tmp_path: Path) -> None:
    file = tmp_path / "x"
    with Lineage.open(place("sqlite")) as lineage:
        fill(lineage, 50)
        lineage.admin.backup(file)
    whole = file.read_bytes()
    damaged = [
        whole[:-1],
        whole[: len(whole) // 2],
        b"",
        b"hello",
        whole[:40] + b"\x00" + whole[41:],
    ]
    for content in damaged:
        file.write_bytes(content)
        with Lineage.open(place("sqlite")) as restored:
            with pytest.raises(InvalidRequestError):
                restored.admin.restore(file)
            assert restored.admin.status().counts.events == 0
            assert restored.admin.list_keys() == []


def test_an_altered_log_is_not_backed_up(place: Callable[[str], str], tmp_path: Path) -> None:
    store = place("sqlite")
    with Lineage.open(store) as lineage:
        fill(lineage, 20)
    with sqlite3.connect(f"{store}/lineage.db") as connection:
        connection.execute("DROP TRIGGER log_is_append_only_update")
        connection.execute("UPDATE log SET received_at = received_at + 1 WHERE seq = 7")
    connection.close()
    with Lineage.open(store) as lineage, pytest.raises(StoreError, match="entry 7"):
        lineage.admin.backup(tmp_path / "x")
    assert list(tmp_path.glob("x*")) == []


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "events.json").write_bytes(event(1))
    assert downriver("ingest", "events.json", "--store", "a", cwd=tmp_path).returncode == 0
    written = downriver("backup", "x.backup", "--store", "a", cwd=tmp_path)
    assert written.stdout.startswith("1 entry in x.backup · head 1:")
    restored = downriver("restore", "x.backup", "--store", "b", cwd=tmp_path)
    head = restored.stdout.split()[-1]
    verified = downriver("audit", "verify", "--expect", head, "--store", "b", cwd=tmp_path)
    assert (verified.returncode, restored.returncode) == (0, 0)
    missing = downriver("restore", "nothing", "--store", "c", cwd=tmp_path)
    assert missing.returncode == 2
