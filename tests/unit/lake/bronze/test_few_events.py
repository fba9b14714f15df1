"""Few events are ingested without Spark, and half lines leave the quarantine when complete."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import encode, run_event
from tests.unit.cli.command import downriver
from tests.unit.lake.orders import FIRST, SECOND, lines, make

from downriver.lake.bronze import few_events
from downriver.lake.bronze.few_events import ingest_few
from downriver.lake.stages import Stages
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import read_current_version, read_version

if TYPE_CHECKING:
    from downriver.lake.stages import StageReport
    from downriver.lake.storage.tables import BronzeBatch

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

EVENTS = [encode(run_event(run=f"run-{number}")) for number in range(4)]


class Growing:
    """A file that grows, and the lake that it is ingested into."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "log.jsonl"
        self.lake = Folder(str(folder / "lake"))
        self._clock = 10**18

    def write(self, body: bytes) -> StageReport:
        self.path.write_bytes(body)
        self._clock += 10**9
        os.utime(self.path, ns=(self._clock, self._clock))
        stage = ingest_few(self.lake, [str(self.path)], Stages())
        assert stage is not None
        return stage

    def quarantine(self, version: int | None = None) -> list[bytes]:
        current = read_current_version(self.lake)
        batches = (read_version(self.lake, version) if version else current).batches
        return [body for batch in batches for body in self.rows(batch, batch.quarantine_path)]

    def events(self) -> list[bytes]:
        batches = read_current_version(self.lake).batches
        return [body for batch in batches for body in self.rows(batch, f"{batch.path}/events")]

    def rows(self, batch: BronzeBatch, path: str) -> list[bytes]:
        found: list[bytes] = self.lake.read_table(path).column("body").to_pylist()
        if path == batch.quarantine_path:
            assert len(found) == batch.quarantined
        return found


@pytest.fixture
def growing(tmp_path: Path) -> Growing:
    return Growing(tmp_path)


def test_a_half_line_leaves_the_quarantine_when_it_is_complete(growing: Growing) -> None:
    whole = b"\n".join(EVENTS) + b"\n"
    half = EVENTS[3][:20]
    first = growing.write(b"nonsense\n" + b"\n".join(EVENTS[:3]) + b"\n" + half)
    assert (first.rows_in, first.rows_out, first.rejected) == (5, 3, 2)
    assert growing.quarantine() == [b"nonsense", half]
    second = growing.write(b"nonsense\n" + whole)
    assert (second.rows_in, second.rows_out, second.rejected) == (1, 1, 0)
    assert growing.quarantine() == [b"nonsense"], "a line that is complete and unreadable stays"
    assert growing.quarantine(1) == [b"nonsense", half], "a version does not change"
    assert growing.events() == EVENTS


def test_a_line_may_stay_half_for_several_reads(growing: Growing) -> None:
    growing.write(EVENTS[0] + b"\n" + EVENTS[1][:10])
    growing.write(EVENTS[0] + b"\n" + EVENTS[1][:30])
    assert growing.quarantine() == [EVENTS[1][:30]], "the shorter half is replaced"
    growing.write(EVENTS[0] + b"\n" + EVENTS[1][:30] + b"\n")
    assert growing.quarantine() == [EVENTS[1][:30]], "the line ended, and is unreadable"
    growing.write(EVENTS[0] + b"\n" + EVENTS[1][:30] + b"\n" + EVENTS[2])
    assert growing.quarantine() == [EVENTS[1][:30]]
    assert growing.events() == [EVENTS[0], EVENTS[2]]


def test_half_lines_are_found_in_listed_batches(growing: Growing, tmp_path: Path) -> None:
    growing.write(EVENTS[0] + b"\n" + EVENTS[1][:10])
    other = tmp_path / "other.jsonl"
    for number in range(70):  # more than a version contains itself
        other.write_bytes(encode(run_event("other", run=str(number))) + b"\n")
        os.utime(other, ns=(number, number))
        ingest_few(growing.lake, [str(other)], Stages())
    assert read_current_version(growing.lake).lists
    growing.write(EVENTS[0] + b"\n" + EVENTS[1] + b"\n")
    assert growing.quarantine() == []
    assert len(growing.events()) == 72


def test_many_events_are_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Folder(str(tmp_path / "lake"))
    packed = tmp_path / "events.jsonl.gz"
    packed.write_bytes(gzip.compress(b"\n".join(EVENTS)))
    monkeypatch.setattr(few_events, "FEW_BYTES", packed.stat().st_size * 2)
    assert ingest_few(lake, [str(packed)], Stages()) is None, "it is larger when unpacked"
    packed.rename(tmp_path / "events.jsonl")
    assert ingest_few(lake, [str(tmp_path / "events.jsonl")], Stages()) is not None


def test_the_command_starts_no_spark_for_few_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("downriver.lake.session.running_session", None)
    (tmp_path / "events.jsonl").write_bytes(b"\n".join(EVENTS) + b"\n")
    done = downriver("lake", "ingest", "events.jsonl", cwd=tmp_path)
    assert done.stdout.startswith("bronze   4 in, 4 out (")
    again = downriver("lake", "ingest", "events.jsonl", cwd=tmp_path)
    assert again.stdout.startswith("bronze   0 in, 0 out (")


@pytest.mark.slow
def test_spark_and_this_process_write_the_same_bronze(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also with repeated events and unreadable lines, within a file, of another file, and known."""
    files = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
    bodies = (
        lines(*FIRST, FIRST[0]) + b"nonsense\n",
        lines(FIRST[1], *SECOND, *SECOND) + b"nonsense\n" + b"other",
    )
    written = []
    for name, few in (("few", few_events.FEW_BYTES), ("spark", -1)):
        monkeypatch.setattr(few_events, "FEW_BYTES", few)
        lake = make(tmp_path / name, spark)
        stages = []
        for path, body in zip(files, bodies, strict=True):
            path.write_bytes(body)
            stage = lake.ingest([str(path)])
            stages.append((stage.rows_in, stage.rows_out, stage.duplicates, stage.rejected))
        tables = {
            table: sorted(map(repr, lake.tables()[f"bronze.{table}"].collect()))
            for table in ("events", "quarantine")
        }
        times = [batch.ranges for batch in read_current_version(lake.folder).batches]
        written.append((stages, tables, times))
    assert written[0] == written[1]
