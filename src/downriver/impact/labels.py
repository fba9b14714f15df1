"""Tags, owners and type of a dataset or job, from its facets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterable


def _decoded(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {}
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def read_string(body: bytes | None, key: str) -> str:
    """Return a string of a facet, empty when there is none."""
    value = _decoded(body).get(key)
    return value if isinstance(value, str) else ""


def _entries(body: bytes | None, key: str) -> Iterable[dict[str, Any]]:
    found = _decoded(body).get(key)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def read_owners(body: bytes | None) -> tuple[str, ...]:
    """Return the names of owners."""
    names = [entry.get("name") for entry in _entries(body, "owners")]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name))


_TRUE = frozenset({"", "true", "yes", "1"})
_FALSE = frozenset({"false", "no", "0"})


def read_tags(body: bytes | None) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
    """Return the tags of a dataset as a whole, and those of its columns."""
    whole: set[str] = set()
    by_column: dict[str, set[str]] = {}
    for entry in _entries(body, "tags"):
        key, value = str(entry.get("key") or ""), str(entry.get("value") or "").lower()
        if not key or value in _FALSE:
            continue
        tag = key.lower() if value in _TRUE else f"{key.lower()}:{value}"
        column = entry.get("field")
        if isinstance(column, str) and column and column != EVERY_FIELD:
            by_column.setdefault(column.casefold(), set()).add(tag)
        else:
            whole.add(tag)
    return frozenset(whole), {name: frozenset(tags) for name, tags in by_column.items()}


_JOB_TYPES = {
    ("AIRFLOW", "DAG"): "dag", ("AIRFLOW", "TASK"): "task", ("DBT", "MODEL"): "dbt_model",
    ("DBT", "JOB"): "dbt_model", ("DBT", "SNAPSHOT"): "dbt_model", ("DBT", "SEED"): "dbt_model",
}  # fmt: skip


def read_job_type(body: bytes | None) -> str:
    """Return the asset type of a job, from its integration and job type."""
    integration = read_string(body, "integration").upper()
    kind = read_string(body, "jobType").upper()
    known = _JOB_TYPES.get((integration, kind))
    if known is not None:
        return known
    if integration == "SPARK":
        return "spark_job"
    if integration == "SQL":
        return "sql"
    return kind.lower() or integration.lower() or "job"
