"""The `watch` section of downriver.yml: limits of drift, schedules and alert channels."""

from __future__ import annotations

import datetime as dt
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from downriver.errors import InvalidRequestError
from downriver.govern.drift.runs import parse_period, parse_schedule, parse_zone
from downriver.govern.drift.series import DriftLimits
from downriver.impact.changes.request import read_yaml
from downriver.impact.policy.rules import POLICY_FILE
from downriver.model.governance import Finding, FindingKind, Severity

if TYPE_CHECKING:
    from downriver.govern.drift.runs import JobSchedule

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_CLOCK = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_SECOND = 1_000_000
_MINUTES_A_DAY = 1440
_WEEK = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class AlertChannel(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="type"
):
    """The fields of every channel: a name and a filter."""

    name: str = ""
    min_severity: Severity = Severity.INFO
    entities: list[str] = []
    owners: list[str] = []

    def matches_filter(self, finding: Finding) -> bool:
        """Return whether a finding matches the filter of this channel."""
        return (
            finding.severity.rank >= self.min_severity.rank
            and any(fnmatchcase(finding.entity, pattern) for pattern in self.entities or ("*",))
            and (not self.owners or bool(set(self.owners) & set(finding.owners)))
        )


class FileChannel(AlertChannel, tag="file", kw_only=True, frozen=True):
    """Appends one JSON object per line to a file."""

    path: str


class WebhookChannel(AlertChannel, tag="webhook", kw_only=True, frozen=True):
    """A POST of JSON."""

    url: str
    timeout_seconds: Annotated[float, Meta(gt=0)] = 10.0


class SlackChannel(AlertChannel, tag="slack", kw_only=True, frozen=True):
    """A message to an incoming webhook of Slack, or of a compatible service."""

    url: str
    timeout_seconds: Annotated[float, Meta(gt=0)] = 10.0


class EmailChannel(AlertChannel, tag="email", kw_only=True, frozen=True):
    """A mail by SMTP."""

    host: str
    to: Annotated[list[str], Meta(min_length=1)]
    sender: str = msgspec.field(name="from")
    port: Annotated[int, Meta(gt=0, lt=65_536)] = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password: str | None = None
    timeout_seconds: Annotated[float, Meta(gt=0)] = 20.0


AnyChannel: TypeAlias = FileChannel | WebhookChannel | SlackChannel | EmailChannel


