"""Events in files and directories: JSON lines, arrays or single documents, plain or gzip."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import msgspec

from downriver.errors import InvalidEventError, InvalidRequestError, describe_failure
from downriver.openlineage.wire import Event, decode, parse_event, split_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EVENT_FILES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
GZIP = b"\x1f\x8b"


class EventRecord(NamedTuple):
    """An event at a place in a file, or the reason why it cannot be read.

    `offset` is the byte in the decompressed stream where its line or document begins; `position` is
    its index among the events of that line or document.
    """

    where: str
    event: Event | None
    problem: str | None
    raw: bytes = b""
    offset: int = 0
    position: int = 0


def list_event_files(names: Iterable[str]) -> list[Path]:
    """Return the given files, and the event files in the given directories."""
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files += sorted(
                p for p in path.rglob("*") if p.name.endswith(EVENT_FILES) and p.is_file()
            )
        elif path.exists():
            files.append(path)
        else:
            raise InvalidRequestError("FILE", f"{name}: no such file or directory")
    return files


def read_event_file(path: Path) -> Iterator[tuple[EventRecord, int]]:
    """Yield the events of a file, each with the number of bytes read so far."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
            for record in read_events(stream, str(path)):
                yield record, raw.tell()
    except (OSError, EOFError, zlib.error) as exc:
        yield EventRecord(str(path), None, f"cannot be read: {describe_failure(exc)}"), 0


def read_events(
    stream: IO[bytes], name: str, *, offset: int = 0, lines: bool = False
) -> Iterator[EventRecord]:
    """Yield the events of a stream of JSON lines, or of one JSON document.

    `offset` is the place in the file where the stream begins. With `lines`, the stream is known to
    be JSON lines.
    """
    for number, line in enumerate(stream, 1):
        if not lines and line.strip():
            if not is_whole(line):
                yield from _document(line + stream.read(), name, number, offset)
                return
            lines = True
        if line.strip():
            yield from _line(line.strip(), f"{name}:{number}", offset)
        offset += len(line)


def is_whole(line: bytes) -> bool:
    """Return whether a line is complete JSON, and not only the beginning of a document."""
    try:
        decode(line, msgspec.Raw)
    except InvalidEventError:
        return line.lstrip()[:1] not in (b"[", b"{")
    return True


def _document(body: bytes, name: str, first_line: int, offset: int) -> Iterator[EventRecord]:
    """Read a body as one JSON document or, if it is not one, line by line."""
    if is_whole(body):
        events = split_events(body.strip())
        for index, raw in enumerate(events):
            where = f"{name}:{first_line}" if len(events) == 1 else f"{name}[{index}]"
            yield _event_record(raw, where, offset, index)
        return
    for number, line in enumerate(body.splitlines(keepends=True), first_line):
        if line.strip():
            yield from _line(line.strip(), f"{name}:{number}", offset)
        offset += len(line)


def _line(line: bytes, where: str, offset: int) -> Iterator[EventRecord]:
    try:
        events = split_events(line)
    except InvalidEventError as exc:
        yield EventRecord(where, None, exc.message, line, offset)
        return
    for index, raw in enumerate(events):
        yield _event_record(raw, where, offset, index)


def _event_record(raw: bytes, where: str, offset: int, index: int) -> EventRecord:
    try:
        return EventRecord(where, parse_event(raw), None, raw, offset, index)
    except InvalidEventError as exc:
        return EventRecord(where, None, exc.message, raw, offset, index)
