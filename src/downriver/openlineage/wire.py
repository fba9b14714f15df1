"""The OpenLineage envelope. It accepts variations of producers, but requires a subject and a time.

Facets stay raw bytes here. Most are never decoded; those that are (`facets/`) are recognised by the
hash of their bytes and decoded once.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from downriver.errors import InvalidEventError
from downriver.model.facts import EventRef, RunState

RawFacets = dict[str, Raw]


class WireRun(msgspec.Struct, omit_defaults=True):
    """`run` of a RunEvent."""

    runId: str  # noqa: N815
    facets: RawFacets | None = None


class WireJob(msgspec.Struct, omit_defaults=True):
    """`job` of a RunEvent or JobEvent."""

    namespace: str
    name: str
    facets: RawFacets | None = None


class WireDataset(msgspec.Struct, omit_defaults=True):
    """A dataset of an event; `inputFacets` and `outputFacets` are about one run."""

    namespace: str
    name: str
    facets: RawFacets | None = None
    inputFacets: RawFacets | None = None  # noqa: N815
    outputFacets: RawFacets | None = None  # noqa: N815


class WireEvent(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A RunEvent, JobEvent or DatasetEvent, depending on which fields are present."""

    eventType: str | None = None  # noqa: N815
    eventTime: str  # noqa: N815
    producer: Any = None
    schemaURL: Any = None  # noqa: N815
    run: WireRun | UnsetType = UNSET
    job: WireJob | UnsetType = UNSET
    dataset: WireDataset | UnsetType = UNSET
    inputs: list[WireDataset] | None = None
    outputs: list[WireDataset] | None = None


class Event(msgspec.Struct):
    """A parsed event: its bytes as sent, their digest and time, and the decoded envelope."""

    raw: bytes
    ref: EventRef
    wire: WireEvent
    state: RunState


T = TypeVar("T")

_decode_envelope = msgspec.json.Decoder(WireEvent).decode
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MICROSECOND = dt.timedelta(microseconds=1)
_FIRST_MOMENT = (dt.datetime.min.replace(tzinfo=dt.timezone.utc) - _EPOCH) // _MICROSECOND
_LAST_MOMENT = (dt.datetime.max.replace(tzinfo=dt.timezone.utc) - _EPOCH) // _MICROSECOND
_PAST_THE_MICROSECOND = re.compile(r"(?<=[.,]\d{6})\d+")
_PATH = re.compile(r" - at `\$\.?(?P<path>[^`]*)`$")


def parse_event(raw: bytes) -> Event:
    """Parse one event, or raise InvalidEventError with the field that is wrong."""
    wire = _parse_envelope(raw)
    _check_subject(wire)
    if b"null" in raw:
        _drop_null_facets(wire)
    ref = EventRef(parse_time(wire.eventTime, "eventTime"), hashlib.sha256(raw).digest())
    return Event(raw, ref, wire, _parse_state(wire.eventType))


def _drop_null_facets(wire: WireEvent) -> None:
    """Remove null facets. Some writers, such as Marquez's API, send null for an absent facet."""
    datasets = [wire.dataset, *(wire.inputs or ()), *(wire.outputs or ())]
    sent = [part.facets for part in (wire.run, wire.job, *datasets) if part is not UNSET]
    for dataset in datasets:
        if dataset is not UNSET:
            sent += (dataset.inputFacets, dataset.outputFacets)
    for facets in filter(None, sent):
        for name in [name for name, body in facets.items() if bytes(body) == b"null"]:
            del facets[name]


def make_event(wire: WireEvent, at: int) -> Event:
    """Return the event of an envelope that this process built; its bytes are not parsed again."""
    _check_subject(wire)
    raw = msgspec.json.encode(wire)
    if b"\\u0000" in raw:  # stored as U+FFFD, in names and facets
        return parse_event(raw)
    return Event(
        raw, EventRef(at, hashlib.sha256(raw).digest()), wire, _parse_state(wire.eventType)
    )


def raw_bytes(event: Event | bytes) -> bytes:
    """Return the JSON of an event that may be parsed already."""
    return event if isinstance(event, bytes) else event.raw


def split_events(body: bytes) -> list[bytes]:
    """Return the events in a body that is one event or a JSON array of them, each as sent."""
    if body.lstrip()[:1] != b"[":
        return [body]
    start = body.index(b"[") + 1
    events = []
    # One invalid escape must not make the other events unreadable. Its replacement has the same
    # length, so that each event is found at the same place in the body as sent.
    readable = _without_unstorable(body)
    for item in decode(readable, list[Raw]):
        event = bytes(item)
        start = readable.index(event, start)
        events.append(body[start : start + len(event)])
        start += len(event)
    return events


