"""The file source lists new data before it reads it, so a repeated batch is the same."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import encode, run_event

from downriver.lake.bronze import stream_sources
from downriver.lake.bronze.event_files import FileState, ReadPlan
from downriver.lake.bronze.stream_sources import EventFileReader, FileListings

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [encode(run_event(run=f"run-{number}")) for number in range(6)]


@pytest.fixture
def source(tmp_path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def reader(tmp_path: Path) -> EventFileReader:
    """A reader as Spark makes one, after a restart too."""
    return EventFileReader([str(tmp_path / "in")], str(tmp_path / "listings"))


def bodies(of: EventFileReader, start: dict, end: dict) -> list[bytes]:
    parts = of.partitions(start, end)
    return [body for p in parts for b in of.read(p) for body in b.column("body").to_pylist()]


def test_each_event_belongs_to_exactly_one_offset_range(tmp_path, source):
    begin = reader(tmp_path).initialOffset()
    (source / "a.jsonl").write_bytes(b"\n".join(EVENTS[:2]) + b"\n")
    first = reader(tmp_path).latestOffset()
    assert reader(tmp_path).latestOffset() == first, "nothing is new"
    with (source / "a.jsonl").open("ab") as grown:
        grown.write(EVENTS[2] + b"\n")
    (source / "b.jsonl").write_bytes(EVENTS[3])
    second = reader(tmp_path).latestOffset()
    assert bodies(reader(tmp_path), begin, first) == EVENTS[:2], "also after the file has grown"
    assert sorted(bodies(reader(tmp_path), first, second)) == EVENTS[2:4]
    assert bodies(reader(tmp_path), second, second) == []
    assert sorted(bodies(reader(tmp_path), begin, second)) == EVENTS[:4]
    assert json.loads(json.dumps(second)) == second, "Spark keeps offsets as JSON"


def test_old_listings_are_merged_and_keep_the_states_of_their_files(tmp_path, source, monkeypatch):
    monkeypatch.setattr(stream_sources, "_MERGE_EVERY", 3)
    of = reader(tmp_path)
    offset = of.initialOffset()
    for number, event in enumerate(EVENTS):
        (source / f"{number}.jsonl").write_bytes(event)
        before, offset = offset, of.latestOffset()
        assert bodies(of, before, offset) == [event]
        of.commit(offset)
    left = sorted(path.name for path in (tmp_path / "listings" / "all").iterdir())
    assert left == ["00000005.json", "00000006.json"]
    assert len(FileListings(str(tmp_path / "listings")).known) == 6
    assert reader(tmp_path).latestOffset() == offset, "nothing is read again"


def test_small_files_share_a_task(tmp_path, source):
    for number, event in enumerate(EVENTS):
        (source / f"{number}.jsonl").write_bytes(event)
    of = reader(tmp_path)
    assert len(of.partitions(of.initialOffset(), of.latestOffset())) == 1


def test_the_last_listing_has_the_state_of_a_file(tmp_path):
    listings = FileListings(str(tmp_path))
    listings.add(ReadPlan([], [FileState("a", 1, 1)]))
    listings.add(ReadPlan([], [FileState("a", 2, 2)]))
    assert FileListings(str(tmp_path)).known == {"a": FileState("a", 2, 2)}