class QuietHours(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Hours in which alerts are delayed, except those of severity `unless` or worse."""

    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    timezone: str = "UTC"
    whole_days: list[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]] = []
    unless: Severity | None = None

    def over_at(self, now: int, severity: Severity) -> int:
        """Return when an alert may be sent: now, or at the end of the quiet hours."""
        if self.unless is not None and severity.rank >= self.unless.rank:
            return now
        moment = dt.datetime.fromtimestamp(now / _SECOND, parse_zone(self.timezone, "timezone"))
        if not self._is_quiet(moment):
            return now
        moment = moment.replace(second=0, microsecond=0)
        for _ in range(8 * _MINUTES_A_DAY):
            moment += dt.timedelta(minutes=1)
            if not self._is_quiet(moment):
                return int(moment.timestamp() * _SECOND)
        return now  # every minute of the week is quiet: a configuration error

    def _is_quiet(self, moment: dt.datetime) -> bool:
        if _WEEK[moment.weekday()] in self.whole_days:
            return True
        start, end = _minutes(self.start), _minutes(self.end)
        at = moment.hour * 60 + moment.minute
        return start <= at < end if start <= end else at >= start or at < end


class IgnoreRule(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Findings to ignore, by entity and kind (all kinds if none is given)."""

    entity: str = "*"
    kinds: list[FindingKind] = []

    def covers(self, finding: Finding) -> bool:
        """Return whether a finding is ignored."""
        return fnmatchcase(finding.entity, self.entity) and (
            not self.kinds or finding.kind in self.kinds
        )


class WatchConfig(DriftLimits, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The configuration of the monitor."""

    every: str = "30s"
    schedules: dict[str, str] = msgspec.field(default_factory=dict)
    timezone: str = "UTC"
    ignore: list[IgnoreRule] = msgspec.field(default_factory=list)
    severities: dict[FindingKind, Severity] = msgspec.field(default_factory=dict)
    quiet_hours: QuietHours | None = None
    channels: list[AnyChannel] = msgspec.field(default_factory=list)

    @property
    def period(self) -> float:
        """Return the number of seconds between two checks."""
        return (parse_period(self.every) or 0) / _SECOND

    def parsed_schedules(self) -> dict[str, JobSchedule]:
        """Return the configured schedules by job pattern."""
        return {
            pattern: parse_schedule(text, f"watch.schedules.{pattern}", self.timezone)
            for pattern, text in self.schedules.items()
        }

    def named_channels(self) -> dict[str, AnyChannel]:
        """Return the channels by name; the default name is the type and the position."""
        return {
            channel.name or f"{type(channel).__struct_config__.tag}-{place}": channel
            for place, channel in enumerate(self.channels, 1)
        }


def parse_watch(value: Any, field: str = "watch") -> WatchConfig:
    """Return the parsed section; missing fields have their defaults."""
    try:
        watch: WatchConfig = msgspec.convert({} if value is None else value, WatchConfig)
    except msgspec.ValidationError as exc:
        raise InvalidRequestError(field, str(exc)) from exc
    _check(watch, field)
    return watch


def read_watch(path: Path | None) -> WatchConfig:
    """Return the section of a file, else of `downriver.yml` here, else the defaults."""
    if path is None:
        path = Path(POLICY_FILE)
        if not path.exists():
            return WatchConfig()
    content = read_yaml(path, "--config")
    if content is not None and not isinstance(content, dict):
        raise InvalidRequestError(str(path), "must be a mapping with a section `watch`")
    return parse_watch((content or {}).get("watch"), f"{path}: watch")


def _check(watch: WatchConfig, field: str) -> None:
    if parse_period(watch.every) is None:
        raise InvalidRequestError(
            f"{field}.every", f"{watch.every!r} is not a period such as 30s or 5m"
        )
    parse_zone(watch.timezone, f"{field}.timezone")
    watch.parsed_schedules()
    if watch.quiet_hours is not None:
        _check_quiet(watch.quiet_hours, f"{field}.quiet_hours")
    if len(watch.named_channels()) < len(watch.channels):
        raise InvalidRequestError(f"{field}.channels", "two channels have the same name")
    for place, channel in enumerate(watch.channels):
        _check_channel(channel, f"{field}.channels[{place}]")


def _check_quiet(quiet: QuietHours, field: str) -> None:
    for name, text in (("from", quiet.start), ("to", quiet.end)):
        if not _CLOCK.fullmatch(text):
            raise InvalidRequestError(f"{field}.{name}", f"{text!r} is not a time such as 22:00")
    parse_zone(quiet.timezone, f"{field}.timezone")


def _check_channel(channel: AnyChannel, field: str) -> None:
    secrets = {"url": getattr(channel, "url", None), "password": getattr(channel, "password", None)}
    for name, text in secrets.items():
        if text is not None and not is_secret_reference(text):
            raise InvalidRequestError(
                f"{field}.{name}",
                "is a secret: write ${NAME} and set the environment variable NAME",
            )


def is_secret_reference(text: str) -> bool:
    """Return whether a text names an environment variable, as `${NAME}`."""
    return _REFERENCE.fullmatch(text) is not None


def read_secret(text: str, field: str) -> str:
    """Return the value of the environment variable in `${NAME}`."""
    match = _REFERENCE.fullmatch(text)
    value = os.environ.get(match[1], "") if match else ""
    if match is None or not value:
        name = match[1] if match else "it names"
        raise InvalidRequestError(field, f"the environment variable {name} is not set")
    return value


def _minutes(clock: str) -> int:
    hours, _, minutes = clock.partition(":")
    return int(hours) * 60 + int(minutes)
