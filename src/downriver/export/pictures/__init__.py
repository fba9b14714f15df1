"""Draw a trace as Mermaid, Graphviz DOT or a self-contained SVG.

Names are escaped: a drawing is valid and readable whatever characters a name contains.
"""

from downriver.export.pictures.dot import render_dot
from downriver.export.pictures.mermaid import render_mermaid
from downriver.export.pictures.svg import render_svg

__all__ = ["render_dot", "render_mermaid", "render_svg"]
