"""Opening a tracker: on a store here, on a server, or in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from downriver import settings
from downriver.capture.emit import Spool
from downriver.sending import open_spool
from downriver.service import Lineage
from downriver.store import MEMORY
from downriver.tracker.awaited import Tracker
from downriver.tracker.remote import RemoteLineage
from downriver.tracker.sync import SyncTracker


def lineage(location: str | None = None, *, create: bool = True) -> Tracker:
    """Open the lineage at `location`: a directory, postgresql://…, a server's URL or `:memory:`.

    Without one it is DOWNRIVER_URL, else DOWNRIVER_STORE, else the nearest `.downriver/`. A store
    that is not there is made, unless `create` says not to.
    """
    return Tracker(lineage_sync(location, create=create))


def lineage_sync(location: str | None = None, *, create: bool = True) -> SyncTracker:
    """Open a tracker for code that does not await; what is given is as for `lineage`."""
    target = location or settings.read_text(settings.URL)
    if target.startswith(("http://", "https://")):
        spool = open_spool()
        remote = RemoteLineage(target, settings.read_text(settings.API_KEY), spool)
        return SyncTracker(remote, spool)
    return SyncTracker(Lineage.open(location, create=create), _spool_beside(location))


def _spool_beside(location: str | None) -> Spool:
    """Return where the events of one store wait: those of another must not get into it."""
    if location == MEMORY:
        return Spool(Path(tempfile.gettempdir()) / "downriver-memory-spool")
    if not location or "://" in location:
        return open_spool()
    path = Path(location).expanduser()
    return Spool((path.parent if path.suffix == ".db" else path) / "spool")
