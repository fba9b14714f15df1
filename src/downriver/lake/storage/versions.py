"""Versions of a lake, builds as of a time, and the removal of old ones.

A version is one small file. Everything it refers to is written before it, into new folders, and
never changed after. A process that is killed leaves the previous version, and folders that no
version refers to.
"""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError, LakeError, LakeNotFoundError

if TYPE_CHECKING:
    from downriver.lake.storage.files import Folder

_VERSIONS = "versions"
PARQUET = "parquet"


class BronzeBatch(msgspec.Struct, frozen=True):
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


class StoredTable(msgspec.Struct, frozen=True):
    """A table as one build wrote it."""

    path: str
    rows: int
    format: str = PARQUET


class LakeVersion(msgspec.Struct, frozen=True):
    """One version of a lake. `folded` is the last batch that its tables hold.

    `streams` says of each stream which of its batches was the last to be committed. Events before
    `expired_before` are gone from bronze; the facts still have what they told.
    """

    version: int = 0
    made_at: str = ""
    batches: tuple[BronzeBatch, ...] = ()
    folded: int = 0
    tables: dict[str, StoredTable] = msgspec.field(default_factory=dict)
    streams: dict[str, int] = msgspec.field(default_factory=dict)
    expired_before: int | None = None

    @property
    def formats(self) -> set[str]:
        """The formats its tables and batches are in."""
        stored = {table.format for table in self.tables.values()}
        return stored | {batch.format for batch in self.batches}

    @property
    def unfolded(self) -> tuple[BronzeBatch, ...]:
        """The batches that no build has taken in yet."""
        return tuple(batch for batch in self.batches if batch.number > self.folded)


def read_current_version(folder: Folder, *, create: bool = False) -> LakeVersion:
    """Return the last version; with `create`, an empty one where there is no lake yet."""
    numbers = list_versions(folder)
    if numbers:
        return read_version(folder, numbers[-1])
    if not create:
        raise LakeNotFoundError(folder.place)
    return LakeVersion()


def list_versions(folder: Folder) -> list[int]:
    """Return the numbers of all versions, the last one last."""
    names = folder.names(_VERSIONS)
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def read_version(folder: Folder, version: int) -> LakeVersion:
    """Return one version."""
    if version not in list_versions(folder):
        raise LakeError(f"{folder.place} has no version {version}")
    try:
        return msgspec.json.decode(folder.read(_version_file(version)), type=LakeVersion)
    except msgspec.DecodeError as exc:
        raise LakeError(f"{folder.place}: version {version} cannot be read: {exc}") from exc


def drop_version(folder: Folder, version: int) -> None:
    """Forget one version; what it names stays where it is."""
    folder.remove_file(_version_file(version))


def commit_version(folder: Folder, base: LakeVersion, changed: LakeVersion) -> LakeVersion:
    """Make `changed` the version after `base`, unless another process made one meanwhile."""
    snapshot = msgspec.structs.replace(
        changed,
        version=base.version + 1,
        made_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    )
    folder.publish(_version_file(snapshot.version), msgspec.json.encode(snapshot))
    return snapshot


def _version_file(version: int) -> str:
    return f"{_VERSIONS}/{version:08d}.json"


_AS_OF_FOLDER = "asof"


class VersionOrTime(NamedTuple):
    """A version, or a time in µs since the epoch."""

    version: int | None
    until: int


def parse_version_or_time(text: str) -> VersionOrTime:
    """Read a version's number, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."""
    if text.isascii() and text.isdigit() and len(text) < 9:
        return VersionOrTime(int(text), 0)
    return VersionOrTime(None, parse_time(text))


def parse_time(text: str, *, end: bool = True) -> int:
    """Read a time. A day means its end, or its beginning; without a zone it is UTC."""
    try:
        moment = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as exc:
        reason = f"{text!r} is neither a version nor a time such as 2026-01-31T12:00:00Z"
        raise InvalidRequestError("time", reason) from exc
    if end and len(text) == len("2026-01-31"):
        moment += dt.timedelta(days=1, microseconds=-1)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.timezone.utc)
    since = moment - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
    return since // dt.timedelta(microseconds=1)


def find_as_of(folder: Folder, until: int, base: LakeVersion) -> LakeVersion | None:
    """Return what was built as of a time, if it was of the events that are there now."""
    if f"{until}.json" not in folder.names(_AS_OF_FOLDER):
        return None
    found = msgspec.json.decode(folder.read(f"{_AS_OF_FOLDER}/{until}.json"), type=LakeVersion)
    return found if _last_batch(found) == _last_batch(base) else None


def _last_batch(snapshot: LakeVersion) -> int:
    return snapshot.batches[-1].number if snapshot.batches else 0


def record_as_of(folder: Folder, until: int, made: LakeVersion) -> None:
    """Note what was built as of a time."""
    folder.write(f"{_AS_OF_FOLDER}/{until}.json", msgspec.json.encode(made))


def list_as_of(folder: Folder) -> list[tuple[int, LakeVersion]]:
    """Return all that was built as of times."""
    return [
        (
            int(name.removesuffix(".json")),
            msgspec.json.decode(folder.read(f"{_AS_OF_FOLDER}/{name}"), type=LakeVersion),
        )
        for name in folder.names(_AS_OF_FOLDER)
    ]


def drop_as_of(folder: Folder, until: int) -> None:
    """Forget a build as of a time; what it names stays where it is."""
    folder.remove_file(f"{_AS_OF_FOLDER}/{until}.json")


_DATA_FOLDERS = ("bronze", "builds")
_GRACE_SECONDS = 24 * 3600  # a younger folder may belong to a process that has not committed yet


class CleanReport(msgspec.Struct):
    """What was removed."""

    versions: list[int]
    folders: list[str]


def clean_versions(folder: Folder, keep: int, *, grace: float = _GRACE_SECONDS) -> CleanReport:
    """Remove all versions but the last `keep`, and the folders that no other version names."""
    versions = list_versions(folder)
    old, kept = versions[:-keep], versions[-keep:]
    named = {
        path for version in kept for path in _referenced_folders(read_version(folder, version))
    }
    named |= _drop_expired_as_of(folder, named)
    # Versions first: killed in between, what remains is folders that nobody names.
    was_named = {
        path for version in old for path in _referenced_folders(read_version(folder, version))
    }
    for version in old:
        drop_version(folder, version)
    present = {f"{layer}/{name}" for layer in _DATA_FOLDERS for name in folder.names(layer)}
    unnamed = sorted(present - named)
    gone = [p for p in unnamed if p in was_named or folder.age(p, time.time()) > grace]
    for path in gone:
        folder.remove(path)
    return CleanReport(old, gone)


def _drop_expired_as_of(folder: Folder, named: set[str]) -> set[str]:
    """Forget builds as of times whose events are no longer there; return the folders of others."""
    kept: set[str] = set()
    for until, snapshot in list_as_of(folder):
        if all(batch.path in named for batch in snapshot.batches):
            kept |= _referenced_folders(snapshot)
        else:
            drop_as_of(folder, until)
    return kept


def _referenced_folders(snapshot: LakeVersion) -> set[str]:
    """Return the folders, two levels deep, in which what a version names lies."""
    batches = {batch.path for batch in snapshot.batches}
    builds = {"/".join(stored.path.split("/")[:2]) for stored in snapshot.tables.values()}
    return batches | builds
