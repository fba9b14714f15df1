"""Event files: find the new ones, split them among tasks, and read the splits on the workers.

A file of known size and modification time is not read again. A file that has only grown is read
from the end of its last complete line. In any doubt the whole file is read: events are identified
by their hash, so a second read costs time but adds no duplicates.
"""

from __future__ import annotations

import gzip
import hashlib
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import msgspec

from downriver.lake.storage.files import FileEntry, list_files, open_file
from downriver.openlineage.files import EVENT_FILES, GZIP, EventRecord, is_whole, read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

_BATCH_EVENTS = 1000
_BATCH_BYTES = 8 * 2**20


class FileSplit(NamedTuple):
    """A part of a file that one task reads: the lines that begin in it, or all of it as one."""

    path: str
    start: int
    end: int
    lines: bool


SPLIT_DDL = "path STRING, start BIGINT, end BIGINT, lines BOOLEAN"


def read_splits(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Turn splits into what was found in them: rows of `tables.FOUND`."""
    for batch in batches:
        for row in batch.to_pylist():
            yield from read_split_batches(FileSplit(**row))


def read_split_batches(split: FileSplit) -> Iterator[pa.RecordBatch]:
    """Yield what was found in a split, as rows of `tables.FOUND`."""
    yield from _event_batches(split.path, read_split(split))


def read_split(split: FileSplit) -> Iterator[EventRecord]:
    """Yield the events of a split. A file that cannot be read is one bad record."""
    try:
        with open_file(split.path) as raw:
            yield from _read_lines(raw, split) if split.lines else _read_all(raw, split.path)
    except (OSError, EOFError, zlib.error) as exc:
        yield EventRecord(split.path, None, f"cannot be read: {exc}", offset=split.start)


def _read_all(raw: IO[bytes], name: str) -> Iterator[EventRecord]:
    packed = raw.read(2) == GZIP
    raw.seek(0)
    yield from read_events(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw, name)


def _read_lines(raw: IO[bytes], split: FileSplit) -> Iterator[EventRecord]:
    start = split.start
    if start:  # the line that begins before this split belongs to the split before
        raw.seek(start - 1)
        start += len(raw.readline()) - 1
    if start < split.end:
        window = cast("IO[bytes]", _LineWindow(raw, split.end - start))
        yield from read_events(window, split.path, offset=start, lines=True)


class _LineWindow:
    """The lines of a stream that begin within its next `length` bytes."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self._stream = stream
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0 and (line := self._stream.readline()):
            self._left -= len(line)
            yield line


def _event_batches(source: str, found: Iterable[EventRecord]) -> Iterator[pa.RecordBatch]:
    waiting: list[EventRecord] = []
    size = 0
    for record in found:
        waiting.append(record)
        size += len(record.raw)
        if len(waiting) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            yield event_batch(source, waiting)
            waiting, size = [], 0
    if waiting:
        yield event_batch(source, waiting)


def event_batch(source: str, found: list[EventRecord]) -> pa.RecordBatch:
    """Return what was found in a source as rows of `tables.FOUND`."""
    import pyarrow as pa

    events = [record.event for record in found]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([source] * len(found), pa.string()),
            pa.array([record.offset for record in found], pa.int64()),
            pa.array([record.position for record in found], pa.int32()),
            pa.array([_digest(record) for record in found], pa.binary()),
            pa.array([event.ref.at if event else None for event in events], pa.int64()),
            pa.array([record.problem for record in found], pa.string()),
            pa.array([record.raw for record in found], pa.binary()),
        ],
        names=["source", "offset", "position", "digest", "at", "reason", "body"],
    )


def _digest(found: EventRecord) -> bytes:
    return found.event.ref.digest if found.event else hashlib.sha256(found.raw).digest()


SPLIT_BYTES = 64 * 2**20
_TAIL_BYTES = 4096
_BACKWARD_BYTES = 64 * 1024
_PARALLEL_LOOKS = 16


class FileState(msgspec.Struct, frozen=True):
    """A file as it was when it was read. `resume` is where its last whole line ended, 0 if that
    cannot be used; `tail` the hash of what stands before.
    """

    path: str
    size: int
    modified: int
    resume: int = 0
    tail: str = ""


class ReadPlan(msgspec.Struct):
    """What to read, and what is known once it is read."""

    splits: list[FileSplit]
    known: list[FileState]


def plan_reads(sources: Iterable[str], before: Mapping[str, FileState]) -> ReadPlan:
    """Return what is new in files and directories."""
    files = {file.path: file for source in sources for file in list_files(source, EVENT_FILES)}
    fresh = [file for file in files.values() if _differs(file, before.get(file.path))]
    with ThreadPoolExecutor(
        _PARALLEL_LOOKS
    ) as pool:  # in a bucket a look at a file is mostly waiting
        looked = list(pool.map(lambda file: _inspect(file, before.get(file.path)), fresh))
    return ReadPlan(
        [split for splits, _ in looked for split in splits],
        [known for _, known in looked],
    )


def _differs(file: FileEntry, known: FileState | None) -> bool:
    return known is None or (file.size, file.modified) != (known.size, known.modified)


def _inspect(file: FileEntry, known: FileState | None) -> tuple[list[FileSplit], FileState]:
    """Look at the beginning and end of a file."""
    whole = [FileSplit(file.path, 0, file.size, False)]
    now = FileState(file.path, file.size, file.modified)
    try:
        with open_file(file.path) as stream:
            if not _holds_lines(stream):
                return whole, now
            resume = _end_of_last_line(stream, file.size)
            now = msgspec.structs.replace(now, resume=resume, tail=_tail_hash(stream, resume))
            start = known.resume if known and _has_grown(stream, file, known) else 0
    except OSError:  # the task that reads it will say what is wrong
        return whole, now
    starts = range(start, file.size, SPLIT_BYTES)
    return [FileSplit(file.path, s, min(s + SPLIT_BYTES, file.size), True) for s in starts], now


def _holds_lines(stream: IO[bytes]) -> bool:
    """Tell JSON lines from an archive and from one document over many lines."""
    if stream.read(2) == GZIP:
        return False
    stream.seek(0)
    line = next((line for line in stream if line.strip()), b"")
    return is_whole(line)


def _end_of_last_line(stream: IO[bytes], size: int) -> int:
    end = size
    while end > 0:
        start = max(0, end - _BACKWARD_BYTES)
        stream.seek(start)
        newline = stream.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _tail_hash(stream: IO[bytes], end: int) -> str:
    start = max(0, end - _TAIL_BYTES)
    stream.seek(start)
    return hashlib.sha256(stream.read(end - start)).hexdigest()


def _has_grown(stream: IO[bytes], file: FileEntry, known: FileState) -> bool:
    return 0 < known.resume <= file.size and _tail_hash(stream, known.resume) == known.tail
