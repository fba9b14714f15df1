"""Files on the local file system, or in any store that Arrow opens by URL."""

from __future__ import annotations

import io
import os
import uuid
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from downriver.errors import InvalidRequestError, LakeBusyError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_BUFFER = 4 * 2**20
_ARROW_SCHEMES = {"s3a": "s3", "s3n": "s3"}  # Spark's names of S3, and Arrow's


class FileLocation(NamedTuple):
    """A file system of Arrow and a path in it."""

    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        """True on the local file system."""
        return bool(self.system.type_name == "local")


class FileEntry(NamedTuple):
    """A file in a listing."""

    path: str  # in the form for `open_file`
    size: int
    modified: int  # ns since the epoch


def locate(location: str) -> FileLocation:
    """Return the file system and path of a path or URL."""
    fs = _arrow_fs()
    scheme = urlsplit(location).scheme
    if len(scheme) <= 1:  # a path without a scheme, or with a drive letter
        return FileLocation(fs.LocalFileSystem(), os.path.abspath(location))
    if scheme == "file":
        return FileLocation(fs.LocalFileSystem(), unquote(urlsplit(location).path))
    url = location.replace(scheme, _ARROW_SCHEMES.get(scheme, scheme), 1)
    try:
        return FileLocation(*fs.FileSystem.from_uri(url))
    except (ValueError, OSError) as exc:  # base classes of Arrow's errors
        raise InvalidRequestError("location", f"{location}: {exc}") from exc


def absolute_location(location: str) -> str:
    """Return a location that is valid in any working directory."""
    at = locate(location)
    return at.path if at.is_local else location


def open_file(location: str) -> IO[bytes]:
    """Open a file for reading; the stream can seek."""
    at = locate(location)
    if at.is_local:
        return open(at.path, "rb", _BUFFER)
    stream = at.system.open_input_file(at.path)
    return cast("IO[bytes]", io.BufferedReader(stream, _BUFFER))


def list_files(location: str, suffixes: tuple[str, ...]) -> Iterator[FileEntry]:
    """Yield the file at a location, or all files below it with one of the suffixes, by path."""
    fs = _arrow_fs()
    at = locate(location)
    info = at.system.get_file_info(at.path)
    if info.type == fs.FileType.NotFound:
        raise InvalidRequestError("SRC", f"{location}: no such file or directory")
    entries = [info]
    if info.type == fs.FileType.Directory:
        below = at.system.get_file_info(fs.FileSelector(at.path, recursive=True))
        entries = [entry for entry in below if entry.path.endswith(suffixes)]
    prefix = "" if at.is_local else f"{urlsplit(location).scheme}://"
    for entry in sorted(entries, key=lambda entry: entry.path):
        if entry.is_file:
            yield FileEntry(f"{prefix}{entry.path}", entry.size, entry.mtime_ns or 0)


