"""Single values of facets of a dataset or job, and the asset type of a job."""

from __future__ import annotations

from typing import Any

import msgspec


def _decoded(body: bytes | None) -> dict[str, Any]:
    if body is None:
        return {}
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def read_string(body: bytes | None, key: str) -> str:
    """Return one string of a facet, "" when there is none."""
    value = _decoded(body).get(key)
    return value if isinstance(value, str) else ""


_JOB_TYPES = {
    ("AIRFLOW", "DAG"): "dag", ("AIRFLOW", "TASK"): "task", ("DBT", "MODEL"): "dbt_model",
    ("DBT", "JOB"): "dbt_model", ("DBT", "SNAPSHOT"): "dbt_model", ("DBT", "SEED"): "dbt_model",
}  # fmt: skip


def read_job_type(body: bytes | None) -> str:
    """Return the asset type of a job, from its jobType facet."""
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
