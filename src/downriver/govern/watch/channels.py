"""Sends queued alerts to their channels.

A sender raises `AlertNotSentError`, whose text contains no secret.
"""

from __future__ import annotations

import logging
import os
import smtplib
import ssl
import threading
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from typing import TYPE_CHECKING

import msgspec
from typing_extensions import assert_never

from downriver.errors import StoreError
from downriver.govern.http_post import HttpPost, PostFailedError, failure_reason
from downriver.govern.watch.alerts import (
    Alert,
    AlertNotSentError,
    AlertSender,
    render_mail,
    render_slack,
    render_webhook,
)
from downriver.govern.watch.config import (
    AnyChannel,
    EmailChannel,
    FileChannel,
    SlackChannel,
    WebhookChannel,
    read_secret,
)

if TYPE_CHECKING:
    from downriver.govern.watch.config import WatchConfig
    from downriver.store import Store
    from downriver.store.findings import QueuedAlert


def open_channel(channel: AnyChannel, field: str) -> AlertSender:
    """Return the sender of a channel.

    Secrets are read now, so that a wrong name fails at the start.
    """
    match channel:
        case FileChannel():
            return _File(channel)
        case WebhookChannel():
            return _Post(
                read_secret(channel.url, f"{field}.url"), channel.timeout_seconds, render_webhook
            )
        case SlackChannel():
            return _Post(
                read_secret(channel.url, f"{field}.url"), channel.timeout_seconds, render_slack
            )
        case EmailChannel():
            return _Mail(channel, field)
        case _:
            assert_never(channel)


class _File:
    def __init__(self, channel: FileChannel) -> None:
        self._path = channel.path

    def __call__(self, alerts: Sequence[Alert]) -> None:
        lines = b"".join(msgspec.json.encode(alert) + b"\n" for alert in alerts)
        try:
            # One write in append mode, so that the lines of two monitors do not mix.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, lines)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise AlertNotSentError(f"{self._path}: {exc.strerror}") from exc


class _Post:
    """Sends the alerts of a batch in one POST request."""

    def __init__(
        self, url: str, timeout: float, render: Callable[[Sequence[Alert]], bytes]
    ) -> None:
        self._post = HttpPost(url, timeout)
        self._render = render

    def __call__(self, alerts: Sequence[Alert]) -> None:
        try:
            self._post.send(self._render(alerts))
        except PostFailedError as exc:
            raise AlertNotSentError(str(exc)) from exc


class _Mail:
    def __init__(self, channel: EmailChannel, field: str) -> None:
        self._channel = channel
        secret = channel.password
        self._password = read_secret(secret, f"{field}.password") if secret else ""

    def __call__(self, alerts: Sequence[Alert]) -> None:
        try:
            with self._connect() as server:
                server.send_message(self._message(alerts))
        except (OSError, smtplib.SMTPException, ValueError) as exc:
            raise AlertNotSentError(_reason(exc)) from None  # a server may echo the request

    def _connect(self) -> smtplib.SMTP:
        channel = self._channel
        if channel.tls == "tls":
            context = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                channel.host, channel.port, timeout=channel.timeout_seconds, context=context
            )
        else:
            server = smtplib.SMTP(channel.host, channel.port, timeout=channel.timeout_seconds)
        if channel.tls == "starttls":
            server.starttls(context=ssl.create_default_context())
        if channel.username:
            server.login(channel.username, self._password)
        return server

    def _message(self, alerts: Sequence[Alert]) -> EmailMessage:
        subject, body = render_mail(alerts)
        message = EmailMessage()
        message["Subject"] = subject
        message["From"] = self._channel.sender
        message["To"] = ", ".join(self._channel.to)
        message.set_content(body)
        return message


def _reason(exc: Exception) -> str:
    if isinstance(exc, smtplib.SMTPResponseException):
        return f"{type(exc).__name__} {exc.smtp_code}"
    return failure_reason(exc)


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
        """Wake the threads, because there are new alerts."""
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
            self._postpone(name, claimed, str(exc))
            return False
        with self._store.ledger() as ledger:
            ledger.delete_sent(claimed)
        return len(claimed) == _AT_ONCE

    def _postpone(self, name: str, alerts: Sequence[QueuedAlert], reason: str) -> None:
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

    return {
        name: open_channel(channel, f"watch.channels[{place}]")
        for place, (name, channel) in enumerate(watch.named_channels().items())
    }
