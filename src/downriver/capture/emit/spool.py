"""Events that could not be sent yet: one file per process, in a folder shared by all."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from downriver import settings
from downriver.errors import SpoolFullError
from downriver.fork_safety import renew_in_child
from downriver.openlineage.wire import raw_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.openlineage.wire import Event

_BATCH = 200
_TAKEN = ".sending"
_DROPPED = "dropped"  # the file with the numbers of events that found no room
_ABANDONED_AFTER = 600.0  # seconds; the process that took the file has died


class SpoolState(NamedTuple):
    """How many files, events and bytes a spool holds, and how many events it had no room for."""

    files: int
    events: int
    size: int
    dropped: int


class Spool:
    """A folder of unsent events. Sending one twice is safe: the store recognises its hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        """Use a new file in a forked process."""
        self._file: Path | None = None
        self._lock = threading.Lock()

    def add(self, events: Sequence[Event | bytes]) -> None:
        """Store events; they are on disk when this returns. Raise if the spool is full."""
        lines = [raw_bytes(event) + b"\n" for event in events]
        limit_mb = settings.read_number(settings.SPOOL_MB)
        with self._lock:
            if self._size() + sum(map(len, lines)) > limit_mb * 2**20:
                with (self.folder / _DROPPED).open("a") as file:
                    file.write(f"{len(lines)}\n")
                raise SpoolFullError(str(self.folder), len(lines), limit_mb)
            if self._file is None or not self._file.exists():
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = self.folder / f"{os.getpid()}-{uuid.uuid4().hex}.jsonl"
                self._file.touch(mode=0o600)
            with self._file.open("ab") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(file.fileno())

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
        events = sum(body.count(b"\n") for body in bodies)
        return SpoolState(len(files), events, sum(map(len, bodies)), self._dropped())

    def _size(self) -> int:
        size = 0
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):  # another process sent it
                size += path.stat().st_size
        return size

    def _dropped(self) -> int:
        try:
            return sum(map(int, (self.folder / _DROPPED).read_text("ascii").split()))
        except FileNotFoundError:
            return 0

    def _files(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted([*self.folder.glob("*.jsonl"), *self.folder.glob(f"*{_TAKEN}")])

    def _waiting(self) -> Iterator[Path]:
        for path in sorted(self._files(), key=_age):
            if path.suffix != _TAKEN or _age(path) < time.time() - _ABANDONED_AFTER:
                yield path


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
