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
    """Whether the log is intact; if not, the first altered entry."""

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
    expected_chains = {
        **(anchors or {}),
        **({} if expected is None else {expected[0]: expected[1]}),
    }
    chain, count = GENESIS, 0
    verification: Verification | None = None
    for entry in entries:
        if verification is not None:  # the first fault: later redactions explain entries before it
            redactions.read_redaction(entry)
            continue
        reason = _fault(entry, count + 1, chain, redactions)
        if reason is None and expected_chains.get(entry.seq, entry.chain) != entry.chain:
            reason = "is not the expected entry"
        if reason is not None:
            verification = Verification(False, count, chain.hex(), count + 1, reason)
            continue
        chain, count = entry.chain, count + 1
        progress(count)
    if verification is not None:
        return redactions.judge(verification)
    if max(expected_chains, default=0) > count:
        missing = "is missing: the log was truncated"
        return redactions.judge(Verification(False, count, chain.hex(), count + 1, missing))
    return redactions.judge(Verification(True, count, chain.hex()))


class _Redactions:
    """Entries whose body is not the one received, and the redactions that name them."""

    def __init__(self) -> None:
        self.changed: dict[int, bytes] = {}
        self._entries_by_redaction: dict[int, dict[int, bytes]] = {}

    def read(self, seq: int, body: bytes, digest: bytes) -> None:
        """Add an entry."""
        body_hash = hashlib.sha256(body).digest()
        if body_hash != digest:
            self.changed[seq] = body_hash
        if entries := redactions_in(body):
            self._entries_by_redaction[seq] = entries

    def read_redaction(self, entry: LogEntry) -> None:
        """Add a redaction behind the first fault, if its body is the one received."""
        body = decompress(entry.body) or b""
        if hashlib.sha256(body).digest() == entry.digest and (entries := redactions_in(body)):
            self._entries_by_redaction[entry.seq] = entries

    def _unexplained(self) -> set[int]:
        """Return the changed entries that no redaction explains.

        A redaction may itself be redacted, if its reason contains the name. It is trusted if a
        later redaction explains its body. So redactions are read from the last to the first.
        """
        wrong = set(self.changed)
        for seq in sorted(self._entries_by_redaction, reverse=True):
            if seq in wrong:
                continue
            for other, new in self._entries_by_redaction[seq].items():
                if other < seq and self.changed.get(other) == new:
                    wrong.discard(other)
        return wrong

    def judge(self, verification: Verification) -> Verification:
        """Return what the chain proves, or the first entry that no redaction explains."""
        altered = min(self._unexplained(), default=None)
        if altered is None:
            verification.redacted = len(self.changed)
            return verification
        return Verification(False, altered - 1, verification.head, altered, "has an altered body")


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


def require_whole_log(url: str, entries: int, projected: int) -> None:
    """Raise if the log has fewer entries than the catalog: new entries would hide the loss."""
    if projected > entries:
        raise StoreError(
            f"{url}: the log ends at entry {entries}, but the catalog was made from {projected}: "
            "entries were removed. Nothing was stored. Restore the store from a backup; "
            "`downriver audit verify` names the first entry that is missing"
        )
