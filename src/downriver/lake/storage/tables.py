"""The tables of a lake on disk, the versions of the lake, and the removal of old ones.

A version is one small file. Everything that it refers to is written earlier, into new folders, and
never changes. After a process is killed, the previous version is still valid, and some folders
belong to no version.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.errors import InvalidRequestError, LakeError, LakeNotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from downriver.lake.reach.closure import Ints
    from downriver.lake.schemas import LakeTable
    from downriver.lake.storage.files import Folder

_VERSIONS = "versions"
_BATCHES = "batches.json"
PARQUET = "parquet"


class TimeRange(NamedTuple):
    """A range of times in microseconds, with both ends."""

    first_at: int
    last_at: int


class BronzeBatch(msgspec.Struct, frozen=True, omit_defaults=True):
    """The events that one ingest added to bronze, in folders below `path`.

    `first_at` and `last_at` are the times of its earliest and latest event. Batches of older
    releases lack them and may contain events of any time. `ranges` are the times of its events,
    without the gaps: a late event does not extend the batch over all times since. `quarantine` is
    the folder of its unreadable records, if half lines among them were completed.
    """

    number: int
    path: str
    events: int
    quarantined: int
    duplicates: int
    first_at: int | None = None
    last_at: int | None = None
    format: str = PARQUET
    ranges: tuple[TimeRange, ...] = ()
    quarantine: str | None = None

    @property
    def quarantine_path(self) -> str:
        """The folder of its unreadable records."""
        return self.quarantine or f"{self.path}/quarantine"

    def may_hold(self, first_at: int, last_at: int) -> bool:
        """False when the batch has no event between these times."""
        if self.times is None:
            return self.events > 0
        return any(held.first_at <= last_at and first_at <= held.last_at for held in self.times)

    @property
    def times(self) -> tuple[TimeRange, ...] | None:
        """The times of its events, without gaps if known; None if unknown."""
        if self.first_at is None or self.last_at is None:
            return None
        return self.ranges or (TimeRange(self.first_at, self.last_at),)


class StoredList(msgspec.Struct, frozen=True):
    """A list in a folder: of batches, or of files that were read."""

    path: str
    size: int


class StoredRun(msgspec.Struct, frozen=True):
    """The rows that one build added to a table, in a folder.

    A `folded` run contains facts of all kinds, as the fold returns them.
    """

    path: str
    rows: int
    format: str = PARQUET
    folded: bool = False


class StoredTable(msgspec.Struct, frozen=True):
    """A table: the folder `path`, and the runs that later builds added to it.

    `rows` is the number of rows of the table; `stored` that of `path` if there are newer runs.
    """

    path: str
    rows: int
    format: str = PARQUET
    newer: tuple[StoredRun, ...] = ()
    stored: int | None = None

    @property
    def runs(self) -> tuple[StoredRun, ...]:
        """All its runs, oldest first."""
        stored = self.rows if self.stored is None else self.stored
        return (StoredRun(self.path, stored, self.format), *self.newer)


class LakeVersion(msgspec.Struct, frozen=True):
    """One version of a lake. `folded` is the number of the last batch that its tables include.

    `streams` maps each stream to its last committed micro-batch. Events before `expired_before`
    were removed from bronze; the facts derived from them remain. `sources` are the lists of files
    that were read; versions of older releases have None, and a list in each batch. `release` is
    the release of Downriver that built all tables, and `stale_days` the setting at that time.

    On disk, `batches` are only the last ones: the others are in the files of `lists`. To remove or
    replace batches, set `lists` to ().
    """

    version: int = 0
    made_at: str = ""
    batches: tuple[BronzeBatch, ...] = ()
    folded: int = 0
    tables: dict[str, StoredTable] = msgspec.field(default_factory=dict)
    streams: dict[str, int] = msgspec.field(default_factory=dict)
    expired_before: int | None = None
    sources: tuple[StoredList, ...] | None = None
    lists: tuple[StoredList, ...] = ()
    release: str = ""
    stale_days: int | None = None

    @property
    def formats(self) -> set[str]:
        """The formats of its tables and batches."""
        stored = {run.format for table in self.tables.values() for run in table.runs}
        return stored | {batch.format for batch in self.batches}

    @property
    def unfolded(self) -> tuple[BronzeBatch, ...]:
        """The batches that no build has folded yet."""
        return tuple(batch for batch in self.batches if batch.number > self.folded)


def read_current_version(folder: Folder, *, create: bool = False) -> LakeVersion:
    """Return the last version; with `create`, an empty one if there is no lake yet."""
    numbers = list_versions(folder)
    if numbers:
        return read_version(folder, numbers[-1])
    if not create:
        raise LakeNotFoundError(folder.location)
    return LakeVersion()


def list_versions(folder: Folder) -> list[int]:
    """Return the numbers of all versions in ascending order."""
    names = folder.names(_VERSIONS)
    stems = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdigit())


def read_version(folder: Folder, version: int) -> LakeVersion:
    """Return one version."""
    if version not in list_versions(folder):
        raise LakeError(f"{folder.location} has no version {version}")
    try:
        stored = msgspec.json.decode(folder.read(_version_file(version)), type=LakeVersion)
        return _with_listed_batches(folder, stored)
    except msgspec.DecodeError as exc:
        raise LakeError(f"{folder.location}: version {version} cannot be read: {exc}") from exc


def drop_version(folder: Folder, version: int) -> None:
    """Remove a version, but not the folders that it refers to."""
    folder.remove_file(_version_file(version))


def commit_version(folder: Folder, base: LakeVersion, changed: LakeVersion) -> LakeVersion:
    """Commit `changed` as the version after `base`, or fail if another process committed one."""
    snapshot = msgspec.structs.replace(
        changed,
        version=base.version + 1,
        made_at=dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
    )
    stored = _with_short_batches(folder, snapshot)
    folder.publish(_version_file(snapshot.version), msgspec.json.encode(stored))
    return msgspec.structs.replace(stored, batches=snapshot.batches)


_INLINE = 64  # batches in the file of a version


def _with_listed_batches(folder: Folder, stored: LakeVersion) -> LakeVersion:
    """Return a version as stored, with the batches of its lists."""
    batches = (*_read_lists(folder, stored.lists), *stored.batches)
    return msgspec.structs.replace(stored, batches=batches)


def _with_short_batches(folder: Folder, version: LakeVersion) -> LakeVersion:
    """Return a version to store, with all but its last batches in lists.

    Each list is larger than the next, so a batch is written a logarithmic number of times.
    """
    listed = sum(each.size for each in version.lists)
    tail = version.batches[listed:]
    if len(tail) <= _INLINE:
        return msgspec.structs.replace(version, batches=tail)
    lists, size = version.lists, len(tail)
    while lists and lists[-1].size <= size:
        size += lists[-1].size
        lists = lists[:-1]
    path = f"lists/{version.version:08d}-{uuid.uuid4().hex[:8]}"
    folder.write(f"{path}/{_BATCHES}", msgspec.json.encode(version.batches[-size:]))
    return msgspec.structs.replace(version, batches=(), lists=(*lists, StoredList(path, size)))


def _read_lists(folder: Folder, lists: Iterable[StoredList]) -> Iterator[BronzeBatch]:
    for each in lists:
        body = folder.read(f"{each.path}/{_BATCHES}")
        yield from msgspec.json.decode(body, type=list[BronzeBatch])


def _version_file(version: int) -> str:
    return f"{_VERSIONS}/{version:08d}.json"


_AS_OF_FOLDER = "asof"


class VersionOrTime(NamedTuple):
    """A version, or a time in µs since the epoch."""

    version: int | None
    until: int


def parse_version_or_time(text: str) -> VersionOrTime:
    """Parse the number of a version, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."""
    if text.isascii() and text.isdigit() and len(text) < 9:
        return VersionOrTime(int(text), 0)
    return VersionOrTime(None, parse_time(text))


def parse_time(text: str, *, end: bool = True) -> int:
    """Parse a time; without a zone it is UTC. A day means its end, or its start if not `end`."""
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


def _as_text(micros: int) -> str:
    moment = dt.datetime.fromtimestamp(micros / 1_000_000, tz=dt.timezone.utc)
    return moment.isoformat().replace("+00:00", "Z")


def find_as_of(folder: Folder, until: int, base: LakeVersion) -> LakeVersion | None:
    """Return the build as of a time, if no events were added since it was made."""
    if f"{until}.json" not in folder.names(_AS_OF_FOLDER):
        return None
    build = msgspec.json.decode(folder.read(f"{_AS_OF_FOLDER}/{until}.json"), type=LakeVersion)
    return build if _last_batch(build) == _last_batch(base) else None


def _last_batch(snapshot: LakeVersion) -> int:
    return snapshot.batches[-1].number if snapshot.batches else 0


def record_as_of(folder: Folder, until: int, build: LakeVersion) -> None:
    """Record a build as of a time."""
    folder.write(f"{_AS_OF_FOLDER}/{until}.json", msgspec.json.encode(build))


def list_as_of(folder: Folder) -> list[tuple[int, LakeVersion]]:
    """Return all builds as of a time, with their times."""
    return [
        (
            int(name.removesuffix(".json")),
            msgspec.json.decode(folder.read(f"{_AS_OF_FOLDER}/{name}"), type=LakeVersion),
        )
        for name in folder.names(_AS_OF_FOLDER)
    ]


def drop_as_of(folder: Folder, until: int) -> None:
    """Remove a build as of a time, but not the folders that it refers to."""
    folder.remove_file(f"{_AS_OF_FOLDER}/{until}.json")


_DATA_FOLDERS = ("bronze", "builds", "lists", "sources")
_GRACE_SECONDS = 24 * 3600  # a newer folder may belong to a process that has not committed yet


class KeptFolder(msgspec.Struct):
    """A folder that is not removed, and why."""

    folder: str
    reason: str


class CleanReport(msgspec.Struct):
    """The versions and folders that were removed, and the folders that were kept."""

    versions: list[int]
    folders: list[str]
    kept: list[KeptFolder]


def clean_versions(folder: Folder, keep: int, *, grace: float = _GRACE_SECONDS) -> CleanReport:
    """Remove all versions but the last `keep`, and folders that no remaining version uses."""
    versions = list_versions(folder)
    old, kept = versions[:-keep], versions[-keep:]
    used = {
        path: f"used by version {version}"
        for version in kept
        for path in _referenced_folders(read_version(folder, version))
    }
    used |= _drop_expired_as_of(folder, set(used))
    # Versions first: if the process is killed in between, only unused folders remain.
    previously_used = {
        path for version in old for path in _referenced_folders(read_version(folder, version))
    }
    for version in old:
        drop_version(folder, version)
    present = {f"{layer}/{name}" for layer in _DATA_FOLDERS for name in folder.names(layer)}
    unused = sorted(present - used.keys())
    removed = [p for p in unused if p in previously_used or folder.age(p, time.time()) > grace]
    for path in removed:
        folder.remove(path)
    recent = "not used, but recent: a running process may still need it"
    reasons = {path: used.get(path, recent) for path in present - set(removed)}
    return CleanReport(old, removed, [KeptFolder(*kept) for kept in sorted(reasons.items())])


def _drop_expired_as_of(folder: Folder, used: set[str]) -> dict[str, str]:
    """Remove as-of builds whose batches no longer exist. Return the folders of the others."""
    kept: dict[str, str] = {}
    for until, snapshot in list_as_of(folder):
        if all(batch.path in used for batch in snapshot.batches):
            reason = f"used by the build as of {_as_text(until)}"
            kept |= dict.fromkeys(_referenced_folders(snapshot), reason)
        else:
            drop_as_of(folder, until)
    return kept


def _referenced_folders(snapshot: LakeVersion) -> set[str]:
    """Return the folders of a version's batches and builds."""
    batches = {batch.path for batch in snapshot.batches}
    lists = {each.path for each in (*snapshot.lists, *(snapshot.sources or ()))}
    runs = (run for stored in snapshot.tables.values() for run in stored.runs)
    builds = {"/".join(run.path.split("/")[:2]) for run in runs}
    return batches | lists | builds


