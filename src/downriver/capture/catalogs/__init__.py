"""Lineage that other catalogs have exported to files, one module for each catalog."""

from downriver.capture.catalogs.amundsen import parse_amundsen
from downriver.capture.catalogs.atlas import parse_atlas
from downriver.capture.catalogs.atlas_bulk import BulkEntities, EntityMutation, parse_bulk
from downriver.capture.catalogs.datahub import parse_datahub
from downriver.capture.catalogs.feast import parse_feast
from downriver.capture.catalogs.glue import parse_glue
from downriver.capture.catalogs.kubeflow import parse_kubeflow
from downriver.capture.catalogs.openmetadata import parse_openmetadata
from downriver.capture.catalogs.unity import parse_unity

__all__ = [
    "BulkEntities",
    "EntityMutation",
    "parse_amundsen",
    "parse_atlas",
    "parse_bulk",
    "parse_datahub",
    "parse_feast",
    "parse_glue",
    "parse_kubeflow",
    "parse_openmetadata",
    "parse_unity",
]
