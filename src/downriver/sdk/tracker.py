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
from downriver.sdk.local import LocalLineage
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


def _async(
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return an async method that runs `method` in a thread, with its signature and docstring."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(method, self.sync, *args, **kwargs)

    return call


def _async_future(
    start: Callable[Concatenate[SyncTracker, P], Future[R]],
    method: Callable[Concatenate[SyncTracker, P], R],
) -> Callable[Concatenate[Tracker, P], Coroutine[Any, Any, R]]:
    """Return an async method that awaits the future of `start`, without a thread."""

    @functools.wraps(method)
    async def call(self: Tracker, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.wrap_future(start(self.sync, *args, **kwargs))

    return call


class Tracker:
    """Registers lineage and answers questions about it. `sync` is the same without `await`."""

    def __init__(self, sync: SyncTracker) -> None:
        self.sync = sync
        self.track = sync.track

    register_flow = _async_future(SyncTracker.start_flow, SyncTracker.register_flow)
    register_flows = _async(SyncTracker.register_flows)
    register_pipeline = _async(SyncTracker.register_pipeline)
    capture_sql_lineage = _async(SyncTracker.capture_sql_lineage)
    trace_lineage = _async(SyncTracker.trace_lineage)
    trace_upstream = _async(SyncTracker.trace_upstream)
    trace_downstream = _async(SyncTracker.trace_downstream)
    find_lineage_paths = _async(SyncTracker.find_lineage_paths)
    analyze_impact = _async(SyncTracker.analyze_impact)
    suggest_fix = _async(SyncTracker.suggest_fix)
    mark_same = _async(SyncTracker.mark_same)
    list_same = _async(SyncTracker.list_same)
    find_cuts = _async(SyncTracker.find_cuts)
    kpis = _async(SyncTracker.kpis)
    incident_report = _async(SyncTracker.incident_report)
    export_lineage = _async(SyncTracker.export_lineage)
    search_entities = _async(SyncTracker.search_entities)
    get_entity = _async(SyncTracker.get_entity)
    get_column_lineage = _async(SyncTracker.get_column_lineage)
    diagnose_metric = _async(SyncTracker.diagnose_metric)
    get_last_updated = _async(SyncTracker.get_last_updated)
    get_upstreams = _async(SyncTracker.get_upstreams)
    get_downstreams = _async(SyncTracker.get_downstreams)
    get_upstream_chain = _async(SyncTracker.get_upstream_chain)
    get_downstream_impact = _async(SyncTracker.get_downstream_impact)
    document_column_lineage = _async(SyncTracker.document_column_lineage)
    flush = _async(SyncTracker.flush)
    close = _async(SyncTracker.close)

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
    """Open the lineage at `location`: a directory, postgresql://…, a server URL or `:memory:`.

    The default is DOWNRIVER_URL, else DOWNRIVER_STORE, else the nearest `.downriver/`. A missing
    store is created unless `create` is false.
    """
    return Tracker(lineage_sync(location, create=create))


def lineage_sync(location: str | None = None, *, create: bool = True) -> SyncTracker:
    """Open a synchronous tracker. The arguments are those of `lineage`."""
    target = location or settings.read_text(settings.URL)
    if target.startswith(("http://", "https://")):
        spool = open_spool()
        remote = RemoteLineage(target, settings.read_text(settings.API_KEY), spool)
        return SyncTracker(remote, spool)
    return SyncTracker(LocalLineage(Lineage.open(location, create=create)), _spool_beside(location))


def _spool_beside(location: str | None) -> Spool:
    """Return the spool of one store. Each store has its own, so that events are not mixed."""
    if location == MEMORY:
        return Spool(Path(tempfile.gettempdir()) / "downriver-memory-spool")
    if not location or "://" in location:
        return open_spool()
    path = Path(location).expanduser()
    return Spool((path.parent if path.suffix == ".db" else path) / "spool")
