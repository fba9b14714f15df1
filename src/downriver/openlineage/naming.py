"""Normal forms of dataset names: which differences in spelling leave the dataset the same.

`normal_form` removes the differences that certainly do not matter: aliases of a scheme, default
ports, a trailing slash, quotes, partition directories, letter case where the system ignores it. Two
datasets with equal normal forms are one dataset. `loose_form` also ignores differences that are
often, but not always, spellings of one name: letter case anywhere, the host of an HDFS path.
"""

from __future__ import annotations

import posixpath
import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId

# Scheme -> the scheme that stands for all its aliases.
SCHEMES = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfss": "abfs",
    "wasb": "abfs",
    "wasbs": "abfs",
    "viewfs": "hdfs",
    "webhdfs": "hdfs",
    "swebhdfs": "hdfs",
    "postgresql": "postgres",
    "sqlserver": "mssql",
    "mariadb": "mysql",
}
DEFAULT_PORTS = {
    "postgres": 5432,
    "mysql": 3306,
    "mssql": 1433,
    "oracle": 1521,
    "redshift": 5439,
    "hdfs": 8020,
}
_BUCKET_SCHEMES = {"s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs"}
BUCKETS = frozenset({"s3", "gs", "abfs"})  # the host is a bucket, so a path has no leading slash
STORAGE = BUCKETS | {"hdfs", "file", "dbfs", "adl", "oss", "cos", "obs", "r2", "minio"}
# Systems in which `Orders` and `orders` are one table, whatever the quotes.
_IGNORE_CASE = frozenset(
    {
        "athena", "awsathena", "awsglue", "databricks", "duckdb", "glue", "hive", "hive2",
        "iceberg", "impala", "presto", "redshift", "spark", "sqlite", "teradata", "trino",
        "unitycatalog",
    }
)  # fmt: skip
# Systems that store unquoted names in capitals: `orders` and `ORDERS` are one table. A name in
# mixed case was quoted, or is spelled as in a script.
_FOLD_TO_UPPER = frozenset({"snowflake", "oracle", "db2"})

_PLAIN = re.compile(r"[\w.$-]*", re.ASCII)  # a table name with nothing to remove
_QUOTES = '"`[]'
_GLOB = re.compile(r"[*?\[{]")
_PARTITION = re.compile(r"[^/=]+=[^/]*")
_PART_FILE = re.compile(r"part-(?:r-|m-)?\d{5}[-.].*|_(?:SUCCESS|delta_log|metadata)")
_FILE_NAME = re.compile(r".*[^.]\.[A-Za-z][A-Za-z0-9]{0,9}")
_FILE_FORMATS = frozenset(
    {
        "arrow", "avro", "bz2", "csv", "dat", "delta", "duckdb", "feather", "geojson", "gz",
        "html", "ipc", "joblib", "json", "jsonl", "lz4", "ndjson", "npy", "npz", "onnx", "orc",
        "parquet", "pb", "pickle", "pkl", "pq", "pt", "sas7bdat", "shp", "snappy", "sqlite", "sql",
        "tsv", "txt", "xls", "xlsx", "xml", "yaml", "yml", "zip", "zst",
    }
)  # fmt: skip


class Location(NamedTuple):
    """A namespace in its parts: `s3a://bucket` is `s3` and `bucket`."""

    scheme: str  # without aliases; empty if the namespace is not a URL
    namespace: str


@lru_cache(4096)  # a catalog has few namespaces
def parse_namespace(namespace: str) -> Location:
    """Return the scheme of a namespace, and the namespace in its normal form."""
    if namespace.startswith("arn:aws:glue:"):
        return Location("awsglue", namespace)
    scheme, separator, host = namespace.partition("://")
    if not separator:
        word = namespace.rstrip(":/").lower()
        return Location(word, word) if word in STORAGE else Location("", namespace)
    scheme = SCHEMES.get(scheme.lower(), scheme.lower())
    host = host.rstrip("/")
    if scheme == "abfs":
        host = host.replace(".blob.core.", ".dfs.core.")
    if scheme in ("file", "dbfs") and not host:
        return Location(scheme, scheme)
    port = DEFAULT_PORTS.get(scheme)
    if port is not None and host and ":" not in host.rpartition("@")[2]:
        host = f"{host}:{port}"
    return Location(scheme, f"{scheme}://{host.lower()}")


def normal_form(dataset: DatasetId) -> DatasetId:
    """Return the id that all spellings of one dataset share."""
    scheme, namespace = parse_namespace(dataset.namespace)
    return DatasetId(namespace, _normal_name(scheme, dataset.name))


def loose_form(namespace: str, name: str) -> tuple[str, str]:
    """Return a key that is equal for names that may be spellings of one name."""
    scheme, home = _loose_namespace(namespace)
    if scheme not in STORAGE and _PLAIN.fullmatch(name):
        return home, name.lower()  # most names; this runs for every dataset of a catalog
    return home, _normal_name(scheme, name).casefold()


@lru_cache(4096)
def _loose_namespace(namespace: str) -> Location:
    scheme, home = parse_namespace(namespace)
    return Location(scheme, "hdfs" if scheme == "hdfs" else home.casefold())


def _normal_name(scheme: str, name: str) -> str:
    if _PLAIN.fullmatch(name) and scheme not in STORAGE:
        return _fold_case(scheme, name)
    if scheme in STORAGE or name.startswith(("/", "./")):
        return normal_path(name, rooted=scheme not in BUCKETS)
    if "/" in name:
        name = name.rstrip("/") or name
    elif any(quote in name for quote in _QUOTES):
        name = unquoted(name)
    return _fold_case(scheme, name)


