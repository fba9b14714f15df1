"""Creates, stores and verifies checkpoints of the log, and exports the audit log."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from downriver import settings
from downriver.errors import DownriverError, InvalidRequestError
from downriver.govern.audit.checkpoints import (
    check_checkpoints,
    check_place,
    keep_checkpoint,
    sign_checkpoint,
)
from downriver.govern.signing_key import key_path, load_signing_key
from downriver.openlineage.wire import render_time
from downriver.service.admin import AdminApi
from downriver.service.session import now
from downriver.store import AuditFilter
from downriver.store.audit import AuditAct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from downriver.govern.audit.checkpoints import Checkpoint
    from downriver.service.session import StoreSession
    from downriver.store import AuditEntry, Verification

log = logging.getLogger(__name__)

_PAGE = 1_000  # entries of the audit log


class CheckpointApi:
    """Signed checkpoints of the log. Call it to make one."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, to: str | None = None) -> Checkpoint:
        """Return a signed checkpoint of the log, and write it to a place if one is given."""
        if to is not None:
            check_place(to)
        key = load_signing_key(key_path(self._session.store))
        with self._session.store.reader() as reader:
            entries, chain = reader.log.head()
        made = sign_checkpoint(entries, chain, render_time(now()), key)
        if to is not None:
            keep_checkpoint(made, to)
        detail = f"{made.entries}:{made.chain}"
        target = "" if to is None else to.rpartition("@")[2]  # without a password
        self._session.store.record([AuditAct.now("checkpoint", target, detail)])
        return made

    def verify(
        self,
        checkpoints: Sequence[Checkpoint],
        *,
        key: str | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Verification:
        """Recompute the hash chain and compare it with every checkpoint.

        Without `key`, the checkpoints must be signed by the key of this store.
        """
        trusted = key or load_signing_key(key_path(self._session.store)).public
        anchors = check_checkpoints(checkpoints, trusted)
        return AdminApi(self._session).verify(anchors=anchors, progress=progress)

    @contextmanager
    def schedule(self) -> Iterator[None]:
        """Keep a checkpoint at every interval of the settings, while the context is open."""
        place = settings.read_text(settings.CHECKPOINT_TO)
        if not place:
            yield
            return
        minutes = settings.read_number(settings.CHECKPOINT_MINUTES)
        try:
            check_place(place)
        except InvalidRequestError as exc:
            raise InvalidRequestError(settings.CHECKPOINT_TO.name, exc.message) from exc
        timer = _CheckpointTimer(self, place, minutes * 60)
        try:
            yield
        finally:
            timer.stop()

    def audit_entries(
        self, *, actor: str | None = None, action: str | None = None, since: int | None = None
    ) -> Iterator[AuditEntry]:
        """Yield all entries of the audit log, the newest first."""
        before: int | None = None
        while True:
            wanted = AuditFilter(actor, action, since, before, _PAGE)
            page = AdminApi(self._session).audit_log(wanted)
            yield from page
            if len(page) < _PAGE:
                return
            before = page[-1].id


class _CheckpointTimer:
    """Keeps a checkpoint at once, at every interval, and when it is stopped."""

    def __init__(self, make: CheckpointApi, place: str, seconds: float) -> None:
        self._make = make
        self._place = place
        self._seconds = seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join(60)

    def _run(self) -> None:
        self._keep()
        while not self._stopped.wait(self._seconds):
            self._keep()
        self._keep()

    def _keep(self) -> None:
        try:
            self._make(self._place)
        except DownriverError as exc:
            log.warning(
                "the checkpoint could not be stored; the next one is written as scheduled: %s",
                exc.message,
            )
