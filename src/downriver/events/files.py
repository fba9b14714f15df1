"""Events in files: JSON lines, arrays or single documents, plain or gzip; whole directories."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import msgspec

from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.events.wire import Event, parse_event, split_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
_GZIP = b"\x1f\x8b"


class Found(NamedTuple):
    """An event, or why there is none, at a place in a file."""

    where: str
    event: Event | None
    problem: str | None


def list_event_files(names: Iterable[str]) -> list[Path]:
    """Return the files meant: each named one, and those with events in each named directory."""
    files: list[Path] = []
    for name in names:
        path = Path(name)
        if path.is_dir():
            files += sorted(p for p in path.rglob("*") if p.name.endswith(_ENDINGS) and p.is_file())
        elif path.exists():
            files.append(path)
        else:
            raise InvalidRequestError("FILE", f"{name}: no such file or directory")
    return files


def read_event_file(path: Path) -> Iterator[tuple[Found, int]]:
    """Yield the events of a file, each with how many bytes of the file have been read."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if packed else raw
            for found in read_events(stream, str(path)):
                yield found, raw.tell()
    except (OSError, EOFError, zlib.error) as exc:
        yield Found(str(path), None, f"cannot be read: {exc}"), 0


def read_events(stream: IO[bytes], name: str) -> Iterator[Found]:
    """Yield the events of a stream. Each is on a line of its own, or the stream is one document."""
    number = 0
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        if _begins_document(line):
            yield from _document(line + stream.read(), name, number)
            return
        yield _found(line.strip(), f"{name}:{number}")


def _begins_document(line: bytes) -> bool:
    """Tell a JSON array or an object spread over lines from one event on one line."""
    if line.lstrip()[:1] == b"[":
        return True
    try:
        msgspec.json.decode(line, type=msgspec.Raw)
    except msgspec.DecodeError as exc:
        return line.lstrip()[:1] == b"{" and "truncated" in str(exc)
    return False


def _document(body: bytes, name: str, first_line: int) -> Iterator[Found]:
    try:
        events = split_events(body.strip())
    except InvalidEventError as exc:
        yield Found(f"{name}:{first_line}", None, exc.message)
        return
    single = len(events) == 1
    for index, raw in enumerate(events):
        yield _found(raw, f"{name}:{first_line}" if single else f"{name}[{index}]")


def _found(raw: bytes, where: str) -> Found:
    try:
        return Found(where, parse_event(raw), None)
    except InvalidEventError as exc:
        return Found(where, None, exc.message)
