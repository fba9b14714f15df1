"""OpenLineage names of the paths, tables and JDBC URLs that Spark uses."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from downriver.model.ids import DatasetId
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Sequence

_GLOB = re.compile(r"[*?\[{]")
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
        """Return the dataset of a table name in a query or an option."""
        parts = [part.strip('"`[]') for part in name.split(".")]
        schema = _DEFAULT_SCHEMAS.get(self.scheme)
        if schema is not None and len(parts) == 1:
            parts.insert(0, schema)
        full = 3 if schema is not None else 2
        if self.database and len(parts) < full:
            parts.insert(0, self.database)
        return DatasetId(self.namespace, ".".join(parts))


def name_paths(uris: Sequence[str], asked_for: str = "") -> list[DatasetId]:
    """Return the datasets of files. A glob, or many files of one folder, is one dataset."""
    if asked_for and _GLOB.search(asked_for):
        return [dataset_at(asked_for)]
    datasets = list(dict.fromkeys(dataset_at(uri) for uri in uris or [asked_for]))
    if len(datasets) <= 1:
        return datasets
    folders = {DatasetId(each.namespace, posixpath.dirname(each.name)) for each in datasets}
    if len(folders) == 1 and (
        len(datasets) > _MANY_PATHS or all(_is_file(each) for each in datasets)
    ):
        return list(folders)
    return datasets if len(datasets) <= _MANY_PATHS else _common(datasets)


def is_glob(path: str) -> bool:
    """Return whether a path is a pattern."""
    return bool(_GLOB.search(path))


def name_glob(pattern: str, matches: Sequence[str], folders: Sequence[str]) -> list[DatasetId]:
    """Return the datasets of a glob: the folders that it matches, and one for its files.

    `folders` are those that contain files. A folder that the glob matches, such as
    `raw/*_sales.csv` written by Spark, is a dataset of its own. Single files belong to the dataset
    above them.
    """
    below = {folder.rstrip("/") for folder in folders}
    written = [
        match
        for match in matches
        if any(folder == match or folder.startswith(f"{match}/") for folder in below)
    ]
    datasets = list(dict.fromkeys(map(dataset_at, written)))
    if len(written) < len(matches) or not 0 < len(datasets) <= _MANY_PATHS:
        return list(dict.fromkeys([*datasets[:_MANY_PATHS], dataset_at(pattern)]))
    return datasets


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
