"""Lineage that other catalogs have exported to files, one module for each catalog."""

from downriver.capture.catalogs.glue import parse_glue
from downriver.capture.catalogs.unity import parse_unity

__all__ = ["parse_glue", "parse_unity"]