_PARALLEL_WRITES = 4  # the last tasks of a single write would leave the cluster idle
DELTA = "delta"
FORMATS = (PARQUET, DELTA)


class TableStorage:
    """Reads and writes the tables of one lake. `format` is the format of new tables."""

    def __init__(self, folder: Folder, spark: SparkSession, written_as: str = PARQUET) -> None:
        self.folder = folder
        self.spark = spark
        self.format = written_as

    def read(self, table: LakeTable, stored: Iterable[StoredTable | StoredRun]) -> DataFrame:
        """Return the rows in the folders of a table. Newer runs of the table are not read."""
        by_format: dict[str, list[str]] = {}
        for part in stored:
            by_format.setdefault(part.format, []).append(self.folder.url_of(part.path))
        frames = [
            self.spark.read.format(DELTA).load(url).select(table.column_names)
            for url in by_format.get(DELTA, ())
        ]
        if PARQUET in by_format:
            frames.append(self._parquet(table, by_format[PARQUET]))
        return reduce(lambda whole, part: whole.unionByName(part), frames)

    def _parquet(self, table: LakeTable, urls: list[str]) -> DataFrame:
        return self.spark.read.schema(table.ddl).parquet(*urls)

    def read_parquet(self, table: LakeTable, path: str) -> DataFrame:
        """Return the rows of a Parquet folder."""
        return self._parquet(table, [self.folder.url_of(path)])

    def write(self, frame: DataFrame, path: str, written_as: str | None = None) -> StoredTable:
        """Write a table into a new folder."""
        table_format = written_as or self.format
        frame.write.format(table_format).save(self.folder.url_of(path))
        return StoredTable(path, self.folder.count_rows(path), table_format)

    def read_arrays(self, table: LakeTable, path: str) -> dict[str, Ints]:
        """Return the columns of a table of numbers as arrays on the driver."""
        rows = self.folder.read_table(path)
        return {name: rows.column(name).to_numpy() for name in table.column_names}

    def write_arrays(self, table: LakeTable, columns: Mapping[str, Ints], path: str) -> DataFrame:
        """Write arrays from the driver as a table, and return the table."""
        self.folder.write_columns(path, columns)
        return self.read_parquet(table, path)

    def write_all(self, frames: Mapping[str, DataFrame], path: str) -> dict[str, StoredTable]:
        """Write several tables in parallel, each into a folder of its name."""
        with ThreadPoolExecutor(_PARALLEL_WRITES) as pool:
            writing = {
                name: pool.submit(self.write, frame, f"{path}/{name}")
                for name, frame in frames.items()
            }
            return {name: written.result() for name, written in writing.items()}


def check_format(spark: SparkSession, wanted: str) -> None:
    """Raise an error with instructions if Spark cannot write this format."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if wanted not in FORMATS:
        raise LakeError(f"unknown table format {wanted!r}; choose {' or '.join(FORMATS)}")
    try:
        spark.read.format(wanted).load("/nonexistent")
    except (PySparkException, Py4JError) as exc:
        if is_unknown_format(exc):
            raise LakeError(_NO_DELTA) from exc


_NO_DELTA = (
    "Spark cannot write Delta tables; add the package with --packages, for example "
    "io.delta:delta-spark_4.1_2.13:4.1.0 for Spark 4.1"
)


def is_unknown_format(exc: BaseException) -> bool:
    """True when Spark lacks the package of a format or source.

    Checks the text, as some code paths raise an error without an error class in PySpark.
    """
    return any(sign in str(exc) for sign in ("DATA_SOURCE_NOT_FOUND", "Failed to find data source"))
