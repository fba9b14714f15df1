"""Where captured events go: to the server that is configured, else to the local store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from downriver import settings
from downriver.capture.emit import Emitter, HttpSender, Spool
from downriver.fork_safety import renew_in_child
from downriver.store import find_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.openlineage.wire import Event
    from downriver.service import Lineage


def open_emitter(to: str | None = None) -> Emitter:
    """Return an emitter to `to`, else to DOWNRIVER_URL, else to the store."""
    return Emitter(open_sender(to), open_spool())


def shared_emitter() -> Emitter:
    """Return this process's emitter for the configured destination; it is closed at exit."""
    key = (settings.read_text(settings.URL), str(find_home()), settings.read_text(settings.STORE))
    with _shared_emitters.lock:
        if key not in _shared_emitters.emitters:
            _shared_emitters.emitters[key] = open_emitter()
        emitter = _shared_emitters.emitters[key]
    emitter.close_at_exit()
    return emitter


def flush_shared(timeout: float) -> bool:
    """Wait until the events of all shared emitters are sent or spooled; False on a timeout."""
    with _shared_emitters.lock:
        emitters = list(_shared_emitters.emitters.values())
    flushed = [emitter.flush(timeout) for emitter in emitters]
    return all(flushed)


class _SharedEmitters:
    """The emitters of this process, by destination."""

    def __init__(self) -> None:
        self.emitters: dict[tuple[str, str, str], Emitter] = {}
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_shared_emitters = _SharedEmitters()


def open_sender(to: str | None = None) -> HttpSender | StoreSender:
    """Return a function that sends a list of events, or raises."""
    target = to or settings.read_text(settings.URL)
    if target.startswith(("http://", "https://")):
        return HttpSender(target, settings.read_text(settings.API_KEY), reject=open_spool().reject)
    # Resolved now: a job may change its working directory before the first event.
    return StoreSender(target or settings.read_text(settings.STORE) or str(find_home()))


def open_spool() -> Spool:
    """Return the spool: the folder DOWNRIVER_SPOOL, else the one beside the local store."""
    folder = settings.read_text(settings.SPOOL)
    return Spool(Path(folder) if folder else find_home() / "spool")


class StoreSender:
    """Opens the store with the first events, so that a job without events creates no store."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._lineage: Lineage | None = None

    def __call__(self, events: Sequence[Event | bytes]) -> None:
        """Store events."""
        if self._lineage is None:
            from downriver.service import Lineage  # not needed by jobs that send to a server

            self._lineage = Lineage.open(self._location)
        self._lineage.ingest(events)

    def close(self) -> None:
        """Close the store; the next event opens it again."""
        if self._lineage is not None:
            self._lineage.close()
            self._lineage = None