def parse_time(text: str, field: str) -> int:
    """Return µs since the epoch. No zone means UTC; digits after the microsecond are ignored."""
    try:
        # Removed first, because msgspec rounds 23:59:59.9999999 up to the next day.
        moment = msgspec.convert(_PAST_THE_MICROSECOND.sub("", text.strip()), dt.datetime)
    except msgspec.ValidationError:
        moment = _parse_odd_time(text, field)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.timezone.utc)
    micros = (moment - _EPOCH) // _MICROSECOND
    if not _FIRST_MOMENT <= micros <= _LAST_MOMENT:  # outside the years 1 to 9999 in UTC
        raise _not_a_time(text, field)
    return micros


@lru_cache(4096)  # many edges of an answer have the same time
def render_time(micros: int) -> str:
    """Return the RFC 3339 text of a moment."""
    return (_EPOCH + micros * _MICROSECOND).isoformat().replace("+00:00", "Z")


def decode(raw: bytes, kind: type[T]) -> T:
    """Decode JSON into `kind`, or raise InvalidEventError with the field and the reason."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise _explain(exc) from exc


def _parse_envelope(raw: bytes) -> WireEvent:
    try:
        return _decode_envelope(_readable(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise _explain(exc) from exc


# Escapes that stores may reject, and `\\\\`: the character after an escaped backslash begins no
# escape.
_ESCAPE = re.compile(
    rb"\\(?:\\|u0000|u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|u[dD][89abAB][0-9a-fA-F]{2}(?P<low>\\u[dD][c-fC-F][0-9a-fA-F]{2})?)"
)


def _readable(raw: bytes) -> bytes:
    """Return the bytes to parse; the log keeps the bytes as sent.

    Some producers send escapes of NUL, which PostgreSQL text cannot hold, and of lone surrogates,
    which UTF-8 cannot hold. They are read as U+FFFD, so that the event is not rejected.
    """
    if not raw.isascii():
        raw.decode()  # the decoder does not check raw facets
    return _without_unstorable(raw)


def _without_unstorable(raw: bytes) -> bytes:
    return _ESCAPE.sub(_storable, raw) if b"\\" in raw else raw


def _storable(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape["low"] or escape[0] == rb"\\" else rb"\ufffd"


def _check_subject(wire: WireEvent) -> None:
    if wire.job is UNSET:
        if wire.run is not UNSET:
            raise InvalidEventError("job", "missing; a run belongs to a job")
        if wire.dataset is UNSET:
            raise InvalidEventError("job", "event has no job, run or dataset")
    elif not wire.job.name:
        raise InvalidEventError("job.name", "empty")
    if wire.run is not UNSET and not wire.run.runId:
        raise InvalidEventError("run.runId", "empty")


def _parse_state(event_type: str | None) -> RunState:
    try:
        return RunState[(event_type or "OTHER").upper()]
    except KeyError:
        return RunState.OTHER


_LONGEST_TIME = 100  # characters
_ODD_TIME = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,6})\d*)?)?)?"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?(?:\[[^\]]*\])?",
    re.ASCII | re.IGNORECASE,
)


def _parse_odd_time(text: str, field: str) -> dt.datetime:
    """Parse ISO 8601 that the RFC does not allow: no seconds, `+0200`, `[Europe/Paris]`."""
    match = _ODD_TIME.fullmatch(text.strip()) if len(text) <= _LONGEST_TIME else None
    if match is None:
        raise _not_a_time(text, field)
    try:
        *parts, micros, zone = match.groups()
        year, month, day, hour, minute, second = (int(part or 0) for part in parts)
        micro = int((micros or "0").ljust(6, "0"))
        return dt.datetime(year, month, day, hour, minute, second, micro, _zone(zone))
    except ValueError as exc:
        raise _not_a_time(text, field) from exc


def _not_a_time(text: str, field: str) -> InvalidEventError:
    if len(text) > _LONGEST_TIME:
        text = text[:_LONGEST_TIME] + "…"
    return InvalidEventError(
        field, f"{text!r} is not an ISO 8601 time such as 2026-01-31T08:30:00Z"
    )


def _zone(text: str | None) -> dt.timezone:
    if text is None or text.upper() in ("Z", "UTC"):
        return dt.timezone.utc
    digits = text[1:].replace(":", "").ljust(4, "0")
    offset = dt.timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return dt.timezone(-offset if text[0] == "-" else offset)


def _explain(exc: Exception) -> InvalidEventError:
    if isinstance(exc, msgspec.ValidationError):
        return _explain_shape(exc)
    if isinstance(exc, RecursionError):
        return InvalidEventError("", "the JSON is nested too deeply")
    if isinstance(exc, UnicodeDecodeError):
        return InvalidEventError("", f"the body is not UTF-8: {exc.reason} at byte {exc.start}")
    return InvalidEventError("", f"the body is not valid JSON: {exc}")


def _explain_shape(exc: msgspec.ValidationError) -> InvalidEventError:
    text = str(exc)
    match = _PATH.search(text)
    path = match["path"] if match else ""
    reason = _PATH.sub("", text).replace("`", "")
    missing = re.search(r"missing required field (\w+)", reason)
    if missing:
        path = f"{path}.{missing[1]}".lstrip(".")
        reason = "missing"
    return InvalidEventError(path, reason[:1].lower() + reason[1:])
