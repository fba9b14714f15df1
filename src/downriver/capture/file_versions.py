"""Versions of a dataset of files, by fingerprints of its files and columns. No row is stored."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.commits import TableCommit, TableLog
from downriver.errors import InvalidRequestError, describe_failure
from downriver.openlineage.facets.dataset import SchemaField
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FILES = "FILES"
_CHUNK = 1 << 20
_VERSION_DIGITS = 12
# How DuckDB reads the files with a suffix.
_READERS = {
    ".parquet": "read_parquet({files}, union_by_name = true)",
    ".pq": "read_parquet({files}, union_by_name = true)",
    ".csv": "read_csv({files}, union_by_name = true)",
    ".tsv": "read_csv({files}, union_by_name = true)",
    ".json": "read_json({files}, union_by_name = true)",
    ".jsonl": "read_json({files}, union_by_name = true)",
    ".ndjson": "read_json({files}, union_by_name = true)",
}
_COMPRESSED = frozenset({".gz", ".zst"})


class _File(NamedTuple):
    path: Path
    name: str  # relative to the dataset
    size: int
    modified_at: int  # ns

    @property
    def format(self) -> str:
        """The suffix, without that of a compression."""
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        return next((suffix for suffix in reversed(suffixes) if suffix not in _COMPRESSED), "")


class _Content(NamedTuple):
    rows: int | None = None
    fields: tuple[SchemaField, ...] | None = None
    fingerprints: tuple[tuple[str, str], ...] = ()
    unread: tuple[str, ...] = ()


def read_file_version(location: str, *, stamp: str = "") -> TableLog:
    """Return the current version of a file, or of the files of a folder.

    `stamp` is that of the newest version that is known. If sizes and times still have this stamp,
    the content is not read and the log has no commit.
    """
    root = Path(location.removeprefix("file://"))
    if "://" in str(root):
        reason = f"{location}: only local files have fingerprints; the system must mount others"
        raise InvalidRequestError("path", reason)
    dataset = dataset_at(str(root.absolute()))
    try:
        files = sorted(_files(root))
        if not files:
            raise InvalidRequestError("path", f"{location} has no files")
        current = _digest(f"{file.name}\0{file.size}\0{file.modified_at}" for file in files)
        commits = () if current == stamp else (_commit(files, current),)
    except OSError as exc:
        raise InvalidRequestError("path", f"{location}: {describe_failure(exc)}") from exc
    return TableLog(
        FILES,
        dataset,
        root.absolute().name,
        tuple(commit for commit, _ in commits),
        unread=tuple(text for _, texts in commits for text in texts),
        described="the content",
    )


def _files(root: Path) -> Iterator[_File]:
    """Yield the files of a folder without markers and logs, whose names start with `_` or `.`."""
    paths = [root] if root.is_file() else root.rglob("*")
    for path in paths:
        name = path.name if path == root else path.relative_to(root).as_posix()
        hidden = path != root and any(part[0] in "_." for part in name.split("/"))
        if path.is_file() and not hidden:
            status = path.stat()
            yield _File(path, name, status.st_size, status.st_mtime_ns)
    if not root.exists():
        raise InvalidRequestError("path", f"{root} does not exist")


def _commit(files: Sequence[_File], stamp: str) -> tuple[TableCommit, tuple[str, ...]]:
    content_hash = _digest(f"{file.name}\0{_hash(file.path)}" for file in files)
    content = _read_columns(files)
    size = sum(file.size for file in files)
    commit = TableCommit(
        version=content_hash[:_VERSION_DIGITS],
        at=max(file.modified_at for file in files) // 1000,
        operation="WRITE",
        fields=content.fields,
        rows=content.rows,
        size=size,
        parameters=(("sha256", content_hash), ("stamp", stamp)),
        metrics=(("files", float(len(files))), ("bytes", float(size))),
        fingerprints=content.fingerprints,
    )
    return commit, content.unread


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()


def _hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _read_columns(files: Sequence[_File]) -> _Content:
    """Return rows, types and fingerprints of the columns, if the files are a table."""
    formats = {file.format for file in files}
    (form,) = formats if len(formats) == 1 else ("",)
    if form not in _READERS:
        names = ", ".join(sorted(filter(None, formats))) or "no suffix"
        return _Content(unread=(f"columns are not read from files with {names}",))
    try:
        import duckdb
    except ImportError:
        needed = "columns are not read: duckdb is not installed (pip install 'downriver[files]')"
        return _Content(unread=(needed,))
    paths = ", ".join(f"'{_escaped(str(file.path))}'" for file in files)
    source = _READERS[form].format(files=f"[{paths}]")
    try:
        with duckdb.connect() as connection:
            return _fingerprints(connection, source)
    except duckdb.Error as exc:
        return _Content(unread=(f"columns are not read: {str(exc).splitlines()[0]}",))


def _fingerprints(connection: Any, source: str) -> _Content:
    """Return a fingerprint for each column, which the order of rows does not change.

    It is the sum of the hashes of the values, and the number of nulls.
    """
    described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()  # noqa: S608
    columns = [(str(row[0]), str(row[1])) for row in described]
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name, _ in columns]
    sums = [f"sum(md5_number_lower({name}::VARCHAR)), count({name})" for name in quoted]
    rows, *values = connection.execute(
        f"SELECT count(*), {', '.join(sums)} FROM {source}"  # noqa: S608 (names are quoted)
    ).fetchone()
    pairs = zip(values[::2], values[1::2], strict=True)
    return _Content(
        rows=int(rows),
        fields=tuple(SchemaField(name, kind.lower()) for name, kind in columns),
        fingerprints=tuple(
            (name, f"{int(total or 0) % (1 << 64):016x}-{int(rows) - int(count)}")
            for (name, _), (total, count) in zip(columns, pairs, strict=True)
        ),
    )


def _escaped(text: str) -> str:
    return text.replace("'", "''")
