"""The hash chain of the log: each entry covers all entries before it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import StoreError
from downriver.store.catalog.encoding import decompress
from downriver.store.redaction import redactions_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from downriver.store.port import LogEntry

GENESIS = hashlib.sha256(b"downriver log").digest()


class Verification(msgspec.Struct):
    """Whether the log is intact, and the first entry that was altered."""

    ok: bool
    entries: int
    head: str
    altered_seq: int | None = None
    reason: str | None = None
    redacted: int = 0  # entries with a body that a later redaction names


def chain_value(previous: bytes, seq: int, received_at: int, digest: bytes) -> bytes:
    """Return the chain value of an entry, which covers all entries before it."""
    position = seq.to_bytes(8, "big") + received_at.to_bytes(8, "big", signed=True)
    return hashlib.sha256(previous + position + digest).digest()


def verify_chain(
    entries: Iterable[LogEntry],
    *,
    expected: tuple[int, bytes] | None = None,
    anchors: Mapping[int, bytes] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Verification:
    """Recompute the chain.

    `expected` is a (seq, chain) that was saved in another place, `anchors` are several. With them,
    a log that was truncated or replaced as a whole is also detected.
    """
    redactions = _Redactions()
    known = {**(anchors or {}), **({} if expected is None else {expected[0]: expected[1]})}
    chain, count = GENESIS, 0
    for entry in entries:
        reason = _fault(entry, count + 1, chain, redactions)
        if reason is None and known.get(entry.seq, entry.chain) != entry.chain:
            reason = "is not the expected entry"
        if reason is not None:
            return redactions.judge(Verification(False, count, chain.hex(), count + 1, reason))
        chain, count = entry.chain, count + 1
        progress(count)
    if max(known, default=0) > count:
        missing = "is missing: the log was truncated"
        return redactions.judge(Verification(False, count, chain.hex(), count + 1, missing))
    return redactions.judge(Verification(True, count, chain.hex()))


class _Redactions:
    """Entries whose body is not the one received, and the redactions that name them."""

    def __init__(self) -> None:
        self.changed: dict[int, bytes] = {}
        self._allowed: dict[int, set[bytes]] = {}

    def read(self, seq: int, body: bytes, digest: bytes) -> None:
        """Note an entry; a redaction names only entries before it."""
        found = hashlib.sha256(body).digest()
        if found != digest:
            self.changed[seq] = found
            return
        for other, new in redactions_in(body).items():
            if other < seq:
                self._allowed.setdefault(other, set()).add(new)

    def judge(self, found: Verification) -> Verification:
        """Return what the chain proves, or the first entry that no redaction explains."""
        wrong = (s for s, new in self.changed.items() if new not in self._allowed.get(s, ()))
        altered = min(wrong, default=None)
        if altered is None:
            found.redacted = len(self.changed)
            return found
        return Verification(False, altered - 1, found.head, altered, "has an altered body")


def _fault(entry: LogEntry, seq: int, previous: bytes, redactions: _Redactions) -> str | None:
    if entry.seq != seq:
        return "is missing"
    body = decompress(entry.body)
    if body is None:
        return "has an altered body"
    redactions.read(seq, body, entry.digest)
    if chain_value(previous, entry.seq, entry.received_at, entry.digest) != entry.chain:
        return "does not match the entry before it"
    return None


def require_whole_log(url: str, entries: int, known: int) -> None:
    """Raise if the log has fewer entries than the catalog: new entries would hide the loss."""
    if known > entries:
        raise StoreError(
            f"{url}: the log ends at entry {entries}, but the catalog was made from {known}: "
            "entries were removed. Nothing was stored. Restore the store from a backup; "
            "`downriver audit verify` names the first entry that is missing"
        )
