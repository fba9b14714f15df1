"""Files on the local file system, or in any store that Arrow opens by URL."""

from __future__ import annotations

import io
import os
import shutil
import uuid
from typing import IO, TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from downriver.errors import InvalidRequestError, LakeBusyError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BUFFER = 4 * 2**20
_SPARK_SCHEMES = {"s3a": "s3", "s3n": "s3"}  # what Spark calls them, and what Arrow does


class FileLocation(NamedTuple):
    """A file system and a path in it."""

    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        """True on this machine's own file system."""
        return bool(self.system.type_name == "local")


class FileEntry(NamedTuple):
    """A file as a listing shows it."""

    path: str  # as `open_place` takes it
    size: int
    modified: int  # ns since the epoch


def locate(place: str) -> FileLocation:
    """Return where a path or URL points to."""
    fs = _arrow_fs()
    scheme = urlsplit(place).scheme
    if len(scheme) <= 1:  # a bare path, or a drive
        return FileLocation(fs.LocalFileSystem(), os.path.abspath(place))
    if scheme == "file":
        return FileLocation(fs.LocalFileSystem(), unquote(urlsplit(place).path))
    url = place.replace(scheme, _SPARK_SCHEMES.get(scheme, scheme), 1)
    try:
        return FileLocation(*fs.FileSystem.from_uri(url))
    except (ValueError, OSError) as exc:  # Arrow's own errors derive from these
        raise InvalidRequestError("place", f"{place}: {exc}") from exc


def absolute_location(place: str) -> str:
    """Return a place as it is called from anywhere."""
    at = locate(place)
    return at.path if at.is_local else place


def open_file(place: str) -> IO[bytes]:
    """Open a file for reading; the stream can seek."""
    at = locate(place)
    if at.is_local:
        return open(at.path, "rb", _BUFFER)
    found = at.system.open_input_file(at.path)
    return cast("IO[bytes]", io.BufferedReader(found, _BUFFER))


def list_files(place: str, endings: tuple[str, ...]) -> Iterator[FileEntry]:
    """Yield the file at a place, or every file below it with one of the endings, by path."""
    fs = _arrow_fs()
    at = locate(place)
    info = at.system.get_file_info(at.path)
    if info.type == fs.FileType.NotFound:
        raise InvalidRequestError("SRC", f"{place}: no such file or directory")
    found = [info]
    if info.type == fs.FileType.Directory:
        below = at.system.get_file_info(fs.FileSelector(at.path, recursive=True))
        found = [entry for entry in below if entry.path.endswith(endings)]
    prefix = "" if at.is_local else f"{urlsplit(place).scheme}://"
    for entry in sorted(found, key=lambda entry: entry.path):
        if entry.is_file:
            yield FileEntry(f"{prefix}{entry.path}", entry.size, entry.mtime_ns or 0)


