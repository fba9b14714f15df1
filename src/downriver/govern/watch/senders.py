"""How alerts leave the house. A sender raises `NotToldError`, and says nothing secret in it."""

from __future__ import annotations

import http.client
import os
import smtplib
import ssl
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from urllib.parse import urlsplit

import msgspec
from typing_extensions import assert_never

from downriver.errors import InvalidRequestError
from downriver.govern.watch.alerts import (
    Alert,
    NotToldError,
    Sender,
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
    reveal,
)

_OK = range(200, 300)


def open_channel(channel: AnyChannel, field: str) -> Sender:
    """Return what sends alerts to a channel; its secrets are read now, so that a typo shows now."""
    match channel:
        case FileChannel():
            return _File(channel)
        case WebhookChannel():
            return _Post(
                reveal(channel.url, f"{field}.url"), channel.timeout_seconds, render_webhook
            )
        case SlackChannel():
            return _Post(reveal(channel.url, f"{field}.url"), channel.timeout_seconds, render_slack)
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
            # One write, in append mode: two monitors do not tear each other's lines.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            try:
                os.write(descriptor, lines)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as exc:
            raise NotToldError(f"{self._path}: {exc.strerror}") from exc


class _Post:
    def __init__(
        self, url: str, timeout: float, render: Callable[[Sequence[Alert]], bytes]
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidRequestError("url", "is no http:// or https:// URL")
        self._secure = parts.scheme == "https"
        self._host = parts.netloc.rpartition("@")[2]
        self._path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        self._timeout = timeout
        self._render = render

    def __call__(self, alerts: Sequence[Alert]) -> None:
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, timeout=self._timeout)
        headers = {"Content-Type": "application/json", "User-Agent": "downriver"}
        try:
            connection.request("POST", self._path, self._render(alerts), headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as exc:
            raise NotToldError(_reason(exc)) from None  # the text may hold the URL
        finally:
            connection.close()
        if status not in _OK:
            raise NotToldError(f"answered {status}")


class _Mail:
    def __init__(self, channel: EmailChannel, field: str) -> None:
        self._channel = channel
        secret = channel.password
        self._password = reveal(secret, f"{field}.password") if secret else ""

    def __call__(self, alerts: Sequence[Alert]) -> None:
        try:
            with self._connect() as server:
                server.send_message(self._message(alerts))
        except (OSError, smtplib.SMTPException) as exc:
            raise NotToldError(_reason(exc)) from None  # a server may echo what it was sent

    def _connect(self) -> smtplib.SMTP:
        told = self._channel
        if told.tls == "tls":
            context = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                told.host, told.port, timeout=told.timeout_seconds, context=context
            )
        else:
            server = smtplib.SMTP(told.host, told.port, timeout=told.timeout_seconds)
        if told.tls == "starttls":
            server.starttls(context=ssl.create_default_context())
        if told.username:
            server.login(told.username, self._password)
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
    """Say what went wrong without the words of anyone who may repeat a secret."""
    if isinstance(exc, smtplib.SMTPResponseException):
        return f"{type(exc).__name__} {exc.smtp_code}"
    said = exc.strerror if isinstance(exc, OSError) else None
    return f"{type(exc).__name__}: {said}" if said else type(exc).__name__
