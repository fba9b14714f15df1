"""Redaction: names that are erased from facets in the log, without a break of the hash chain.

The chain covers the hash of each body as it was received. A redacted entry keeps that hash. A
later entry, the redaction, names it with the hash of its new body. Verification accepts only that
body.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from downriver.errors import InvalidEventError
from downriver.model.ids import REDACTION_RECORDS, DatasetId
from downriver.openlineage.events import dataset_event
from downriver.openlineage.facets.custom import REDACTION, parse_redaction, render_redaction
from downriver.openlineage.wire import parse_event
from downriver.store.catalog.encoding import compress, decompress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from downriver.openlineage import Event
    from downriver.store.port import SqlTransaction

REDACTED = "[redacted]"
_BATCH = 500
_FACETS = frozenset({"facets", "inputFacets", "outputFacets"})
# Facets of names of datasets and columns: only their texts for people are redacted.
_STRUCTURE = frozenset(
    {
        "columnLineage", "lineage", "schema", "symlinks", "lifecycleStateChange", "parent",
        "jobDependencies", "downriver_code", "downriver_same",
    }
)  # fmt: skip
_TEXTS = frozenset({"description", "doc", "message", "comment"})
_LOG = DatasetId(REDACTION_RECORDS, "log")
_MARK = REDACTION.encode()
# Tables beside the log whose bodies may contain names of people, with their key columns.
_TABLES = {"findings": "id", "verdicts": "id", "alerts": "id", "triggered": "id"}
# The fields of these tables with texts for people. Other fields are names of data or fixed words
# and stay unchanged.
_TEXTS_OF_TABLES = frozenset(
    {
        "message", "owners", "expected", "actual", "why", "resolution", "reason", "by", "waived",
        "result", "tags", "context",
    }
)  # fmt: skip


class RedactedLog(NamedTuple):
    """The redacted entries with their new hashes, and the entries that keep the name."""

    entries: dict[int, bytes]
    remaining: list[int]  # entries with the name outside facets, such as in the name of a job


class NamePattern:
    """A name as a whole word, in any letter case."""

    def __init__(self, name: str) -> None:
        self._word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        self._name = name.casefold()
        text = msgspec.json.encode(name)[1:-1].decode()
        self._json = re.compile(re.escape(text), re.IGNORECASE)
        self._bytes = (
            re.compile(re.escape(text.encode()), re.IGNORECASE) if name.isascii() else None
        )

    def is_in(self, body: bytes) -> bool:
        """Return whether a body may contain the name."""
        if b"\\u" in body:
            return True
        if self._bytes is not None:
            return self._bytes.search(body) is not None
        return self._json.search(body.decode(errors="replace")) is not None  # `Ö` is also `ö`

    def redact_text(self, text: str) -> str:
        """Return a text without the name."""
        return self._word.sub(REDACTED, text)

    def redact_event(self, raw: bytes) -> bytes:
        """Return an event without the name in its facets; the same bytes if it is not there."""
        if not self.is_in(raw):
            return raw
        try:
            content = _decode(raw)
            redacted = self._outside(content)
        except RecursionError:  # too deep to be changed: `remains_in` reports it
            return raw
        return raw if redacted == content else _encode(redacted)

    def remains_in(self, raw: bytes) -> bool:
        """Return whether a text of an event still contains the name."""
        try:
            return self.is_in(raw) and self._contains(_decode(raw))
        except RecursionError:
            return True

    def redact_body(self, body: bytes) -> bytes:
        """Return the body of a row beside the log without the name in its texts for people."""
        if not self.is_in(body):
            return body
        content = msgspec.json.decode(body)
        redacted = self._texts_for_people(content, _TEXTS_OF_TABLES)
        return body if redacted == content else msgspec.json.encode(redacted)

    def _outside(self, value: Any) -> Any:
        match value:
            case dict():
                return {
                    key: self._of_facets(each) if key in _FACETS else self._outside(each)
                    for key, each in value.items()
                }
            case list():
                return [self._outside(each) for each in value]
            case _:
                return value

    def _of_facets(self, facets: Any) -> Any:
        if not isinstance(facets, dict):
            return facets
        return {
            name: self._texts_for_people(body) if name in _STRUCTURE else self._all_texts(body)
            for name, body in facets.items()
        }

    def _texts_for_people(self, value: Any, texts: frozenset[str] = _TEXTS) -> Any:
        match value:
            case dict():
                return {
                    key: self._all_texts(each)
                    if key in texts
                    else self._texts_for_people(each, texts)
                    for key, each in value.items()
                }
            case list():
                return [self._texts_for_people(each, texts) for each in value]
            case _:
                return value

    def _all_texts(self, value: Any) -> Any:
        match value:
            case str():
                return self.redact_text(value)
            case dict():
                return {key: self._all_texts(each) for key, each in value.items()}
            case list():
                return [self._all_texts(each) for each in value]
            case _:
                return value

    def _contains(self, value: Any) -> bool:
        match value:
            case str():
                return self._name in value.casefold()  # also as a part of a word
            case dict():
                return any(self._contains(each) for pair in value.items() for each in pair)
            case list():
                return any(map(self._contains, value))
            case _:
                return False


def _decode(raw: bytes) -> Any:
    """Return the content of an event. Its facets may contain half of a surrogate pair, or 1e400."""
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:
        return json.loads(raw, parse_float=_number)


def _number(text: str) -> float | str:
    return number if math.isfinite(number := float(text)) else text


def _encode(content: Any) -> bytes:
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":")).encode()


def redact_log(tx: SqlTransaction, pattern: NamePattern, *, done: bool) -> RedactedLog:
    """Redact the entries that contain a name; without `done`, only return which."""
    changed: dict[int, bytes] = {}
    remaining: list[int] = []
    if done:
        tx.execute("UPDATE meta SET redacting = 1")  # else a trigger refuses changes of the log
    for seq, raw in _entries(tx):
        redacted = pattern.redact_event(raw)
        if redacted != raw:
            changed[seq] = hashlib.sha256(redacted).digest()
            if done:
                tx.execute("UPDATE log SET body = ? WHERE seq = ?", (compress(redacted), seq))
        if pattern.remains_in(redacted):
            remaining.append(seq)
    if done:
        _redact_tables(tx, pattern)
        tx.execute("UPDATE meta SET redacting = 0")
    return RedactedLog(changed, remaining)


def _entries(tx: SqlTransaction) -> Iterator[tuple[int, bytes]]:
    after = 0
    sql = "SELECT seq, body FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
    while rows := tx.rows(sql, (after, _BATCH)):
        for seq, body in rows:
            yield seq, decompress(bytes(body)) or b"{}"
        after = rows[-1][0]


def _redact_tables(tx: SqlTransaction, pattern: NamePattern) -> None:
    for table, key in _TABLES.items():
        for id_, body in tx.rows(f"SELECT {key}, body FROM {table}"):
            redacted = pattern.redact_body(bytes(body))
            if redacted != bytes(body):
                tx.execute(f"UPDATE {table} SET body = ? WHERE {key} = ?", (redacted, id_))


def make_redaction(entries: Mapping[int, bytes], reason: str, by: str, at: int) -> Event:
    """Return the event that records which entries were redacted."""
    hashes = {seq: digest.hex() for seq, digest in entries.items()}
    return dataset_event(_LOG, at, {REDACTION: render_redaction(hashes, reason, by)})


def redactions_in(raw: bytes) -> dict[int, bytes]:
    """Return the entries that an event redacts, with the hashes of their new bodies."""
    if _MARK not in raw:
        return {}
    try:
        dataset = parse_event(raw).wire.dataset
    except InvalidEventError:  # an altered entry
        return {}
    if not isinstance(dataset, msgspec.Struct) or dataset.namespace != _LOG.namespace:
        return {}
    return parse_redaction(bytes((dataset.facets or {}).get(REDACTION, b"{}")))
