"""Event files: find the new ones, split them among tasks, and read the splits on the workers.

A file of known size and modification time is not read again. A file that has only grown is read
from the end of its last complete line. Otherwise the whole file is read: events are identified by
their hash, so a second read costs time but adds no duplicates.
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
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    import pyarrow as pa

TOPIC = "kafka://"  # the scheme of sources that are no files
_BATCH_EVENTS = 1000
_BATCH_BYTES = 8 * 2**20


class FileSplit(NamedTuple):
    """A part of a file for one task: the lines that begin in it, or the whole file."""

    path: str
    start: int
    end: int
    lines: bool


SPLIT_DDL = "path STRING, start BIGINT, end BIGINT, lines BOOLEAN"


def read_splits(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Read splits on a worker; yields rows of `schemas.EVENT_RECORDS`."""
    for batch in batches:
        for row in batch.to_pylist():
            yield from read_split_batches(FileSplit(**row))


def read_split_batches(split: FileSplit) -> Iterator[pa.RecordBatch]:
    """Yield the records of a split as rows of `schemas.EVENT_RECORDS`."""
    yield from _event_batches(split.path, read_split(split))


def read_split(split: FileSplit) -> Iterator[EventRecord]:
    """Yield the records of a split. A file that cannot be read is one unreadable record."""
    try:
        with open_file(split.path) as raw:
            yield from _read_lines(raw, split) if split.lines else _read_all(raw, split.path)
    except (OSError, EOFError, zlib.error) as exc:
        yield EventRecord(split.path, None, f"cannot be read: {exc}", offset=split.start)


def _read_all(raw: IO[bytes], name: str) -> Iterator[EventRecord]:
    compressed = raw.read(2) == GZIP
    raw.seek(0)
    yield from read_events(
        cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if compressed else raw, name
    )


def _read_lines(raw: IO[bytes], split: FileSplit) -> Iterator[EventRecord]:
    start = split.start
    if start:  # a line that begins before this split belongs to the previous split
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


def _event_batches(source: str, records: Iterable[EventRecord]) -> Iterator[pa.RecordBatch]:
    pending: list[EventRecord] = []
    size = 0
    for record in records:
        pending.append(record)
        size += len(record.raw)
        if len(pending) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            yield event_batch(source, pending)
            pending, size = [], 0
    if pending:
        yield event_batch(source, pending)


def event_batch(source: str, records: list[EventRecord]) -> pa.RecordBatch:
    """Return the records of a source as rows of `schemas.EVENT_RECORDS`."""
    import pyarrow as pa

    events = [record.event for record in records]
    return pa.RecordBatch.from_arrays(
        [
            pa.array([source] * len(records), pa.string()),
            pa.array([record.offset for record in records], pa.int64()),
            pa.array([record.position for record in records], pa.int32()),
            pa.array([_digest(record) for record in records], pa.binary()),
            pa.array([event.ref.at if event else None for event in events], pa.int64()),
            pa.array([record.problem for record in records], pa.string()),
            pa.array([record.raw for record in records], pa.binary()),
        ],
        names=["source", "offset", "position", "digest", "at", "reason", "body"],
    )


def _digest(record: EventRecord) -> bytes:
    return record.event.ref.digest if record.event else hashlib.sha256(record.raw).digest()


SPLIT_BYTES = 64 * 2**20
_TAIL_BYTES = 4096
_BACKWARD_BYTES = 64 * 1024
_PARALLEL_READS = 16  # latency dominates reads from an object store


class FileState(msgspec.Struct, frozen=True):
    """The state of a file when it was read.

    `resume` is the end of its last complete line, 0 if reading cannot resume there. `tail` is the
    hash of the bytes before. `unfinished` is the hash of an unreadable last line without an end.
    If such a line was read before and is longer now, `completes_at` is its offset and `completes`
    is its hash before.
    """

    path: str
    size: int
    modified: int
    resume: int = 0
    tail: str = ""
    unfinished: str = ""
    completes_at: int = 0
    completes: str = ""


class ReadPlan(msgspec.Struct):
    """The splits to read, and the states of their files after that."""

    splits: list[FileSplit]
    known: list[FileState]  # the name is part of stored listings


def plan_reads(
    sources: Iterable[str], find: Callable[[Collection[str]], Mapping[str, FileState]]
) -> ReadPlan:
    """Return the new parts of files and directories; `find` returns the known states of files."""
    files = {file.path: file for source in sources for file in list_files(source, EVENT_FILES)}
    before = find(files)
    fresh = [file for file in files.values() if _differs(file, before.get(file.path))]
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        inspected = list(pool.map(lambda file: _inspect(file, before.get(file.path)), fresh))
    return ReadPlan(
        [split for splits, _ in inspected for split in splits],
        [state for _, state in inspected],
    )


def _differs(file: FileEntry, known: FileState | None) -> bool:
    return known is None or (file.size, file.modified) != (known.size, known.modified)


def _inspect(file: FileEntry, known: FileState | None) -> tuple[list[FileSplit], FileState]:
    """Return the splits of a file and its state, from its first and last bytes."""
    whole = [FileSplit(file.path, 0, file.size, False)]
    state = FileState(file.path, file.size, file.modified)
    try:
        with open_file(file.path) as stream:
            if not _holds_lines(stream):
                return whole, state
            resume = _end_of_last_line(stream, file.size)
            state = msgspec.structs.replace(
                state,
                resume=resume,
                tail=_tail_hash(stream, resume),
                unfinished=_unfinished_line(stream, resume, file.size),
            )
            start = 0
            if known and _has_grown(stream, file, known):
                start = known.resume
                if known.unfinished and known.unfinished != _line_hash(stream, known.resume):
                    state = msgspec.structs.replace(
                        state, completes_at=known.resume, completes=known.unfinished
                    )
    except OSError:  # the task that reads it reports the error
        return whole, state
    starts = range(start, file.size, SPLIT_BYTES)
    return [FileSplit(file.path, s, min(s + SPLIT_BYTES, file.size), True) for s in starts], state


def _holds_lines(stream: IO[bytes]) -> bool:
    """True for JSON lines; false for gzip and for a document over several lines."""
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


def _unfinished_line(stream: IO[bytes], start: int, size: int) -> str:
    """Return the hash of a last line without an end; "" if there is none, or if it is whole."""
    stream.seek(start)
    line = stream.read(size - start).strip()
    return "" if not line or is_whole(line) else _line_hash(stream, start)


def _line_hash(stream: IO[bytes], start: int) -> str:
    """Return the hash of a line, as `_digest` computes it for an unreadable one."""
    stream.seek(start)
    return hashlib.sha256(stream.readline().strip()).hexdigest()


def _tail_hash(stream: IO[bytes], end: int) -> str:
    start = max(0, end - _TAIL_BYTES)
    stream.seek(start)
    return hashlib.sha256(stream.read(end - start)).hexdigest()


def _has_grown(stream: IO[bytes], file: FileEntry, known: FileState) -> bool:
    return 0 < known.resume <= file.size and _tail_hash(stream, known.resume) == known.tail
