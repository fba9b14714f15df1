"""A piece of the graph, written down in the formats of others."""

from downriver.export.cypher import CypherDriver, delete_nodes, push_cypher
from downriver.export.formats import FORMATS, DerivedColumn, ExportedGraph, compare_traces, render

__all__ = [
    "FORMATS",
    "CypherDriver",
    "DerivedColumn",
    "ExportedGraph",
    "compare_traces",
    "delete_nodes",
    "push_cypher",
    "render",
]
