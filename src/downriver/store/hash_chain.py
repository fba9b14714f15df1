"""The hash chain of the log: each entry covers all entries before it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import StoreError
from downriver.store.catalog.encoding import decompress

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
    known = {**(anchors or {}), **({} if expected is None else {expected[0]: expected[1]})}
    chain, count = GENESIS, 0
    for entry in entries:
        reason = _fault(entry, count + 1, chain)
        if reason is None and known.get(entry.seq, entry.chain) != entry.chain:
            reason = "is not the expected entry"
        if reason is not None:
            return Verification(False, count, chain.hex(), count + 1, reason)
        chain, count = entry.chain, count + 1
        progress(count)
    if max(known, default=0) > count:
        return Verification(
            False, count, chain.hex(), count + 1, "is missing: the log was truncated"
        )
    return Verification(True, count, chain.hex())


def _fault(entry: LogEntry, seq: int, previous: bytes) -> str | None:
    if entry.seq != seq:
        return "is missing"
    body = decompress(entry.body)
    if body is None or hashlib.sha256(body).digest() != entry.digest:
        return "has an altered body"
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
