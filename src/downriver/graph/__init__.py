"""The graph in memory: index, walks, names, and the answers made from them."""

from downriver.graph.edges import FOREVER
from downriver.graph.index import GraphIndex
from downriver.graph.resolve import Entity, resolve
from downriver.graph.trace import paths, trace, trace_numbered
from downriver.graph.view import Question

__all__ = [
    "FOREVER",
    "Entity",
    "GraphIndex",
    "Question",
    "paths",
    "resolve",
    "trace",
    "trace_numbered",
]