class Folder:
    """The folder a lake is in."""

    def __init__(self, place: str) -> None:
        self.place = place.rstrip("/") or place
        self._at = locate(place)

    def of(self, name: str) -> str:
        """Return the place of a file or folder in it, as Spark takes it."""
        base = self._at.path if self._at.is_local else self.place
        return f"{base}/{name}"

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, none if there is no such folder."""
        fs = _arrow_fs()
        selector = fs.FileSelector(self._path(folder), allow_not_found=True)
        return sorted(entry.base_name for entry in self._at.system.get_file_info(selector))

    def read(self, name: str) -> bytes:
        """Return the bytes of a file."""
        with self._at.system.open_input_stream(self._path(name)) as stream:
            return bytes(stream.read())

    def write(self, name: str, body: bytes) -> None:
        """Write a file, making the folders it is in."""
        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        with self._at.system.open_output_stream(path) as stream:
            stream.write(body)

    def publish(self, name: str, body: bytes) -> None:
        """Write a file that must not exist yet, all or nothing, or raise LakeBusyError.

        A bucket has no links: there the check and the (atomic) upload are two steps, so a lake in
        a bucket wants one writer at a time.
        """
        if not self._at.is_local:
            if name.rpartition("/")[2] in self.names(name.rpartition("/")[0]):
                raise LakeBusyError(self.place)
            self.write(name, body)
            return
        draft = f"{name}.{uuid.uuid4().hex}"
        self.write(draft, body)
        try:
            _flush(self._path(draft))
            os.link(self._path(draft), self._path(name))
        except FileExistsError as exc:
            raise LakeBusyError(self.place) from exc
        finally:
            os.unlink(self._path(draft))

    def count_rows(self, name: str) -> int:
        """Return how many rows the Parquet files in a folder have, by what they say themselves."""
        import pyarrow.parquet as pq

        files = [file for file in self.names(name) if file.endswith(".parquet")]
        counts = (
            pq.read_metadata(self._path(f"{name}/{file}"), filesystem=self._at.system).num_rows
            for file in files
        )
        return sum(counts)

    def read_table(self, name: str) -> Any:
        """Return the Parquet files in a folder as one Arrow table."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        files = [file for file in self.names(name) if file.endswith(".parquet")]
        return pa.concat_tables(
            pq.read_table(self._path(f"{name}/{file}"), filesystem=self._at.system)
            for file in files
        )

    def write_batch(self, name: str, batch: Any) -> None:
        """Write a batch of rows as a Parquet file, making the folders it is in."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        pq.write_table(pa.Table.from_batches([batch]), path, filesystem=self._at.system)

    def write_columns(self, name: str, columns: Mapping[str, Any]) -> None:
        """Write columns as a Parquet file in a folder of its own."""
        import pyarrow as pa

        self.write_batch(f"{name}/part-0.parquet", pa.RecordBatch.from_pydict(dict(columns)))

    def scan(self, name: str, columns: list[str] | None, size: int) -> Iterator[Any]:
        """Yield the rows of the Parquet files in a folder, so many at a time, as Arrow batches."""
        import pyarrow.parquet as pq

        for file in self.names(name):
            if file.endswith(".parquet"):
                with self._at.system.open_input_file(self._path(f"{name}/{file}")) as stream:
                    yield from pq.ParquetFile(stream).iter_batches(size, columns=columns)

    def scan_column(self, name: str, column: str, size: int) -> Iterator[list[Any]]:
        """Yield one column of the Parquet files in a folder, so many values at a time."""
        for batch in self.scan(name, [column], size):
            yield batch.column(0).to_pylist()

    def copy(self, name: str, to: Folder, target: str) -> int:
        """Copy the Parquet files of a folder into one elsewhere; returns how many."""
        files = [file for file in self.names(name) if file.endswith(".parquet")]
        for file in files:
            with self._at.system.open_input_stream(self._path(f"{name}/{file}")) as stream:
                to.write_from(f"{target}/{file}", stream)
        return len(files)

    def write_from(self, name: str, stream: Any) -> None:
        """Write what a stream gives as a file, making the folders it is in."""
        with self.open_new(name) as target:
            shutil.copyfileobj(stream, target, _BUFFER)

    def open_new(self, name: str) -> Any:
        """Open a file to write, making the folders it is in; it is packed if it ends in `.gz`."""
        path = self._path(name)
        self._at.system.create_dir(path.rpartition("/")[0], recursive=True)
        return self._at.system.open_output_stream(path, compression="detect")

    def size(self, name: str) -> int:
        """Return how many bytes the files in a folder have."""
        fs = _arrow_fs()
        selector = fs.FileSelector(self._path(name), allow_not_found=True)
        return sum(entry.size or 0 for entry in self._at.system.get_file_info(selector))

    def age(self, name: str, now: float) -> float:
        """Return how many seconds ago a folder was changed; a bucket's does not say, so 0."""
        modified = self._at.system.get_file_info(self._path(name)).mtime
        return 0.0 if modified is None else now - modified.timestamp()

    def remove_file(self, name: str) -> None:
        """Remove a file."""
        self._at.system.delete_file(self._path(name))

    def remove(self, name: str) -> None:
        """Remove a folder and all in it."""
        self._at.system.delete_dir(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._at.path}/{name}"


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
