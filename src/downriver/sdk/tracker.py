"""The async tracker, and `lineage()`, which opens one on a store, a server or in memory."""

from __future__ import annotations

import asyncio
import functools
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from downriver import settings
from downriver.capture.emit import Spool
from downriver.sdk.delivery import open_spool
from downriver.sdk.remote import RemoteLineage
from downriver.sdk.sync_tracker import SyncTracker
from downriver.service import Lineage
from downriver.store import MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future
    from types import TracebackType
    from typing import Any

P = ParamSpec("P")
R = TypeVar("R")


def _awaited(
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return the method that runs another in a thread, with its signature and documentation."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    return call


def _awaited_future(
    start: Callable[Concatenate[SyncTracker, P], Future[R]],
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return a method that needs no thread, because what is begun ends by itself."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.wrap_future(start(self.sync, *args, **kwargs))

    return call


class Tracker:
    """Registers lineage and asks questions about it. `sync` has the same without `await`."""

    def __init__(self, sync: SyncTracker) -> None:
        self.sync = sync
        self.track = sync.track

    register_flow = _awaited_future(SyncTracker.start_flow, SyncTracker.register_flow)
    register_flows = _awaited(SyncTracker.register_flows)
    register_pipeline = _awaited(SyncTracker.register_pipeline)
    capture_sql_lineage = _awaited(SyncTracker.capture_sql_lineage)
    trace_lineage = _awaited(SyncTracker.trace_lineage)
    trace_upstream = _awaited(SyncTracker.trace_upstream)
    trace_downstream = _awaited(SyncTracker.trace_downstream)
    find_lineage_paths = _awaited(SyncTracker.find_lineage_paths)
    analyze_impact = _awaited(SyncTracker.analyze_impact)
    suggest_fix = _awaited(SyncTracker.suggest_fix)
    kpis = _awaited(SyncTracker.kpis)
    incident_report = _awaited(SyncTracker.incident_report)
    export_lineage = _awaited(SyncTracker.export_lineage)
    search_entities = _awaited(SyncTracker.search_entities)
    get_entity = _awaited(SyncTracker.get_entity)
    get_column_lineage = _awaited(SyncTracker.get_column_lineage)
    diagnose_metric = _awaited(SyncTracker.diagnose_metric)
    get_last_updated = _awaited(SyncTracker.get_last_updated)
    get_upstreams = _awaited(SyncTracker.get_upstreams)
    get_downstreams = _awaited(SyncTracker.get_downstreams)
    get_upstream_chain = _awaited(SyncTracker.get_upstream_chain)
    get_downstream_impact = _awaited(SyncTracker.get_downstream_impact)
    document_column_lineage = _awaited(SyncTracker.document_column_lineage)
    flush = _awaited(SyncTracker.flush)
    close = _awaited(SyncTracker.close)

    async def __aenter__(self) -> Tracker:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        await self.close()


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
