"""What may go: old versions, and folders that no version names. Needs no Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from downriver.lake.moments import drop_as_of, list_as_of
from downriver.lake.snapshots import drop_version, list_versions, read_version

if TYPE_CHECKING:
    from downriver.lake.places import Folder
    from downriver.lake.snapshots import Snapshot

_LAYERS = ("bronze", "builds")
_GRACE = 24 * 3600  # a younger folder may belong to a process that has not committed yet


class Cleaned(msgspec.Struct):
    """What was removed."""

    versions: list[int]
    folders: list[str]


def clean(folder: Folder, keep: int, *, grace: float = _GRACE) -> Cleaned:
    """Remove all versions but the last `keep`, and the folders that no other version names."""
    versions = list_versions(folder)
    old, kept = versions[:-keep], versions[-keep:]
    named = {path for version in kept for path in _folders(read_version(folder, version))}
    named |= _forget_as_of(folder, named)
    # Versions first: killed in between, what remains is folders that nobody names.
    was_named = {path for version in old for path in _folders(read_version(folder, version))}
    for version in old:
        drop_version(folder, version)
    present = {f"{layer}/{name}" for layer in _LAYERS for name in folder.names(layer)}
    unnamed = sorted(present - named)
    gone = [p for p in unnamed if p in was_named or folder.age(p, time.time()) > grace]
    for path in gone:
        folder.remove(path)
    return Cleaned(old, gone)


def _forget_as_of(folder: Folder, named: set[str]) -> set[str]:
    """Forget builds as of times whose events are no longer there; return the folders of others."""
    kept: set[str] = set()
    for until, snapshot in list_as_of(folder):
        if all(batch.path in named for batch in snapshot.batches):
            kept |= _folders(snapshot)
        else:
            drop_as_of(folder, until)
    return kept


def _folders(snapshot: Snapshot) -> set[str]:
    """Return the folders, two levels deep, in which what a version names lies."""
    batches = {batch.path for batch in snapshot.batches}
    builds = {"/".join(stored.path.split("/")[:2]) for stored in snapshot.tables.values()}
    return batches | builds
