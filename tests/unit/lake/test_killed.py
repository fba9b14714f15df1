"""A process killed at any stage gives the same result after a restart."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from tests.unit.lake.driver import run_driver
from tests.unit.lake.orders import FIRST, SECOND, facts_of, lines, make, rows, server_catalog
from tests.unit.openlineage.test_order_free import catalog

from downriver.lake.bronze.store_log import PublishReport, publish
from downriver.lake.storage.tables import list_versions, read_current_version
from downriver.lake.stream import StreamSchedule, run_stream
from downriver.store import open_store

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::ResourceWarning")]

KILLED = -signal.SIGKILL
LAST_STAGE = "reach"


def named(lake: Path) -> dict[str, bytes]:
    """Return what a lake holds, to the byte: its versions and its bronze."""
    files = [*lake.glob("versions/*"), *lake.glob("bronze/0*/**/*")]
    return {str(path.relative_to(lake)): path.read_bytes() for path in files if path.is_file()}


def test_a_driver_killed_at_any_stage_gives_the_same_tables_after_a_restart(spark, tmp_path):
    place, source = tmp_path / "lake", tmp_path / "events.jsonl"
    source.write_bytes(lines(*FIRST, *SECOND))
    arguments = (str(place), str(source))
    assert run_driver(spark, "ingest", *arguments, "bronze") == KILLED
    assert not list(place.glob("versions/*.json")), "nothing was committed"

    left: dict[str, dict[str, bytes]] = {}

    def note(stage) -> None:
        left[stage.stage] = named(place)

    lake = make(place, spark, report=note)
    assert lake.ingest([str(source)]).rows_out == 5
    committed = named(place)
    assert run_driver(spark, "build", *arguments, "silver") == KILLED
    assert named(place) == committed, "a build that did not end has changed nothing"

    lake.build()
    del left["bronze"]
    assert list(left)[-1] == LAST_STAGE
    # A kill after any stage leaves the state from which the build began.
    assert all(held == committed for held in left.values())
    assert facts_of(lake) == server_catalog(tmp_path / "store")
    assert list_versions(lake.folder) == [1, 2]


def test_publish_continues_after_a_kill_between_two_transactions(spark, built, tmp_path):
    one, other = str(tmp_path / "one"), str(tmp_path / "other")
    assert run_driver(spark, "publish", built.folder.location, one, "never") == KILLED
    with closing(open_store(one)) as interrupted, closing(open_store(other)) as whole:
        assert publish(built.folder, interrupted) == PublishReport(3, 2)
        assert publish(built.folder, whole) == PublishReport(5, 0)
        assert catalog(interrupted, []) == catalog(whole, [])


def start_stream(place: Path, source: Path) -> subprocess.Popen[bytes]:
    """Start a stream with its own Spark in its own process group."""
    command = [
        *(sys.executable, "-m", "downriver", "lake", "stream", str(source)),
        *("--lake", str(place), "--trigger", "1s", "--build-every", "1h"),
    ]
    return subprocess.Popen(command, start_new_session=True, cwd=source.parent)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 120
    while not path.exists():
        assert process.poll() is None, "the stream has ended"
        assert time.monotonic() < until, f"{path} never came to be"
        time.sleep(0.01)


def test_a_stream_killed_after_a_commit_skips_the_repeated_batch(spark, tmp_path):
    """The lake contains the batch, and Spark's checkpoint does not yet: Spark sends it again."""
    place, source = tmp_path / "lake", tmp_path / "events"
    source.mkdir()
    (source / "first.jsonl").write_bytes(lines(*FIRST) + b"nonsense\n")
    process = start_stream(place, source)
    try:
        wait_for(place / "versions" / "00000001.json", process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not list(place.glob("streams/*/checkpoint/commits/0")), "it was killed in the batch"

    with (source / "first.jsonl").open("ab") as grown:
        grown.write(lines(SECOND[0]))
    (source / "second.jsonl").write_bytes(lines(FIRST[0], SECOND[1]))
    lake = make(place, spark)
    taken = run_stream(
        lake, [str(source)], StreamSchedule(build_every=3600, once=True), Event(), build=True
    )
    assert (taken.rows_in, taken.rows_out, taken.duplicates) == (3, 2, 1)
    assert facts_of(lake) == server_catalog(tmp_path / "store")
    assert rows(lake, "SELECT count(*), count(DISTINCT digest) FROM bronze_events") == [(5, 5)]
    assert rows(lake, "SELECT count(*) FROM bronze_quarantine") == [(1,)]
    assert lake.ingest([str(source)]).rows_in == 0, "what a stream took in is not read again"
    batches = read_current_version(lake.folder).batches
    assert [(batch.events, batch.duplicates) for batch in batches] == [(3, 0), (2, 1)]
