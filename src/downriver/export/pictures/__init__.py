"""Draw a trace as Mermaid, Graphviz DOT or a self-contained SVG.

Names are data: whatever characters they hold, the drawing stays valid and says what they are.
"""

from downriver.export.pictures.dot import render_dot
from downriver.export.pictures.mermaid import render_mermaid
from downriver.export.pictures.svg import render_svg

__all__ = ["render_dot", "render_mermaid", "render_svg"]
