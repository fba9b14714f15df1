"""Copy events between the lake and the log of a server's store, in both directions."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidEventError, LakeError
from downriver.lake.bronze.event_files import FileState, event_batch
from downriver.lake.storage.tables import read_current_version
from downriver.openlineage import parse_event
from downriver.openlineage.files import EventRecord
from downriver.store.catalog.encoding import decompress
from downriver.store.redaction import redactions_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.lake.storage.files import Folder
    from downriver.store import CatalogReader, Store
    from downriver.store.port import LogEntry

_LOG_ENTRIES_PER_FILE = 1000


def log_source(store: Store) -> str:
    """Return the name of the log of a store among the sources of a lake."""
    return f"log of {store.url}"


def export_log(
    store: Store, before: FileState | None, folder: Folder, path: str
) -> FileState | None:
    """Write new log entries into a folder, as rows of `schemas.EVENT_RECORDS`.

    `before` is its state after the last call. Returns its state after this one, or None if there
    are no new entries. Raises LakeError if the log redacted entries that were exported before: the
    lake has their old text, and tables that it builds would contain it.
    """
    source = log_source(store)
    after = exported = before.resume if before else 0
    redacted: set[int] = set()
    with store.reader() as reader:
        last = reader.state().seq
        if last <= after:
            return None
        entries = reader.log.entries(after)
        for number in range(last):
            records = [
                _read_entry(source, entry) for entry in islice(entries, _LOG_ENTRIES_PER_FILE)
            ]
            if not records:
                break
            after = records[-1].offset
            for record in records:
                redacted.update(seq for seq in redactions_in(record.raw) if 0 < seq <= exported)
            folder.write_batch(f"{path}/part-{number:06d}.parquet", event_batch(source, records))
        redacted = {seq for seq in redacted if _is_redacted(reader, seq)}
    if redacted:
        folder.remove(path)
        count = "1 entry" if len(redacted) == 1 else f"{len(redacted):,} entries"
        raise LakeError(
            f"the log redacted {count} that the lake in {folder.location} contains with the old "
            f"text. Delete the lake, and ingest the log and its other sources again"
        )
    return FileState(source, after, 0, after)


def _is_redacted(reader: CatalogReader, seq: int) -> bool:
    """Return whether an entry has another body than the one received, as a redaction states.

    Any producer can send an event that looks like a redaction.
    """
    entry = next(reader.log.entries(seq - 1))
    return hashlib.sha256(decompress(entry.body) or b"").digest() != entry.digest


def _read_entry(source: str, entry: LogEntry) -> EventRecord:
    raw = decompress(entry.body)
    if raw is None:
        return EventRecord(source, None, "damaged bytes in the store", entry.body, entry.seq)
    try:
        return EventRecord(source, parse_event(raw), None, raw, entry.seq)
    except InvalidEventError as exc:
        return EventRecord(source, None, exc.message, raw, entry.seq)


_EVENTS_PER_TRANSACTION = 2000  # their facts are merged before they are written


class PublishReport(msgspec.Struct):
    """The number of events that were added to a store, and of events that it already had."""

    events: int = 0
    duplicates: int = 0


def publish(
    folder: Folder,
    store: Store,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    after: int = 0,
) -> PublishReport:
    """Append the events of the lake to a store; calls `progress(done, total)`.

    With `after`, only events of batches with a higher number. An interrupted call can be repeated:
    the store recognises the events that it has.
    """
    snapshot = read_current_version(folder)
    batches = [batch for batch in snapshot.batches if batch.number > after]
    total = sum(batch.events for batch in batches)
    published = PublishReport()
    for batch in batches:
        for bodies in folder.scan_column(f"{batch.path}/events", "body", _EVENTS_PER_TRANSACTION):
            _append(store, bodies, published)
            progress(published.events + published.duplicates, total)
    return published


def _append(store: Store, bodies: list[bytes], published: PublishReport) -> None:
    receipts = store.append([parse_event(body) for body in bodies])
    repeated = sum(receipt.duplicate for receipt in receipts)
    published.duplicates += repeated
    published.events += len(receipts) - repeated
