"""Lineage from the files in dbt's target directory, without dbt."""

from downriver.capture.dbt.artifacts import read_artifacts
from downriver.capture.dbt.nodes import DbtNaming
from downriver.capture.dbt.project import (
    DbtCapture,
    capture_dbt,
    list_exposures,
    list_names,
    relation_names,
)

__all__ = [
    "DbtCapture",
    "DbtNaming",
    "capture_dbt",
    "list_exposures",
    "list_names",
    "read_artifacts",
    "relation_names",
]
