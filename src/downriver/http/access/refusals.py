"""Refused requests in the audit log: counted in memory, written about once a second."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import msgspec
from anyio import to_thread

from downriver.errors import StoreError
from downriver.store import AuditAct

if TYPE_CHECKING:
    from starlette.types import Scope

    from downriver.service import Lineage

PRINCIPAL = "downriver.principal"  # in the scope of a request: its sender
log = logging.getLogger("downriver")

_INTERVAL = 1.0  # seconds between two writes
_MOST_DIFFERENT = 1_000  # refusals in memory; further ones are only counted


class RefusalLog:
    """Collects refusals. A flood of them costs one small write a second, and no request waits."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._waiting: dict[tuple[str, str], AuditAct] = {}
        self._lock = threading.Lock()
        self._writing: asyncio.Task[None] | None = None

    def add(self, scope: Scope, route: str, detail: str) -> None:
        """Count a refused request. The first request of a kind gives the detail."""
        principal = scope.get(PRINCIPAL)
        actor, target = "" if principal is None else principal.id, f"{scope['method']} {route}"
        with self._lock:
            key = (actor, target) if len(self._waiting) < _MOST_DIFFERENT else ("", "others")
            act = self._waiting.get(key) or AuditAct(key[0], "refused", key[1], detail, 0)
            self._waiting[key] = msgspec.structs.replace(act, count=act.count + 1)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._write_soon())

    def write(self) -> None:
        """Write the refusals that were counted so far."""
        with self._lock:
            acts, self._waiting = list(self._waiting.values()), {}
        if not acts:
            return
        try:
            self._lineage.admin.record(acts)
        except StoreError as exc:
            log.warning("%s refusals are missing in the audit log: %s", len(acts), exc.message)

    async def _write_soon(self) -> None:
        try:
            await asyncio.sleep(_INTERVAL)
        finally:
            self._writing = None
        await to_thread.run_sync(self.write)
