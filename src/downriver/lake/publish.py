"""The lake's events into the store of a server, in bulk. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.events import parse_event
from downriver.lake.snapshots import read_current

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.lake.places import Folder
    from downriver.store import Store

_AT_ONCE = 2000  # events a transaction: their facts are merged before they are written


class Published(msgspec.Struct):
    """What came of publishing."""

    events: int = 0
    duplicates: int = 0


def publish(
    folder: Folder,
    store: Store,
    progress: Callable[[int, int], None] = lambda done, total: None,
    *,
    after: int = 0,
) -> Published:
    """Append to a store every event of the lake that it does not hold; `progress(done, total)`.

    With `after`, only those of later batches than the one of this number.

    The store's log stays the truth: its catalog can be rebuilt from it. Interrupted, it can be run
    again, as the store recognises what it has.
    """
    snapshot = read_current(folder)
    batches = [batch for batch in snapshot.batches if batch.number > after]
    total = sum(batch.events for batch in batches)
    published = Published()
    for batch in batches:
        for bodies in folder.scan_column(f"{batch.path}/events", "body", _AT_ONCE):
            _append(store, bodies, published)
            progress(published.events + published.duplicates, total)
    return published


def _append(store: Store, bodies: list[bytes], published: Published) -> None:
    receipts = store.append([parse_event(body) for body in bodies])
    repeated = sum(receipt.duplicate for receipt in receipts)
    published.duplicates += repeated
    published.events += len(receipts) - repeated
