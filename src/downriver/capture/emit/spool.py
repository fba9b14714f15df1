"""Events that could not be sent yet: one file per process, in a folder shared by all.

Events that the collector rejected are in separate files. They are sent again only on request.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver import settings
from downriver.errors import SpoolFullError
from downriver.fork_safety import renew_in_child
from downriver.openlineage.wire import raw_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.openlineage.wire import Event

_BATCH = 200
_TAKEN = ".sending"
_REJECTED = ".rejected"
_REJECTED_SHARE = 0.1  # of the limit, so that rejected events leave room for unsent ones
_DROPPED = "dropped"  # the file with the numbers of events that did not fit into the spool
_ABANDONED_AFTER = 600.0  # seconds; the process that took the file has died


class SpoolState(NamedTuple):
    """The number of files, events and bytes of a spool, and of events that did not fit.

    `rejected` counts the events that the collector rejected and that are kept.
    """

    files: int
    events: int
    size: int
    dropped: int
    rejected: int


class RejectedEvent(msgspec.Struct, kw_only=True):
    """An event that the collector rejected, as sent, and the reason that it gave."""

    reason: str
    event: str


class Spool:
    """A folder of unsent events. Sending one twice is safe: the store recognises its hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Use a new file in a forked process."""
        self._file: Path | None = None
        self._rejected_file: Path | None = None
        self._lock = threading.Lock()

    def add(self, events: Sequence[Event | bytes]) -> None:
        """Store events; they are on disk when this returns. Raise if the spool is full."""
        lines = [raw_bytes(event) + b"\n" for event in events]
        with self._lock:
            self._check_room(_size(self._files()), lines)
            if self._file is None or not self._file.exists():
                self._file = self._new_file(".jsonl")
            _append(self._file, lines)

    def reject(self, event: bytes, reason: str) -> None:
        """Keep an event that the collector rejected. Raise if there is no room for it."""
        kept = RejectedEvent(reason=reason, event=event.decode(errors="replace"))
        lines = [msgspec.json.encode(kept) + b"\n"]
        with self._lock:
            self._check_room(_size(self._rejected_files()), lines, share=_REJECTED_SHARE)
            if self._rejected_file is None or not self._rejected_file.exists():
                self._rejected_file = self._new_file(_REJECTED)
            _append(self._rejected_file, lines)

    def rejected(self) -> Iterator[RejectedEvent]:
        """Yield the events that the collector rejected."""
        for path in self._rejected_files():
            with contextlib.suppress(FileNotFoundError):
                yield from map(_decode_rejected, path.read_bytes().splitlines())

    def retry_rejected(self) -> int:
        """Put the rejected events among those to send, and return their number."""
        count = 0
        for path in self._rejected_files():
            events = [
                _decode_rejected(line).event.encode() for line in path.read_bytes().splitlines()
            ]
            self.add(events)
            path.unlink()
            count += len(events)
        return count

    def _check_room(self, used: int, lines: list[bytes], *, share: float = 1) -> None:
        limit_mb = settings.read_number(settings.SPOOL_MB)
        if used + sum(map(len, lines)) > limit_mb * 2**20 * share:
            with (self.folder / _DROPPED).open("a") as file:
                file.write(f"{len(lines)}\n")
            raise SpoolFullError(str(self.folder), len(lines), limit_mb)

    def _new_file(self, suffix: str) -> Path:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.folder / f"{os.getpid()}-{uuid.uuid4().hex}{suffix}"
        path.touch(mode=0o600)
        return path

    def drain(self, send: Callable[[Sequence[Event | bytes]], None]) -> int:
        """Send all events, oldest file first, and return their number; stop at a failure."""
        sent = 0
        for path in self._waiting():
            taken = path if path.suffix == _TAKEN else path.with_suffix(_TAKEN)
            with self._lock, contextlib.suppress(FileNotFoundError):
                path.rename(taken)
                os.utime(taken)
            if not taken.exists():
                continue  # another process took it
            events = taken.read_bytes().splitlines()
            for start in range(0, len(events), _BATCH):
                try:
                    send(events[start : start + _BATCH])
                except BaseException:
                    taken.write_bytes(b"".join(event + b"\n" for event in events[start:]))
                    taken.rename(taken.with_suffix(".jsonl"))
                    raise
                sent += len(events[start : start + _BATCH])
            taken.unlink()
        return sent

    def state(self) -> SpoolState:
        """Return how many files, events and bytes there are, and how many events were dropped."""
        files = [path for path in self._files() if path.exists()]
        bodies = [path.read_bytes() for path in files]
        return SpoolState(
            files=len(files),
            events=sum(body.count(b"\n") for body in bodies),
            size=sum(map(len, bodies)),
            dropped=self._dropped(),
            rejected=sum(1 for _ in self.rejected()),
        )

    def _dropped(self) -> int:
        try:
            return sum(map(int, (self.folder / _DROPPED).read_text("ascii").split()))
        except FileNotFoundError:
            return 0

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted([*self.folder.glob("*.jsonl"), *self.folder.glob(f"*{_TAKEN}")])

    def _rejected_files(self) -> list[Path]:
        return sorted(self.folder.glob(f"*{_REJECTED}")) if self.folder.is_dir() else []

    def _waiting(self) -> Iterator[Path]:
        for path in sorted(self._files(), key=_age):
            if path.suffix != _TAKEN or _age(path) < time.time() - _ABANDONED_AFTER:
                yield path


def _size(files: list[Path]) -> int:
    size = 0
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # another process sent it
            size += path.stat().st_size
    return size


def _append(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


def _decode_rejected(line: bytes) -> RejectedEvent:
    return msgspec.json.decode(line, type=RejectedEvent)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
