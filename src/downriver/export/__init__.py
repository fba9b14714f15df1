"""A piece of the graph, written down in the formats of others."""

from downriver.export.cypher import push_cypher
from downriver.export.formats import FORMATS, DerivedColumn, ExportedGraph, compare_traces, render

__all__ = ["FORMATS", "DerivedColumn", "ExportedGraph", "compare_traces", "push_cypher", "render"]
