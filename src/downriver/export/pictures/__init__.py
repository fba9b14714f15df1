"""Draw a trace as Mermaid, Graphviz DOT or a self-contained SVG, or what a screen shows of it.

Names are escaped: a drawing is valid and readable whatever characters a name contains.
"""

from downriver.export.pictures.dot import render_dot
from downriver.export.pictures.mermaid import render_mermaid
from downriver.export.pictures.svg import render_svg
from downriver.export.pictures.view import render_view

__all__ = ["render_dot", "render_mermaid", "render_svg", "render_view"]
