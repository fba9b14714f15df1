"""Which files are new, and how they are split among tasks.

A file known by size and time of change is not read again. One that has only grown is read from
where its last whole line ended. Any doubt means reading all of it: events are known by their hash,
so reading twice costs time and nothing else.
"""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING

import msgspec

from downriver.events.files import EVENT_FILES, GZIP, is_whole
from downriver.lake.places import File, list_files, open_place
from downriver.lake.reading import Split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SPLIT_BYTES = 64 * 2**20
_TAIL = 4096
_BACKWARDS = 64 * 1024
_AT_ONCE = 16


class Known(msgspec.Struct, frozen=True):
    """A file as it was when it was read. `resume` is where its last whole line ended, 0 if that
    cannot be used; `tail` the hash of what stands before.
    """

    path: str
    size: int
    modified: int
    resume: int = 0
    tail: str = ""


class Plan(msgspec.Struct):
    """What to read, and what is known once it is read."""

    splits: list[Split]
    known: list[Known]


def plan_reading(sources: Iterable[str], before: Mapping[str, Known]) -> Plan:
    """Return what is new in files and directories."""
    files = {file.path: file for source in sources for file in list_files(source, EVENT_FILES)}
    fresh = [file for file in files.values() if _differs(file, before.get(file.path))]
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # in a bucket a look at a file is mostly waiting
        looked = list(pool.map(lambda file: _look(file, before.get(file.path)), fresh))
    return Plan(
        [split for splits, _ in looked for split in splits],
        [known for _, known in looked],
    )


def _differs(file: File, known: Known | None) -> bool:
    return known is None or (file.size, file.modified) != (known.size, known.modified)


def _look(file: File, known: Known | None) -> tuple[list[Split], Known]:
    """Look at the beginning and end of a file."""
    whole = [Split(file.path, 0, file.size, False)]
    now = Known(file.path, file.size, file.modified)
    try:
        with open_place(file.path) as stream:
            if not _holds_lines(stream):
                return whole, now
            resume = _end_of_last_line(stream, file.size)
            now = msgspec.structs.replace(now, resume=resume, tail=_tail(stream, resume))
            start = known.resume if known and _has_grown(stream, file, known) else 0
    except OSError:  # the task that reads it will say what is wrong
        return whole, now
    starts = range(start, file.size, SPLIT_BYTES)
    return [Split(file.path, s, min(s + SPLIT_BYTES, file.size), True) for s in starts], now


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
        start = max(0, end - _BACKWARDS)
        stream.seek(start)
        newline = stream.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def _tail(stream: IO[bytes], end: int) -> str:
    start = max(0, end - _TAIL)
    stream.seek(start)
    return hashlib.sha256(stream.read(end - start)).hexdigest()


def _has_grown(stream: IO[bytes], file: File, known: Known) -> bool:
    return 0 < known.resume <= file.size and _tail(stream, known.resume) == known.tail
