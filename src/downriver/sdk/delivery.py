"""Where captured events go: a server when one is named, else the store here."""

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

    from downriver.capture.emit import Send
    from downriver.openlineage.wire import Event
    from downriver.service import Lineage


def open_emitter(to: str | None = None) -> Emitter:
    """Return what sends events to `to`, else DOWNRIVER_URL, else the store."""
    return Emitter(open_sender(to), open_spool())


def shared_emitter() -> Emitter:
    """Return the emitter of this process for where events go now; it is closed at the end."""
    key = (settings.read_text(settings.URL), str(find_home()), settings.read_text(settings.STORE))
    with _sharing.lock:
        if key not in _sharing.emitters:
            _sharing.emitters[key] = open_emitter()
        emitter = _sharing.emitters[key]
    emitter.close_at_exit()
    return emitter


def flush_shared(timeout: float) -> bool:
    """Wait until what this process's functions did is sent or spooled; False if it takes longer."""
    with _sharing.lock:
        emitters = list(_sharing.emitters.values())
    flushed = [emitter.flush(timeout) for emitter in emitters]
    return all(flushed)


class _Sharing:
    """The emitters that this process shares."""

    def __init__(self) -> None:
        self.emitters: dict[tuple[str, str, str], Emitter] = {}
        self.renew()
        renew_in_child(self)

    def renew(self) -> None:
        self.lock = threading.Lock()


_sharing = _Sharing()


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

    def __call__(self, events: Sequence[Event | bytes]) -> None:
        if self._lineage is None:
            from downriver.service import Lineage  # what a job that sends to a server needs not

            self._lineage = Lineage.open(self._location)
        self._lineage.ingest(events)
