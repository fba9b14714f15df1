"""Reading splits of event files on the workers, line for line as `downriver ingest` reads them."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from downriver.events.files import GZIP, Found, read_events
from downriver.lake.places import open_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

_BATCH_EVENTS = 1000
_BATCH_BYTES = 8 * 2**20


class Split(NamedTuple):
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
            yield from found_in_split(Split(**row))


def found_in_split(split: Split) -> Iterator[pa.RecordBatch]:
    """Yield what was found in a split, as rows of `tables.FOUND`."""
    yield from _found_batches(split.path, read_split(split))


def read_split(split: Split) -> Iterator[Found]:
    """Yield the events of a split. A file that cannot be read is one bad record."""
    try:
        with open_place(split.path) as raw:
            yield from _read_lines(raw, split) if split.lines else _read_all(raw, split.path)
    except (OSError, EOFError, zlib.error) as exc:
        yield Found(split.path, None, f"cannot be read: {exc}", offset=split.start)


def _read_all(raw: IO[bytes], name: str) -> Iterator[Found]:
    packed = raw.read(2) == GZIP
    raw.seek(0)
    yield from read_events(cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw, name)


def _read_lines(raw: IO[bytes], split: Split) -> Iterator[Found]:
    start = split.start
    if start:  # the line that begins before this split belongs to the split before
        raw.seek(start - 1)
        start += len(raw.readline()) - 1
    if start < split.end:
        window = cast("IO[bytes]", _Lines(raw, split.end - start))
        yield from read_events(window, split.path, offset=start, lines=True)


class _Lines:
    """The lines of a stream that begin within its next `length` bytes."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self._stream = stream
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0 and (line := self._stream.readline()):
            self._left -= len(line)
            yield line


def _found_batches(source: str, found: Iterable[Found]) -> Iterator[pa.RecordBatch]:
    waiting: list[Found] = []
    size = 0
    for record in found:
        waiting.append(record)
        size += len(record.raw)
        if len(waiting) >= _BATCH_EVENTS or size >= _BATCH_BYTES:
            yield found_batch(source, waiting)
            waiting, size = [], 0
    if waiting:
        yield found_batch(source, waiting)


def found_batch(source: str, found: list[Found]) -> pa.RecordBatch:
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


def _digest(found: Found) -> bytes:
    return found.event.ref.digest if found.event else hashlib.sha256(found.raw).digest()
