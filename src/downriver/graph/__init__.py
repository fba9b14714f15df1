"""The graph in memory: index, walks, names, and answers."""

from downriver.graph.answers.trace import count_reached, paths, trace, trace_numbered
from downriver.graph.answers.view import Question
from downriver.graph.index.edges import FOREVER
from downriver.graph.names.resolution import Entity, resolve
from downriver.graph.snapshot import CatalogSnapshot, GraphIndex, GraphSnapshot

__all__ = [
    "FOREVER",
    "CatalogSnapshot",
    "Entity",
    "GraphIndex",
    "GraphSnapshot",
    "Question",
    "count_reached",
    "paths",
    "resolve",
    "trace",
    "trace_numbered",
]
