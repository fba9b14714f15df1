"""Lineage from the files in dbt's target directory, without dbt."""

from downriver.capture.dbt.artifact_tables import read_artifact_tables
from downriver.capture.dbt.artifacts import Artifacts, read_artifacts
from downriver.capture.dbt.nodes import DbtNaming
from downriver.capture.dbt.project import (
    DbtCapture,
    capture_dbt,
    list_exposures,
    list_names,
    relation_names,
)

__all__ = [
    "Artifacts",
    "DbtCapture",
    "DbtNaming",
    "capture_dbt",
    "list_exposures",
    "list_names",
    "read_artifact_tables",
    "read_artifacts",
    "relation_names",
]
