"""The systems that Downriver takes lineage from. `downriver integrations` lists them.

To add a system, add an entry. No other code refers to a system of this list by name.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple


class Integration(NamedTuple):
    """A system, the package that reads it, and how its jobs are recognised in events."""

    name: str
    setup: str  # the command, call or setting that starts it
    integrations: tuple[str, ...]  # `integration` of the jobType facets of its jobs
    producers: tuple[str, ...] = ()  # parts of the producer URL of its facets
    package: str = ""  # the distribution that it needs besides Downriver
    module: str = ""  # the module of that distribution, if it has another name
    extra: str = ""  # the extra of Downriver that installs the package
    guide: str = ""  # its page in docs/guide, without .md


INTEGRATIONS: tuple[Integration, ...] = (
    Integration(
        "airflow",
        "pip install apache-airflow-providers-openlineage, then OPENLINEAGE_URL; or LineagePlugin",
        ("AIRFLOW",),
        ("apache/airflow", "integration/airflow"),
        guide="integrations/orchestrators",
    ),
    Integration(
        "prefect",
        "lineage_hook() as on_completion of flows and tasks",
        ("PREFECT",),
        package="prefect",
        guide="integrations/orchestrators",
    ),
    Integration(
        "dagster",
        "LINEAGE_HOOKS as hooks of a job",
        ("DAGSTER",),
        package="dagster",
        guide="integrations/orchestrators",
    ),
    Integration("atlas", "downriver import atlas FILE", ("ATLAS",), guide="integrations/atlas"),
    Integration(
        "datahub", "downriver import datahub FILE", ("DATAHUB",), guide="integrations/datahub"
    ),
    Integration(
        "openmetadata",
        "downriver import openmetadata FILE",
        ("OPENMETADATA",),
        guide="integrations/openmetadata",
    ),
    Integration(
        "amundsen", "downriver import amundsen FILE", ("AMUNDSEN",), guide="integrations/amundsen"
    ),
    Integration(
        "kubeflow", "downriver import kubeflow FILE", ("KUBEFLOW",), guide="integrations/kubeflow"
    ),
    Integration("feast", "downriver import feast FILE", ("FEAST",), guide="integrations/feast"),
    Integration("unity", "downriver import unity FILE", ("UNITY",), guide="integrations/unity"),
    Integration(
        "dbt",
        "downriver capture dbt target, or downriver import dbt-artifacts URL",
        ("DBT",),
        guide="dbt",
    ),
    Integration(
        "spark",
        "downriver run spark-submit job.py",
        ("SPARK",),
        ("integration/spark",),
        package="pyspark",
        extra="spark",
        guide="spark",
    ),
    Integration(
        "trino",
        "event-listener.name=openlineage in Trino's event listener",
        ("TRINO",),
        ("trinodb/trino",),
        guide="integrations/engines",
    ),
    Integration(
        "flink",
        "OpenLineageJobStatusChangedListenerFactory in Flink's config.yaml",
        ("FLINK",),
        ("integration/flink",),
        guide="integrations/engines",
    ),
    Integration(
        "mlflow",
        "downriver capture mlflow URI, or lineage().mlflow()",
        ("MLFLOW",),
        package="mlflow-skinny",
        module="mlflow",
        extra="mlflow",
        guide="integrations/mlflow",
    ),
    Integration(
        "delta",
        "downriver capture delta TABLE",
        ("DELTA",),
        package="deltalake",
        extra="delta",
        guide="integrations/delta",
    ),
    Integration(
        "iceberg",
        "downriver capture iceberg TABLE --catalog NAME",
        ("ICEBERG",),
        package="pyiceberg",
        extra="iceberg",
        guide="integrations/iceberg",
    ),
    Integration(
        "kafka",
        "downriver consume kafka://HOST:9092/TOPIC",
        ("KAFKA",),
        package="confluent-kafka",
        module="confluent_kafka",
        extra="kafka",
        guide="integrations/kafka",
    ),
    Integration(
        "kafka-connect",
        "downriver import kafka-connect URL",
        ("KAFKA-CONNECT",),
        guide="integrations/kafka",
    ),
    Integration(
        "files",
        "downriver capture files PATH",
        ("FILES",),
        package="duckdb",
        extra="files",
        guide="integrations/files",
    ),
    Integration(
        "great-expectations",
        "LineageAction() as action of a checkpoint; or downriver capture great-expectations FILE",
        ("GREAT_EXPECTATIONS",),
        ("integration/common/openlineage/provider/great_expectations",),
        package="great_expectations",
        guide="integrations/great_expectations",
    ),
    Integration("sql", "downriver capture sql models", ("SQL",), guide="sql"),
    Integration("python", "@lineage().track(...)", ("PYTHON",), ("client/python",), guide="sdk"),
)


def installed_version(integration: Integration) -> str | None:
    """Return the version of the package of an integration; None if it is not installed."""
    if not integration.package:
        return None
    module = integration.module or integration.package.replace("-", "_")
    try:
        if importlib.util.find_spec(module) is None:
            return None
        return version(integration.package)
    except PackageNotFoundError:
        return ""  # another distribution contains the module
    except (ImportError, ValueError):  # a parent module is missing or has no spec
        return None
