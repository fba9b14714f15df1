"""Renders a part of the graph in the formats of other tools."""

from downriver.export.atlas import batch_entities
from downriver.export.cypher import CypherDriver, delete_nodes, push_cypher
from downriver.export.formats import FORMATS, DerivedColumn, ExportedGraph, compare_traces, render
from downriver.export.pictures import render_view

__all__ = [
    "FORMATS",
    "CypherDriver",
    "DerivedColumn",
    "ExportedGraph",
    "batch_entities",
    "compare_traces",
    "delete_nodes",
    "push_cypher",
    "render",
    "render_view",
]
