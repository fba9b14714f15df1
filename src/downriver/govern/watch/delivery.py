"""Delivers queued alerts to their channels; the channels are independent."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import StoreError
from downriver.govern.watch.alerts import Alert, AlertNotSentError, AlertSender

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.govern.watch.config import WatchConfig
    from downriver.store import Store
    from downriver.store.findings import QueuedAlert

log = logging.getLogger("downriver")

_SECOND = 1_000_000
_AT_ONCE = 100
_LEASE = 300 * _SECOND  # longer than any attempt takes
_FIRST_WAIT, _LONGEST_WAIT = 15 * _SECOND, 900 * _SECOND
_LOOK = 5.0  # seconds between two checks of the queue


class AlertDispatcher:
    """One thread per channel, which sends the alerts in its queue in the store."""

    def __init__(self, store: Store, watch: WatchConfig, clock: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._senders = _open_all(watch)
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        for name, sender in self._senders.items():
            thread = threading.Thread(
                target=self._work, args=(name, sender), name=f"downriver-alerts-{name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def wake(self) -> None:
        """Wake the threads: there are new alerts."""
        self._woken.set()

    def stop(self, timeout: float) -> None:
        """Finish the current attempts; other alerts stay in the store."""
        self._stopped.set()
        self._woken.set()
        for thread in self._threads:
            thread.join(timeout)

    def send_all(self) -> None:
        """Send to every channel once, in parallel, and return when all are done."""
        threads = [
            threading.Thread(target=self._send_due, args=(name, sender), daemon=True)
            for name, sender in self._senders.items()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _work(self, name: str, sender: AlertSender) -> None:
        while not self._stopped.is_set():
            self._send_due(name, sender)
            self._woken.wait(_LOOK)
            self._woken.clear()

    def _send_due(self, name: str, sender: AlertSender) -> None:
        try:
            while self._send_batch(name, sender) and not self._stopped.is_set():
                pass
        except StoreError as exc:
            log.warning("channel %s: %s; its alerts stay queued", name, exc.message)

    def _send_batch(self, name: str, sender: AlertSender) -> bool:
        """Send a batch; return whether there may be more alerts due."""
        now = self._clock()
        with self._store.ledger() as ledger:
            claimed = ledger.claim(name, now, now + _LEASE, _AT_ONCE)
        if not claimed:
            return False
        try:
            sender([msgspec.json.decode(alert.body, type=Alert) for alert in claimed])
        except AlertNotSentError as exc:
            self._put_off(name, claimed, str(exc))
            return False
        with self._store.ledger() as ledger:
            ledger.delete_sent(claimed)
        return len(claimed) == _AT_ONCE

    def _put_off(self, name: str, alerts: Sequence[QueuedAlert], reason: str) -> None:
        tries = max(alert.attempts for alert in alerts)
        wait = min(_FIRST_WAIT * 2 ** min(tries, 10), _LONGEST_WAIT)
        log.warning("channel %s: %s; %d alerts are sent again later", name, reason, len(alerts))
        with self._store.ledger() as ledger:
            ledger.postpone(alerts, self._clock() + wait, reason)


def try_channels(watch: WatchConfig, alert: Alert) -> dict[str, str | None]:
    """Send one alert directly to every channel; return the reason for each failure."""
    tried: dict[str, str | None] = {}
    for name, sender in _open_all(watch).items():
        try:
            sender([alert])
        except AlertNotSentError as exc:
            tried[name] = str(exc)
        else:
            tried[name] = None
    return tried


def _open_all(watch: WatchConfig) -> dict[str, AlertSender]:
    from downriver.govern.watch.channels import open_channel  # mail and TLS are slow to import

    return {
        name: open_channel(channel, f"watch.channels[{place}]")
        for place, (name, channel) in enumerate(watch.named_channels().items())
    }
