"""OpenLineage names of the paths, tables and JDBC URLs that Spark uses."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Sequence

_PARTITION = re.compile(r"[^/=]+=[^/]*")
_PART_FILE = re.compile(r"part-\d{5}[-.].*")  # a file that one task of Spark or Hadoop wrote
_GLOB = re.compile(r"[*?\[{]")
_BUCKETS = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs"}
_DEFAULT_PORTS = {"postgres": 5432, "mysql": 3306, "mssql": 1433, "oracle": 1521, "redshift": 5439}
_JDBC_SCHEMES = {"postgresql": "postgres", "sqlserver": "mssql", "mariadb": "mysql"}
_DEFAULT_SCHEMAS = {"postgres": "public", "redshift": "public", "mssql": "dbo"}
_MANY_PATHS = 20


class JdbcName(NamedTuple):
    """The database behind a JDBC URL: the namespace of its datasets, and how to name tables."""

    namespace: str
    scheme: str
    database: str

    def table(self, name: str) -> DatasetId:
        """Return the dataset of a table name, as it stands in a query or an option."""
        parts = [part.strip('"`[]') for part in name.split(".")]
        schema = _DEFAULT_SCHEMAS.get(self.scheme)
        if schema is not None and len(parts) == 1:
            parts.insert(0, schema)
        full = 3 if schema is not None else 2
        if self.database and len(parts) < full:
            parts.insert(0, self.database)
        return DatasetId(self.namespace, ".".join(parts))


def name_path(uri: str) -> DatasetId:
    """Return the dataset at a path. Partition directories and part files belong to it."""
    parts = urlsplit(uri, allow_fragments=False)
    scheme = parts.scheme.lower()
    path = _trimmed(parts.path if parts.scheme else uri)
    if scheme in _BUCKETS:
        return DatasetId(f"{_BUCKETS[scheme]}://{parts.netloc}", path.lstrip("/") or "/")
    if scheme in {"", "file"}:
        return DatasetId("file", path)
    return DatasetId(f"{scheme}://{parts.netloc}" if parts.netloc else scheme, path)


def name_paths(uris: Sequence[str], asked_for: str = "") -> list[DatasetId]:
    """Return the datasets of files. A glob, or many files of one folder, is one dataset."""
    if asked_for and _GLOB.search(asked_for):
        return [name_path(_before_glob(asked_for))]
    found = list(dict.fromkeys(name_path(uri) for uri in uris or [asked_for]))
    if len(found) <= 1:
        return found
    folders = {DatasetId(each.namespace, posixpath.dirname(each.name)) for each in found}
    if len(folders) == 1 and (len(found) > _MANY_PATHS or all(_is_file(each) for each in found)):
        return list(folders)
    return found if len(found) <= _MANY_PATHS else _common(found)


def name_jdbc(url: str) -> JdbcName:
    """Return the database behind a JDBC URL, without credentials."""
    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    scheme = _JDBC_SCHEMES.get(scheme.lower(), scheme.lower())
    if scheme == "oracle":
        rest = "//" + rest.rpartition("@")[2].lstrip("/")
    if not rest.startswith("//"):  # a database in a file, or in memory
        path = re.split(r"[;?]", rest, maxsplit=1)[0]
        return JdbcName(f"{scheme}:{path}", scheme, "")
    address, *options = re.split(r"[;?]", rest[2:])
    hosts, _, database = address.partition("/")
    host = hosts.rpartition("@")[2].partition(",")[0]
    if ":" not in host and scheme in _DEFAULT_PORTS:
        host = f"{host}:{_DEFAULT_PORTS[scheme]}"
    named = {key.lower(): value for key, _, value in (o.partition("=") for o in options)}
    return JdbcName(
        f"{scheme}://{host}", scheme, unquote(database) or named.get("databasename", "")
    )


def short_name(dataset: DatasetId, segments: int = 1) -> str:
    """Return the last parts of a dataset's name, as a short name for people."""
    parts = [part for part in re.split(r"[/:]", dataset.name) if part]
    return ".".join(parts[-segments:]) or dataset.namespace


def _trimmed(path: str) -> str:
    path = posixpath.normpath(path) if path else "/"
    parent, last = posixpath.split(path)
    if _PART_FILE.fullmatch(last):
        path = parent
    while True:
        parent, last = posixpath.split(path)
        if not _PARTITION.fullmatch(last):
            return path
        path = parent


def _before_glob(uri: str) -> str:
    kept: list[str] = []
    for segment in uri.split("/"):
        if _GLOB.search(segment):
            break
        kept.append(segment)
    return "/".join(kept) or "/"


def _is_file(dataset: DatasetId) -> bool:
    return "." in posixpath.basename(dataset.name)


def _common(datasets: list[DatasetId]) -> list[DatasetId]:
    """Return one common folder per namespace, when there are too many paths."""
    by_namespace: dict[str, list[str]] = {}
    for dataset in datasets:
        by_namespace.setdefault(dataset.namespace, []).append(dataset.name)
    return [
        DatasetId(namespace, posixpath.commonpath(names) or "/")
        for namespace, names in by_namespace.items()
    ]
