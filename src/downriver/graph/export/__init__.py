"""A trace written down in the formats of others."""

from downriver.graph.export.formats import FORMATS, render

__all__ = ["FORMATS", "render"]