class Folder:
    """The folder of a lake."""

    def __init__(self, location: str) -> None:
        self.location = location.rstrip("/") or location
        self._at = locate(location)

    def url_of(self, name: str) -> str:
        """Return the path or URL of a file or folder in it, as Spark expects it."""
        base = self._at.path if self._at.is_local else self.location
        return f"{base}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if the folder does not exist."""
        fs = _arrow_fs()
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        return sorted(entry.base_name for entry in self._at.system.get_file_info(selector))

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        with self._at.system.open_input_stream(self._path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, body: bytes) -> None:
        """Write a file; create its folders if needed."""
        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        with self._at.system.open_output_stream(path) as stream:
            stream.write(body)

    def publish(self, name: str, body: bytes) -> None:
        """Create a file atomically, or raise LakeBusyError if it exists.

        An object store has no hard links: there the check and the (atomic) upload are two steps,
        so a lake in an object store needs a single writer.
        """
        if not self._at.is_local:
            if name.rpartition("/")[2] in self.names(name.rpartition("/")[0]):
                raise LakeBusyError(self.location)
            self.write(name, body)
            return
        draft = f"{name}.{uuid.uuid4().hex}"
        self.write(draft, body)
        try:
            _flush(self._path(draft))
            os.link(self._path(draft), self._path(name))
        except FileExistsError as exc:
            raise LakeBusyError(self.location) from exc
        finally:
            os.unlink(self._path(draft))

    def count_rows(self, name: str) -> int:
        """Return the number of rows of the Parquet files in a folder, from their metadata."""
        import pyarrow.parquet as pq

        files = [file for file in self.names(name) if file.endswith(".parquet")]
        counts = (
            pq.read_metadata(self._path(f"{name}/{file}"), filesystem=self._at.system).num_rows
            for file in files
        )
        return sum(counts)

    def count_values(self, name: str, column: str) -> int:
        """Return the number of values of a column of the Parquet files in a folder.

        `column` may be a part of a struct. The number comes from the metadata; no row is read.
        """
        import pyarrow.parquet as pq

        count = 0
        for file in self.names(name):
            if file.endswith(".parquet"):
                about = pq.read_metadata(self._path(f"{name}/{file}"), filesystem=self._at.system)
                groups = (about.row_group(number) for number in range(about.num_row_groups))
                count += sum(_values_of(group, column) for group in groups)
        return count

    def read_table(self, name: str, wanted: list[tuple[str, str, Any]] | None = None) -> Any:
        """Return the Parquet files in a folder as one Arrow table, with `wanted` as a filter."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = [file for file in self.names(name) if file.endswith(".parquet")]
        return pa.concat_tables(
            pq.read_table(self._path(f"{name}/{file}"), filesystem=self._at.system, filters=wanted)
            for file in files
        )

    def select_rows(self, name: str, columns: list[str], wanted: Any) -> Any:
        """Return the rows of the Parquet files in a folder for which a condition is true."""
        import pyarrow.dataset as ds

        files = [self._path(f"{name}/{f}") for f in self.names(name) if f.endswith(".parquet")]
        rows = ds.dataset(files, format="parquet", filesystem=self._at.system)
        return rows.to_table(columns, filter=wanted)

    def write_batch(self, name: str, batch: Any, rows_per_group: int | None = None) -> None:
        """Write a batch of rows as a Parquet file; create its folders if needed."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        table = pa.Table.from_batches([batch])
        pq.write_table(table, path, rows_per_group, filesystem=self._at.system)

    def read_schema(self, name: str) -> Any:
        """Return the Arrow schema of the Parquet files in a folder."""
        import pyarrow.parquet as pq

        file = next(file for file in self.names(name) if file.endswith(".parquet"))
        return pq.read_schema(self._path(f"{name}/{file}"), filesystem=self._at.system)

    def write_batches(self, name: str, schema: Any, batches: Iterable[Any]) -> None:
        """Write batches of rows as one Parquet file; create its folders if needed."""
        import pyarrow.parquet as pq

        with self.open_new(name) as stream, pq.ParquetWriter(stream, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)

    def write_columns(
        self, name: str, columns: Mapping[str, Any], rows_per_group: int | None = None
    ) -> None:
        """Write columns as the only Parquet file of a folder."""
        import pyarrow as pa

        batch = pa.RecordBatch.from_pydict(dict(columns))
        self.write_batch(f"{name}/part-0.parquet", batch, rows_per_group)

    def scan(self, name: str, columns: list[str] | None, size: int) -> Iterator[Any]:
        """Yield the rows of the Parquet files in a folder as Arrow batches of `size` rows."""
        import pyarrow.parquet as pq

        for file in self.names(name):
            if file.endswith(".parquet"):
                with self._at.system.open_input_file(self._path(f"{name}/{file}")) as stream:
                    yield from pq.ParquetFile(stream).iter_batches(size, columns=columns)

    def find_rows(
        self, name: str, key: str, wanted: Collection[bytes], value: str
    ) -> dict[bytes, bytes]:
        """Return the values of the rows with one of the `wanted` keys, by key.

        Values are read only from row groups that contain such a key.
        """
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        keys = pa.array(wanted, pa.binary())
        found: dict[bytes, bytes] = {}
        for file in self.names(name):
            if not file.endswith(".parquet"):
                continue
            with self._at.system.open_input_file(self._path(f"{name}/{file}")) as stream:
                stored = pq.ParquetFile(stream)
                for group in range(stored.num_row_groups):
                    is_wanted = pc.is_in(stored.read_row_group(group, [key]).column(0), keys)
                    if pc.any(is_wanted).as_py():
                        rows = stored.read_row_group(group, [key, value]).filter(is_wanted)
                        found |= dict(
                            zip(
                                rows.column(key).to_pylist(),
                                rows.column(value).to_pylist(),
                                strict=True,
                            )
                        )
        return found

    def scan_column(self, name: str, column: str, size: int) -> Iterator[list[Any]]:
        """Yield one column of the Parquet files in a folder, `size` values at a time."""
        for batch in self.scan(name, [column], size):
            yield batch.column(0).to_pylist()

    def open_new(self, name: str) -> Any:
        """Open a file for writing; create its folders if needed. `.gz` files are compressed."""
        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        return self._at.system.open_output_stream(path, compression="detect")

    def size(self, name: str) -> int:
        """Return the total size of the files in a folder, in bytes."""
        fs = _arrow_fs()
        selector = fs.FileSelector(self._path(name), allow_not_found=True)
        return sum(entry.size or 0 for entry in self._at.system.get_file_info(selector))

    def age(self, name: str, now: float) -> float:
        """Return the seconds since a folder was changed; 0 where the store does not record it."""
        modified = self._at.system.get_file_info(self._path(name)).mtime
        return 0.0 if modified is None else now - modified.timestamp()

    def remove_file(self, name: str) -> None:
        """Remove a file."""
        self._at.system.delete_file(self._path(name))

    def remove(self, name: str) -> None:
        """Remove a folder and its content."""
        self._at.system.delete_dir(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._at.path}/{name}"


def _values_of(group: Any, column: str) -> int:
    leaves = (group.column(number) for number in range(group.num_columns))
    return sum(
        leaf.num_values - leaf.statistics.null_count
        for leaf in leaves
        if leaf.path_in_schema == column
    )


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _arrow_fs() -> Any:
    try:
        import pyarrow.fs
    except ImportError as exc:
        raise MissingDependencyError("pyarrow", "lake") from exc
    return pyarrow.fs
