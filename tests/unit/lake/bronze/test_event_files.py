"""Any split of event files gives the same events as `downriver ingest`."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING

import pytest
from tests.openlineage import encode, run_event

from downriver.errors import InvalidRequestError
from downriver.lake.bronze import event_files
from downriver.lake.bronze.event_files import plan_reads, read_split
from downriver.openlineage.files import read_event_file

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = [encode(run_event(run=f"run-{number}")) for number in range(9)]
BAD = b'{"eventTime": "yesterday", "job": {"namespace": "a", "name": "b"}}'


def found(plan: event_files.ReadPlan) -> list[tuple[bytes, str | None]]:
    return [(f.raw, f.problem) for split in plan.splits for f in read_split(split)]


def as_the_server_reads(path: Path) -> list[tuple[bytes, str | None]]:
    return [(f.raw, f.problem) for f, _ in read_event_file(path)]


PRETTY = json.dumps([json.loads(event) for event in EVENTS], indent=2).encode()
FILES = {
    "lines.jsonl": b"\n".join(EVENTS) + b"\n",
    "no_last_newline.jsonl": b"\n".join(EVENTS),
    "blank_lines.jsonl": b"\n\n" + b"\n \n".join(EVENTS) + b"\n\n",
    "windows.jsonl": b"\r\n".join(EVENTS),
    "bad_lines.jsonl": b"\n".join([EVENTS[0], b"nonsense", BAD, b'{"half', b"\xff\xfe", EVENTS[1]]),
    "bad_first.jsonl": b"\n".join([b'{"half', *EVENTS]),
    "document.json": PRETTY,
    "one_array.json": b"[" + b",".join(EVENTS) + b"]",
    "arrays.jsonl": b"[" + b",".join(EVENTS[:4]) + b"]\n[" + b",".join(EVENTS[4:]) + b"]\n",
    "empty.jsonl": b"",
    "packed.jsonl.gz": gzip.compress(b"\n".join(EVENTS)),
    "packed_document.json.gz": gzip.compress(PRETTY),
    "torn.jsonl.gz": gzip.compress(b"\n".join(EVENTS))[:-20],
}


@pytest.mark.parametrize("split_bytes", [1, 7, 200, 10**9])
@pytest.mark.parametrize("name", FILES)
def test_any_split_of_a_file_gives_the_events_of_downriver_ingest(
    name, split_bytes, tmp_path, monkeypatch
):
    (tmp_path / name).write_bytes(FILES[name])
    monkeypatch.setattr(event_files, "SPLIT_BYTES", split_bytes)
    plan = plan_reads([str(tmp_path)], lambda paths: {})
    assert found(plan) == as_the_server_reads(tmp_path / name)


def test_the_offset_of_a_record_is_the_start_of_its_line(tmp_path):
    path = tmp_path / "blank_lines.jsonl"
    path.write_bytes(FILES["blank_lines.jsonl"])
    for split in plan_reads([str(path)], lambda paths: {}).splits:
        for record in read_split(split):
            assert path.read_bytes()[record.offset :].startswith(record.raw)


class Tail:
    """A file that is ingested again and again while it changes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.known: dict[str, event_files.FileState] = {}
        self.clock = 10**18

    def write(self, body: bytes) -> list[bytes]:
        """Replace the file, and return what is read of it."""
        self.path.write_bytes(body)
        self.clock += 10**9
        os.utime(self.path, ns=(self.clock, self.clock))
        return self.read()

    def read(self) -> list[bytes]:
        plan = plan_reads([str(self.path)], lambda paths: self.known)
        self.known |= {known.path: known for known in plan.known}
        return [raw for raw, _ in found(plan)]


@pytest.fixture
def tail(tmp_path):
    return Tail(tmp_path / "log.jsonl")


class TestOnlyNewDataIsRead:
    def test_an_unchanged_file_is_not_read_again(self, tail):
        assert tail.write(FILES["lines.jsonl"]) == EVENTS
        assert tail.read() == []

    def test_only_appended_lines_are_read(self, tail):
        assert tail.write(b"\n".join(EVENTS[:5]) + b"\n") == EVENTS[:5]
        assert tail.write(b"\n".join(EVENTS) + b"\n") == EVENTS[5:]

    def test_an_incomplete_last_line_is_read_again(self, tail):
        whole = b"\n".join(EVENTS)
        assert tail.write(whole[:-10])[:-1] == EVENTS[:-1]
        assert tail.write(whole + b"\n") == EVENTS[-1:]

    def test_a_replaced_file_is_read_completely(self, tail):
        tail.write(b"\n".join(EVENTS[:5]) + b"\n")
        other = [encode(run_event(run=f"other-{number:03}")) for number in range(9)]
        assert tail.write(b"\n".join(other) + b"\n") == other

    def test_a_shorter_file_is_read_completely(self, tail):
        tail.write(FILES["lines.jsonl"])
        assert tail.write(EVENTS[3] + b"\n") == [EVENTS[3]]

    def test_a_changed_document_is_read_completely(self, tail):
        assert len(tail.write(PRETTY)) == 9
        longer = json.dumps([json.loads(event) for event in [*EVENTS, EVENTS[0]]], indent=2)
        assert len(tail.write(longer.encode())) == 10


def test_other_files_of_a_directory_are_ignored_but_an_explicit_file_is_read(tmp_path):
    (tmp_path / "notes.txt").write_bytes(EVENTS[0])
    assert plan_reads([str(tmp_path)], lambda paths: {}).splits == []
    assert len(found(plan_reads([str(tmp_path / "notes.txt")], lambda paths: {}))) == 1


def test_a_source_that_is_not_there(tmp_path):
    with pytest.raises(InvalidRequestError, match="no such file"):
        plan_reads([str(tmp_path / "nowhere")], lambda paths: {})
