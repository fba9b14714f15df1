"""Where captured events go: a server when one is named, else the store here."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from downriver import settings
from downriver.capture.emit import Emitter, HttpSender, Spool
from downriver.service import Lineage
from downriver.store import find_home

if TYPE_CHECKING:
    from downriver.capture.emit import Send


def open_emitter(to: str | None = None) -> Emitter:
    """Return what sends events to `to`, else DOWNRIVER_URL, else the store."""
    return Emitter(open_sender(to), open_spool())


def shared_emitter() -> Emitter:
    """Return the emitter of this process for where events go now; it is closed at the end.

    A forked process gets its own: connections and threads of its parent are none of its.
    """
    names = (settings.read_text(settings.URL), settings.read_text(settings.STORE), str(find_home()))
    key = (os.getpid(), *names)
    with _sharing:
        if key not in _shared:
            _shared[key] = open_emitter()
        emitter = _shared[key]
    emitter.close_at_exit()
    return emitter


def flush_shared(timeout: float) -> bool:
    """Wait until what this process's functions did is sent or spooled; False if it takes longer."""
    with _sharing:
        emitters = [emitter for key, emitter in _shared.items() if key[0] == os.getpid()]
    flushed = [emitter.flush(timeout) for emitter in emitters]
    return all(flushed)


_shared: dict[tuple[int, str, str, str], Emitter] = {}
_sharing = threading.Lock()


def _share_anew() -> None:
    """Make a new lock in a forked process: someone may have held the old one."""
    global _sharing
    _sharing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_share_anew)


def open_sender(to: str | None = None) -> Send:
    """Return what sends a list of events, and raises when it cannot."""
    target = to or settings.read_text(settings.URL)
    if target.startswith(("http://", "https://")):
        return HttpSender(target, settings.read_text(settings.API_KEY))
    # Found now: a job may change its working directory before the first event.
    return _StoreSender(target or settings.read_text(settings.STORE) or str(find_home()))


def open_spool() -> Spool:
    """Return the folder of events that wait: DOWNRIVER_SPOOL, else beside the store here."""
    folder = settings.read_text(settings.SPOOL)
    return Spool(Path(folder) if folder else find_home() / "spool")


class _StoreSender:
    """Opens the store when the first events come: a job that writes nothing makes none."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._lineage: Lineage | None = None

    def __call__(self, events: list[bytes]) -> None:
        if self._lineage is None:
            self._lineage = Lineage.open(self._location)
        self._lineage.ingest(events)
