"""Draw a trace as a self-contained SVG."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING
from zlib import crc32

from downriver.graph.draw.sketch import Line, Sketch, counted
from downriver.graph.draw.svg_board import MARGIN, Board
from downriver.graph.draw.svg_boxes import render_card
from downriver.graph.draw.svg_edges import Labels, render_line, render_tip
from downriver.graph.draw.svg_text import SMALL_CELL, count_cells, number, xml, xml_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.answers import Trace, TraceNode

_FOOTER_HEIGHT = 30.0
_STYLE = """
.dr-paper{fill:#fff}
.dr-card{fill:#fff;stroke:#94a3b8;stroke-width:1.2}
.dr-dataset .dr-card{stroke:#93b4f5}.dr-job .dr-card{stroke:#c4b0f7;fill:#fcfbff}
.dr-column .dr-card{stroke:#93b4f5}
.dr-root>.dr-card,.dr-root>.dr-row{stroke:#ea580c;stroke-width:2.2;fill:#fff7ed}
.dr-certified>.dr-card,.dr-certified>.dr-row{fill:#f0fdf4}
.dr-pii>.dr-card,.dr-pii>.dr-row{fill:#fffbeb}
.dr-added>.dr-card,.dr-added>.dr-row{stroke:#16a34a;fill:#f0fdf4}
.dr-removed>.dr-card,.dr-removed>.dr-row{stroke:#dc2626;stroke-dasharray:4 3}
.dr-broken>.dr-card,.dr-broken>.dr-row{stroke:#dc2626;fill:#fef2f2}
.dr-badge{fill:#e8f0fe}.dr-job .dr-badge{fill:#f0ebfe}
.dr-icon{fill:none;stroke:#2563eb;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}
.dr-job .dr-icon{stroke:#7c3aed}.dr-field .dr-icon{stroke:#0d9488}
.dr-row{fill:none}.dr-rule{stroke:#e2e8f0}
.dr-name{font:600 12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
fill:#0f172a;white-space:pre}
.dr-field .dr-name{font-weight:400}
.dr-small{font:10px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:#64748b;\
white-space:pre}
.dr-line{fill:none;stroke:#64748b;stroke-width:1.4}
.dr-tip{fill:#64748b}.dr-tip-stale{fill:#a8b3c2}
.dr-indirect{stroke-dasharray:5 4}
.dr-line-added{stroke:#16a34a;stroke-width:2.2}.dr-line-removed{stroke:#dc2626;stroke-width:2.2}
.dr-stale{stroke:#a8b3c2;stroke-dasharray:1.5 4;stroke-linecap:round}
.dr-label{font-size:9px;fill:#475569;text-anchor:middle;\
paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}
.dr-warning{fill:#b45309;font-weight:600}
@media (prefers-color-scheme:dark){
.dr-paper{fill:#0b1220}
.dr-card{fill:#131c2e;stroke:#475569}
.dr-dataset .dr-card,.dr-column .dr-card{stroke:#3b5ea8}
.dr-job .dr-card{stroke:#6344a8;fill:#191732}
.dr-root>.dr-card,.dr-root>.dr-row{stroke:#fb923c;fill:#2c1a0e}
.dr-badge{fill:#1b2b4d}.dr-job .dr-badge{fill:#2a2150}
.dr-icon{stroke:#7aa7ff}.dr-job .dr-icon{stroke:#b79bff}.dr-field .dr-icon{stroke:#2dd4bf}
.dr-rule{stroke:#263248}
.dr-name{fill:#f1f5f9}.dr-small{fill:#94a3b8}
.dr-line{stroke:#8292aa}.dr-tip{fill:#8292aa}.dr-stale{stroke:#56647a}.dr-tip-stale{fill:#56647a}
.dr-label{fill:#cbd5e1;stroke:#0b1220}
.dr-warning{fill:#fbbf24}
}
"""


def render_svg(trace: Trace) -> str:
    """Draw a trace as one SVG file: no scripts, nothing to fetch, legible in light and dark."""
    sketch = Sketch.of(trace)
    board = Board(sketch)
    footer, footer_end = _footer(sketch, board.bottom)
    width = number(max(board.right, footer_end) + MARGIN)
    height = number(board.bottom + MARGIN + (_FOOTER_HEIGHT if footer else 0.0))
    # Several drawings may share a page, where ids must not clash.
    prefix = f"dr-{crc32(sketch.root.id.encode(errors='replace')):08x}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img"'
            f' aria-labelledby="{prefix}-title {prefix}-desc">',
            f'<title id="{prefix}-title">Lineage of {xml(_full_name(sketch.root))}</title>',
            f'<desc id="{prefix}-desc">{xml(_description(sketch))}</desc>',
            f"<style>{_STYLE}</style>",
            f"<defs>{render_tip(prefix, '')}{render_tip(prefix, '-stale')}</defs>",
            '<rect class="dr-paper" width="100%" height="100%" rx="10"/>',
            *_lines(board, prefix),
            *(render_card(card, sketch.root.id) for card in board.cards),
            *footer,
            "</svg>",
            "",
        ]
    )


def _full_name(node: TraceNode) -> str:
    return node.name if node.field is None else f"{node.name}.{node.field}"


def _description(sketch: Sketch) -> str:
    size = f"{counted(len(sketch.nodes), 'node')}, {counted(len(sketch.lines), 'edge')}"
    return f"{size} around {sketch.root.id}; {sketch.note or 'complete'}"


def _lines(board: Board, prefix: str) -> Iterator[str]:
    """Draw all lines, then all labels, so that no line strikes a label out."""
    leaving = Counter(line.source for line in board.lines)
    entering = Counter(line.target for line in board.lines)
    for line in board.lines:
        yield render_line(line, board.way(line), prefix)
    labels = Labels()
    # Those hardest to place come first: loops, which have one place for a label, and long words.
    labelled = [line for line in board.lines if line.label]
    labelled.sort(key=lambda line: (not board.loops(line), -len(line.label)))
    for line in labelled:
        labels.add(line.label, board.way(line), leaving[line.source] - entering[line.target])
    yield from labels.drawn


def _footer(sketch: Sketch, top: float) -> tuple[list[str], float]:
    """Draw what is missing and what dashes mean, if anything; return where it ends, too."""
    x, y = MARGIN, top + _FOOTER_HEIGHT
    items = []
    if sketch.note:
        spots = xml_lines(sketch.note, *sketch.blind_spots)
        text = f'<text class="dr-small dr-warning" x="{number(x)}" y="{number(y)}">'
        items.append(f"<g><title>{spots}</title>{text}{xml('⚠ ' + sketch.note)}</text></g>")
        x += SMALL_CELL * (count_cells(sketch.note) + 8)
    for name, look in _looks(sketch.lines):
        items.append(
            f'<path class="dr-line{look}" d="M{number(x)} {number(y - 3.5)}h28"/>'
            f'<text class="dr-small" x="{number(x + 34)}" y="{number(y)}">{name}</text>'
        )
        x += 34 + SMALL_CELL * (count_cells(name) + 4)
    return items, x - MARGIN


def _looks(lines: Sequence[Line]) -> list[tuple[str, str]]:
    """List the kinds of line to explain: none when all are plain."""
    indirect, stale = any(line.indirect for line in lines), any(line.stale for line in lines)
    looks = [
        ("direct" if indirect else "active", "", any(line.solid for line in lines)),
        ("indirect", " dr-indirect", indirect),
        ("stale", " dr-stale", stale),
    ]
    return [(name, look) for name, look, used in looks if used and (indirect or stale)]
