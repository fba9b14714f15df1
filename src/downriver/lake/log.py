"""The log of a store as a source of events."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from downriver.errors import InvalidEventError
from downriver.events import parse_event
from downriver.events.files import Found
from downriver.lake.reading import found_batch
from downriver.lake.sources import Known
from downriver.store.packing import unpack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.lake.places import Folder
    from downriver.store import Store
    from downriver.store.port import LogEntry

_AT_ONCE = 1000


def export_log(
    store: Store, before: Mapping[str, Known], folder: Folder, path: str
) -> Known | None:
    """Write the entries that are new into a folder, as rows of `tables.FOUND`.

    Returns what is known then, or None when nothing is new.
    """
    source = f"log of {store.url}"
    after = before[source].resume if source in before else 0
    with store.reader() as reader:
        last = reader.state().seq
        if last <= after:
            return None
        entries = reader.log(after)
        for number in range(last):
            found = [_found(source, entry) for entry in islice(entries, _AT_ONCE)]
            if not found:
                break
            after = found[-1].offset
            folder.write_batch(f"{path}/part-{number:06d}.parquet", found_batch(source, found))
    return Known(source, after, 0, after)


def _found(source: str, entry: LogEntry) -> Found:
    raw = unpack(entry.body)
    if raw is None:
        return Found(source, None, "the stored bytes are damaged", entry.body, entry.seq)
    try:
        return Found(source, parse_event(raw), None, raw, entry.seq)
    except InvalidEventError as exc:
        return Found(source, None, exc.message, raw, entry.seq)