def _fold_case(scheme: str, name: str) -> str:
    if scheme in _IGNORE_CASE:
        return name.lower()
    if scheme in _FOLD_TO_UPPER:
        return ".".join(part.upper() if part.islower() else part for part in name.split("."))
    return name


def unquoted(name: str) -> str:
    """Return a dotted name without the quotes around its parts."""
    return ".".join(part.strip().strip(_QUOTES) for part in name.split("."))


def normal_path(path: str, *, rooted: bool = True) -> str:
    """Return the path of a dataset. Partitions, globs and files of a task belong to their folder.

    `raw/orders/`, `raw/./orders`, `raw/orders/day=2026-01-01` and `raw/orders/*.parquet` are all
    `raw/orders`. A path below a bucket (not `rooted`) has no leading slash.
    """
    decoded = unquote(path) if "%" in path else path
    if not _is_safely_decoded(decoded):
        decoded = path
    if not rooted:
        decoded = decoded.lstrip("/")
    parts = posixpath.normpath(decoded).split("/") if decoded else [""]
    globs = (at for at, part in enumerate(parts) if at and _GLOB.search(part))
    parts = parts[: next(globs, None)]
    if len(parts) > 1 and _PART_FILE.fullmatch(parts[-1]):
        parts.pop()
    while len(parts) > 1 and _PARTITION.fullmatch(parts[-1]):
        parts.pop()
    whole = "/".join(parts)
    if whole.startswith("//"):
        whole = whole[1:]
    return whole if whole not in ("", ".") else "/"


def _is_safely_decoded(path: str) -> bool:
    return "%" not in path and path.isprintable()


def dataset_at(uri: str) -> DatasetId:
    """Return the dataset at a path or URL. Partitions, globs and part files belong to it."""
    scheme, colon, rest = uri.partition(":")
    if not colon or "/" in scheme or not (rest.startswith("//") or scheme.lower() in STORAGE):
        return DatasetId("file", normal_path(uri))
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    scheme = scheme.lower()
    if scheme == "file":
        return DatasetId("file", normal_path(path))
    if scheme in _BUCKET_SCHEMES:
        home = f"{_BUCKET_SCHEMES[scheme]}://{host}"
        return DatasetId(home, normal_path(path, rooted=False))
    home = f"{scheme}://{host}" if host else scheme
    canonical = SCHEMES.get(scheme, scheme)
    if canonical not in STORAGE:
        return DatasetId(home, path.lstrip("/") or "/")
    return DatasetId(home, normal_path(path, rooted=canonical not in BUCKETS))


def is_file(name: str) -> bool:
    """Return whether the last part of a path names a file, by its extension."""
    last = name.rpartition("/")[2]
    return (
        _FILE_NAME.fullmatch(last) is not None and last.rpartition(".")[2].lower() in _FILE_FORMATS
    )


def folder_of(dataset: DatasetId) -> DatasetId | None:
    """Return the folder of a file in storage; None for anything else."""
    scheme, namespace = parse_namespace(dataset.namespace)
    if scheme not in STORAGE:
        return None
    name = _normal_name(scheme, dataset.name)
    parent, slash, _ = name.rpartition("/")
    return DatasetId(namespace, parent) if slash and parent and is_file(name) else None


class NameDifference(Enum):
    """How two names differ that may be one dataset; the smallest difference first."""

    SPELLING = "spelling"
    CASE = "letter case"
    HOST = "the host"
    FOLDER = "a file and its folder"
    PREFIX = "a prefix: the catalog, the schema or the folder of the warehouse"


def compare_names(one: DatasetId, other: DatasetId) -> NameDifference | None:
    """Return how two names differ; None if they cannot be one dataset."""
    forms = normal_form(one), normal_form(other)
    if forms[0] == forms[1]:
        return NameDifference.SPELLING
    if loose_form(one.namespace, one.name) == loose_form(other.namespace, other.name):
        same_place = forms[0].namespace.casefold() == forms[1].namespace.casefold()
        return NameDifference.CASE if same_place else NameDifference.HOST
    if folder_of(one) == forms[1] or folder_of(other) == forms[0]:
        return NameDifference.FOLDER
    return NameDifference.PREFIX if _differ_by_prefix(one, other) else None


def _differ_by_prefix(one: DatasetId, other: DatasetId) -> bool:
    """Return whether one name is the other with more parts in front.

    Examples: `orders` and `analytics.public.orders`, if both are in one place or one place is
    unknown; a table `gold.orders` and its folder `warehouse/gold.db/orders`.
    """
    locations = [parse_namespace(name.namespace) for name in (one, other)]
    is_path = [location.scheme in STORAGE for location in locations]
    short, long = sorted((_parts(one), _parts(other)), key=len)
    if long[-len(short) :] != short:
        return False
    if is_path[0] != is_path[1]:  # a table and a folder
        table = _parts(one) if is_path[1] else _parts(other)
        return table == short and len(table) > 1
    if all(is_path):
        return locations[0] == locations[1] and len(short) > 1
    return locations[0] == locations[1] or DEFAULT_NAMESPACE in (one.namespace, other.namespace)


def _parts(dataset: DatasetId) -> list[str]:
    """Return the parts of a name, without quotes and in one case; `gold.db` is `gold`."""
    scheme, _ = parse_namespace(dataset.namespace)
    name = _normal_name(scheme, dataset.name).casefold()
    if scheme in STORAGE:
        return [part.removesuffix(".db") for part in name.strip("/").split("/")]
    return name.replace("/", ".").split(".")
