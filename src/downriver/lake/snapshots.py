"""What a lake holds, version by version. A version is one small file, and making it is the commit.

Everything a version names is written before it, into folders of its own, and never changed after.
So a process killed at any moment leaves the version before, and some folders that nobody names.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import LakeError, LakeNotFoundError

if TYPE_CHECKING:
    from downriver.lake.places import Folder

_VERSIONS = "versions"
PARQUET = "parquet"


class Batch(msgspec.Struct, frozen=True):
    """What one ingest added to bronze, in folders below `path`.

    `first_at` and `last_at` are the times of its earliest and latest event; a batch without them,
    as older versions made, may hold any.
    """

    number: int
    path: str
    events: int
    quarantined: int
    duplicates: int
    first_at: int | None = None
    last_at: int | None = None
    format: str = PARQUET

    def may_hold(self, first_at: int, last_at: int) -> bool:
        """False when no event of this batch is of that time."""
        if self.first_at is None or self.last_at is None:
            return self.events > 0
        return self.first_at <= last_at and first_at <= self.last_at


class Stored(msgspec.Struct, frozen=True):
    """A table as one build wrote it."""

    path: str
    rows: int
    format: str = PARQUET


class Snapshot(msgspec.Struct, frozen=True):
    """One version of a lake. `folded` is the last batch that its tables hold.

    `streams` says of each stream which of its batches was the last to be committed. Events before
    `expired_before` are gone from bronze; the facts still have what they told.
    """

    version: int = 0
    made_at: str = ""
    batches: tuple[Batch, ...] = ()
    folded: int = 0
    tables: dict[str, Stored] = msgspec.field(default_factory=dict)
    streams: dict[str, int] = msgspec.field(default_factory=dict)
    expired_before: int | None = None

    @property
    def formats(self) -> set[str]:
        """The formats its tables and batches are in."""
        stored = {table.format for table in self.tables.values()}
        return stored | {batch.format for batch in self.batches}

    @property
    def unfolded(self) -> tuple[Batch, ...]:
        """The batches that no build has taken in yet."""
        return tuple(batch for batch in self.batches if batch.number > self.folded)


def read_current(folder: Folder, *, create: bool = False) -> Snapshot:
    """Return the last version; with `create`, an empty one where there is no lake yet."""
    numbers = list_versions(folder)
    if numbers:
        return read_version(folder, numbers[-1])
    if not create:
        raise LakeNotFoundError(folder.place)
    return Snapshot()


def list_versions(folder: Folder) -> list[int]:
    """Return the numbers of all versions, the last one last."""
    names = folder.names(_VERSIONS)
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def read_version(folder: Folder, version: int) -> Snapshot:
    """Return one version."""
    if version not in list_versions(folder):
        raise LakeError(f"{folder.place} has no version {version}")
    try:
        return msgspec.json.decode(folder.read(_file(version)), type=Snapshot)
    except msgspec.DecodeError as exc:
        raise LakeError(f"{folder.place}: version {version} cannot be read: {exc}") from exc


def drop_version(folder: Folder, version: int) -> None:
    """Forget one version; what it names stays where it is."""
    folder.remove_file(_file(version))


def commit(folder: Folder, base: Snapshot, changed: Snapshot) -> Snapshot:
    """Make `changed` the version after `base`, unless another process made one meanwhile."""
    snapshot = msgspec.structs.replace(
        changed,
        version=base.version + 1,
        made_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    )
    folder.publish(_file(snapshot.version), msgspec.json.encode(snapshot))
    return snapshot


def _file(version: int) -> str:
    return f"{_VERSIONS}/{version:08d}.json"
