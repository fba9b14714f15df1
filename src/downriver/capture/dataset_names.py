"""Dataset and job ids for paths, URLs and names that users type. No catalog is used."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from downriver.errors import InvalidRequestError
from downriver.model.assets import (
    ANY_DATASET_PREFIX,
    COLUMN_PREFIXES,
    JOB_PREFIXES,
    PREFIXES_AS_NAMESPACE,
    split_prefix,
)
from downriver.model.ids import DatasetId, JobId, NodeId
from downriver.openlineage.naming import SCHEMES, STORAGE, dataset_at

_JDBC = re.compile(r"jdbc:(?P<kind>\w+):(?://)?(?P<rest>.+)", re.DOTALL)
_JDBC_SCHEMES = {"postgresql": "postgres", "sqlserver": "mssql"}
_DEFAULT_PORTS = {"postgres": "5432", "mysql": "3306", "mssql": "1433", "redshift": "5439"}


def dataset_from(source_ref: str) -> DatasetId | None:
    """Return the dataset of a URL: `postgres://warehouse/raw/orders`, `s3://bucket/orders`."""
    scheme, separator, rest = source_ref.partition("://")
    if not separator:
        return None
    if SCHEMES.get(scheme.lower(), scheme.lower()) in STORAGE:
        return dataset_at(source_ref)
    host, _, path = rest.strip("/").partition("/")
    return DatasetId(f"{scheme.lower()}://{host}", path.replace("/", ".")) if path else None


def dataset_in_storage(table: str) -> DatasetId | None:
    """Return the dataset of a path or URL in the place of a table, as in Spark's SQL."""
    return dataset_at(table) if table.startswith("/") else dataset_from(table)


def dataset_over_jdbc(url: str, table: str) -> DatasetId | None:
    """Return the dataset of a table behind a JDBC URL, or None if the URL is not valid."""
    match = _JDBC.match(url)
    if match is None:
        return None
    kind = _JDBC_SCHEMES.get(match["kind"], match["kind"])
    address, _, options = match["rest"].partition(";")
    parts = urlsplit(f"//{address}")
    port = parts.port or _DEFAULT_PORTS.get(kind)
    host = f"{parts.hostname or ''}:{port}" if port else parts.hostname or ""
    database = parts.path.strip("/").partition("/")[0] or _option(options, "databaseName")
    name = table.replace('"', "").replace("`", "")
    whole = f"{database}.{name}" if database and name.count(".") < 2 else name
    return DatasetId(f"{kind}://{host}", whole)


def _option(options: str, name: str) -> str:
    for option in options.split(";"):
        key, _, value = option.partition("=")
        if key.strip().lower() == name.lower():
            return value.strip()
    return ""


_FILE = "file"


def new_node(text: str, namespace: str, field: str = "entity_id") -> NodeId:
    """Return the id for a name that is in no catalog; raise if it cannot be a name."""
    word, name = check_name(text, field)
    if word in JOB_PREFIXES:
        home, colon, rest = name.rpartition(":")
        return JobId(home, rest) if colon and word == "job" else JobId(namespace, name)
    named = dataset_at(name) if _is_path(name, word) else dataset_from(name)
    if named is not None:
        return named
    home, colon, rest = name.rpartition(":")
    if word == ANY_DATASET_PREFIX and colon:
        return DatasetId(home, rest)
    return DatasetId(word if word in PREFIXES_AS_NAMESPACE or word == _FILE else namespace, name)


def _is_path(name: str, word: str) -> bool:
    return name.startswith(("/", "./", "../")) and word in (ANY_DATASET_PREFIX, _FILE)


def check_name(text: str, field: str) -> tuple[str, str]:
    """Return the prefix and the name in a text, or raise an error that names the problem."""
    word, name = split_prefix(text)
    if not name:
        raise InvalidRequestError(field, "empty; write for example table:orders or api:stripe")
    if word in COLUMN_PREFIXES:
        raise InvalidRequestError(field, f"{text!r} is a column; a flow connects datasets and jobs")
    return word, name
