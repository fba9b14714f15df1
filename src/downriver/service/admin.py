"""Administration of the store: its state, its hash chain, API keys and the audit log."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from downriver.openlineage.wire import render_time
from downriver.service.session import now
from downriver.store import (
    ApiKey,
    CatalogCounts,
    Verification,
    key_digest,
    parse_role,
    verify_chain,
    write_backup,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from downriver.service.session import StoreSession
    from downriver.store import AuditAct, AuditEntry, AuditFilter


class Status(msgspec.Struct, kw_only=True):
    """The location of a store, and the size of its content."""

    store: str
    counts: CatalogCounts
    head: int
    last_received: str | None


class AdminApi:
    """State of a store, its hash chain, and its API keys."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    @property
    def store_url(self) -> str:
        """Where the store is: a path, or a URL without its password."""
        return self._session.store.url

    def status(self) -> Status:
        """Return the state and size of the store."""
        with self._session.store.reader() as reader:
            received = reader.log.last_received_at()
            return Status(
                store=self._session.store.url,
                counts=reader.counts(),
                head=reader.state().seq,
                last_received=None if received is None else render_time(received),
            )

    def check_ready(self) -> None:
        """Raise if the store cannot store events now."""
        self._session.store.check()

    def verify(
        self,
        *,
        expected: tuple[int, bytes] | None = None,
        anchors: Mapping[int, bytes] | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Verification:
        """Recompute the log's hash chain and name the first entry that was altered."""
        with self._session.store.reader() as reader:
            verification = verify_chain(
                reader.log.entries(), expected=expected, anchors=anchors, progress=progress
            )
            _, known = reader.log_lengths()
        if (
            verification.ok and verification.entries < known
        ):  # the catalog still contains what the log lost
            verification.ok, verification.altered_seq = False, verification.entries + 1
            verification.reason = "is missing: the log was truncated"
        return verification

    def backup(
        self, path: Path, progress: Callable[[int], None] = lambda done: None
    ) -> Verification:
        """Write the store to a file while it is in use, verified by the hash chain."""
        with self._session.store.reader() as reader:
            return write_backup(reader, partial(verify_chain, progress=progress), path)

    def restore(
        self, path: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Verification:
        """Fill this empty store from a backup, all or nothing."""
        return self._session.store.restore(path, progress)

    def rebuild(self, progress: Callable[[int, int], None] = lambda done, total: None) -> int:
        """Drop the projections and fold the log again, to the identical catalog."""
        return self._session.store.rebuild(progress)

    def create_key(
        self,
        name: str,
        role: str,
        *,
        namespaces: Sequence[str] = (),
        expires: str | None = None,
    ) -> str:
        """Create an API key and return it. It cannot be read again later.

        `namespaces` limits it to what they match (`*` stands for any text). `expires` is a
        duration, such as 90d, 12h or 4w, or a time.
        """
        expires_at = None if expires is None else parse_expiry(expires, now())
        return self._session.store.add_key(name, parse_role(role), tuple(namespaces), expires_at)

    def revoke_key(self, name: str) -> None:
        """Revoke an API key."""
        self._session.store.revoke_key(name)

    def list_keys(self) -> list[ApiKey]:
        """Return every key, revoked ones too, without the keys themselves."""
        with self._session.store.reader() as reader:
            return reader.keys.list_all()

    def has_keys(self) -> bool:
        """Return whether requests need a key: they do after any key was created."""
        return bool(self.list_keys())

    def find_key(self, key: str) -> ApiKey | None:
        """Return a key by its secret text, or None if it is unknown or revoked."""
        with self._session.store.reader() as reader:
            return reader.keys.find(key_digest(key))

    def record(self, acts: Sequence[AuditAct]) -> None:
        """Add actions to the audit log."""
        self._session.store.record(acts)

    def audit_log(self, wanted: AuditFilter) -> list[AuditEntry]:
        """Return entries of the audit log, the newest first."""
        with self._session.store.reader() as reader:
            return reader.audit.find(wanted)


def parse_expiry(text: str, at: int) -> int:
    """Parse a period such as `90d` after `at`, or a time. Return the moment in µs."""
    from downriver.govern.drift.runs import parse_period
    from downriver.service.govern import parse_moment

    period = parse_period(text)
    return parse_moment(text, "expires") if period is None else at + period
