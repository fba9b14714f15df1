"""A piece of the graph, written down in the formats of others."""

from downriver.graph.export.cypher import push
from downriver.graph.export.difference import compare
from downriver.graph.export.formats import FORMATS, render
from downriver.graph.export.piece import Derived, Piece

__all__ = ["FORMATS", "Derived", "Piece", "compare", "push", "render"]
