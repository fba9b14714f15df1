"""Which systems can send lineage, and what was received from them."""

from __future__ import annotations

import msgspec


class IntegrationStatus(msgspec.Struct, kw_only=True):
    """A system, its package, and the last job received from it.

    `installed` is null if no package is needed. `last_received` is the time of the newest event.
    """

    name: str
    setup: str
    extra: str | None
    package: str | None
    installed: bool | None
    version: str | None
    guide: str
    jobs: int
    last_job: str | None
    last_received: str | None


class IntegrationList(msgspec.Struct, kw_only=True):
    """All systems by name, and those that occur only in events."""

    integrations: list[IntegrationStatus]
    others: list[str]
