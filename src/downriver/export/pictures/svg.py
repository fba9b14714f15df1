"""Draw a trace as a self-contained SVG: the place of every card and line, and the file itself."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from downriver.export.pictures.drawing import (
    Drawing,
    DrawnLine,
    counted,
    field_of,
    split_columns,
)
from downriver.export.pictures.layout import Layout, Link, Slot, lay_out, spread
from downriver.export.pictures.svg_shapes import (
    LOOP_REACH,
    SMALL_CELL,
    EdgeLabels,
    NodeCard,
    count_cells,
    label_width,
    number,
    render_card,
    render_line,
    render_tip,
    xml,
    xml_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from downriver.export.pictures.layout import Place
    from downriver.export.pictures.svg_shapes import Point
    from downriver.model.answers import Trace, TraceNode

MARGIN = 24.0
_CARD_GAP = 18.0
_TRACK = 8.0  # between lines that run side by side
_LAYER_GAPS = (76.0, 200.0)


class SvgLayout:
    """The cards of a drawing in their places, and the paths of the lines between them."""

    def __init__(self, sketch: Drawing) -> None:
        self.lines = sketch.lines
        alone, tables = split_columns(sketch.nodes.values())
        self.cards = [NodeCard(nodes, sketch) for nodes in ([node] for node in alone)]
        self.cards += [NodeCard(nodes, sketch) for nodes in tables.values()]
        self.home = {node.id: card for card in self.cards for node in card.nodes}
        self.layout = self._lay_out(sketch.places)
        self.tracks = self._assign_tracks()
        self.fans = self._fan_out()
        self.lane_tops: dict[Slot, float] = {}
        self.bottom = 0.0
        self._set_heights()
        if any(len(card.nodes) > 1 for card in self.cards):
            self._sort_rows()
            self._set_heights()
        self.layers = self._set_columns()
        self.joints = self._joints()

    def ends(self, line: DrawnLine) -> tuple[NodeCard, NodeCard]:
        """Return the cards a line joins."""
        return self.home[line.source], self.home[line.target]

    def loops(self, line: DrawnLine) -> bool:
        """Return whether a line ends in the card it starts from."""
        source, target = self.ends(line)
        return source is target

    def _lay_out(self, places: Mapping[str, Place]) -> Layout:
        ends = [self.ends(line) for line in self.lines]
        layout = lay_out(
            [card.key for card in self.cards],
            [(source.key, target.key) for source, target in ends],
            {self.home[node_id].key: place for node_id, place in places.items()},
        )
        for card in self.cards:
            card.slot = layout.slots[card.key]
        return layout

    def lane(self, line: DrawnLine) -> tuple[Slot, ...]:
        """Return the slots between the cards of a line, in its direction."""
        source, target = self.ends(line)
        return self.layout.lanes.get((source.key, target.key), ())

    def _assign_tracks(self) -> dict[DrawnLine, int]:
        """Number the lines that share a lane, so that they run side by side."""
        sharing: defaultdict[Slot, list[DrawnLine]] = defaultdict(list)
        for line in self.lines:
            for slot in self.lane(line)[:1]:
                sharing[min(slot, self.lane(line)[-1])].append(line)
        return {line: number for lines in sharing.values() for number, line in enumerate(lines)}

    def _fan_out(self) -> dict[DrawnLine, float]:
        """Separate lines that join the same two nodes, and backward lines from all others."""
        pairs: defaultdict[frozenset[str], list[DrawnLine]] = defaultdict(list)
        for line in self.lines:
            pairs[frozenset((line.source, line.target))].append(line)
        fans: dict[DrawnLine, float] = {}
        for pair in pairs.values():
            step = min(_TRACK, 2 * _TRACK / len(pair))
            first = -(len(pair) - 1) / 2 if len(pair) > 1 or not self._leads_back(pair[0]) else 1
            fans.update((line, (first + number) * step) for number, line in enumerate(pair))
        return fans

    def _leads_back(self, line: DrawnLine) -> bool:
        source, target = self.ends(line)
        return source.slot.layer > target.slot.layer

    def _set_heights(self) -> None:
        heights = {card.slot: card.height for card in self.cards}
        for line, track in self.tracks.items():
            for slot in self.lane(line):
                heights[slot] = max(heights.get(slot, 0.0), (track + 1) * _TRACK)
        tops = spread(heights, self._links(), gap=_CARD_GAP)
        self.bottom = MARGIN + max(top + heights[slot] for slot, top in tops.items())
        for card in self.cards:
            card.y = MARGIN + tops.pop(card.slot)
        self.lane_tops = {slot: MARGIN + top for slot, top in tops.items()}

    def _links(self) -> Iterator[Link]:
        ports = dict(port for card in self.cards for port in card.ports())
        for line in self.lines:
            source, target = self.ends(line)
            way = [
                (source.slot, ports[line.source]),
                *((slot, self._track_offset(line)) for slot in self.lane(line)),
                (target.slot, ports[line.target]),
            ]
            for (near, near_offset), (far, far_offset) in pairwise(way):
                if near != far:
                    yield Link(near, near_offset, far, far_offset)

    def _track_offset(self, line: DrawnLine) -> float:
        return (self.tracks[line] + 0.5) * _TRACK

    def _joints(self) -> dict[str, float]:
        """Return the height at which lines join each node."""
        return {node: card.y + offset for card in self.cards for node, offset in card.ports()}

    def _sort_rows(self) -> None:
        """Order the columns of each card like the columns they are joined to."""
        beside: defaultdict[str, list[str]] = defaultdict(list)
        for line in self.lines:
            if not self.loops(line):
                beside[line.source].append(line.target)
                beside[line.target].append(line.source)
        heights = self._joints()
        for card in sorted(self.cards, key=lambda card: card.slot):
            if card.head is not None:  # rows of a screen: they keep the order of the table
                continue
            mean_heights = {
                node.id: _mean(heights[other] for other in beside[node.id] or [node.id])
                for node in card.nodes
            }
            card.nodes.sort(key=lambda node: (mean_heights[node.id], field_of(node)))
            heights.update((node, card.y + offset) for node, offset in card.ports())

    def _set_columns(self) -> list[tuple[float, float]]:
        """Give every layer its left and right; return them."""
        widths: defaultdict[int, float] = defaultdict(float)
        for card in self.cards:
            widths[card.slot.layer] = max(widths[card.slot.layer], card.needed_width())
        gap, left, layers = self._gap(), MARGIN, []
        for layer in sorted(widths):
            layers.append((left, left + widths[layer]))
            left += widths[layer] + gap
        for card in self.cards:
            card.x, right = layers[card.slot.layer]
            card.width = right - card.x
        return layers

    def _gap(self) -> float:
        """Leave room for the longest label, and more in a tall drawing, where lines are steep."""
        lowest, highest = _LAYER_GAPS
        words = max((label_width(line.label) for line in self.lines), default=0.0)
        return min(highest, max(lowest, self.bottom / 10, words + 72))

    @property
    def right(self) -> float:
        """The right end of the last layer, with its loops."""
        loops = [
            LOOP_REACH + label_width(line.label)
            for line in self.lines
            if self.loops(line) and self.home[line.source].slot.layer == len(self.layers) - 1
        ]
        return self.layers[-1][1] + max(loops, default=0.0)

    def way(self, line: DrawnLine) -> list[Point]:
        """Return the points of a line: a curve to each lane, and a level part along the lane."""
        source, target = self.ends(line)
        start, end = (self.joints[node] + self.fans[line] for node in line[:2])
        if source is target:
            # A node with an edge to itself has two joints, a little apart.
            apart = _TRACK if line.source == line.target else 0.0
            return [(source.right, start - apart), (source.right, end + apart)]
        if self._leads_back(line):
            return [(source.x, start), *self._along(line, -1), (target.right, end)]
        return [(source.right, start), *self._along(line, 1), (target.x, end)]

    def _along(self, line: DrawnLine, direction: int) -> Iterator[Point]:
        for slot in self.lane(line):
            height = self.lane_tops[slot] + self._track_offset(line)
            for x in self.layers[slot.layer][::direction]:
                yield x, height


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)


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


_FADED_STYLE = ".dr-faded{opacity:.3}\n"


def render_svg(trace: Trace) -> str:
    """Draw a trace as one SVG file."""
    return draw_svg(Drawing.of(trace))


def draw_svg(sketch: Drawing) -> str:
    """Draw one SVG file without scripts or external files, for light and dark themes."""
    board = SvgLayout(sketch)
    footer, footer_end = _footer(sketch, board.bottom)
    width = number(max(board.right, footer_end) + MARGIN)
    height = number(board.bottom + MARGIN + (_FOOTER_HEIGHT if footer else 0.0))
    # Several drawings may be on one page, where ids must be distinct.
    prefix = f"dr-{crc32(sketch.root.id.encode(errors='replace')):08x}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}" height="{height}" role="img"'
            f' aria-labelledby="{prefix}-title {prefix}-desc">',
            f'<title id="{prefix}-title">Lineage of {xml(_full_name(sketch.root))}</title>',
            f'<desc id="{prefix}-desc">{xml(_description(sketch))}</desc>',
            f"<style>{_STYLE}{_FADED_STYLE if sketch.faded else ''}</style>",
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


def _description(sketch: Drawing) -> str:
    size = f"{counted(len(sketch.nodes), 'node')}, {counted(len(sketch.lines), 'edge')}"
    return f"{size} around {sketch.root.id}; {sketch.note or 'complete'}"


def _lines(board: SvgLayout, prefix: str) -> Iterator[str]:
    """Draw all lines, then all labels, so that no line crosses a label."""
    leaving = Counter(line.source for line in board.lines)
    entering = Counter(line.target for line in board.lines)
    for line in board.lines:
        yield render_line(line, board.way(line), prefix)
    labels = EdgeLabels()
    # Labels that are hardest to place come first: those of loops, which have one position, and long
    # ones.
    labelled = [line for line in board.lines if line.label]
    labelled.sort(key=lambda line: (not board.loops(line), -len(line.label)))
    for line in labelled:
        lean = leaving[line.source] - entering[line.target]
        labels.add(line.label, board.way(line), lean, faded=line.faded)
    yield from labels.drawn


def _footer(sketch: Drawing, top: float) -> tuple[list[str], float]:
    """Draw the note and the legend of dashed lines; return both and the position of their end."""
    x, y = MARGIN, top + _FOOTER_HEIGHT
    items = []
    if sketch.summary:
        text = (
            f'<text class="dr-small" x="{number(x)}" y="{number(y)}">{xml(sketch.summary)}</text>'
        )
        items.append(text)
        x += SMALL_CELL * (count_cells(sketch.summary) + 4)
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


def _looks(lines: Sequence[DrawnLine]) -> list[tuple[str, str]]:
    """List the kinds of lines that the legend explains; none if all lines are plain."""
    indirect, stale = any(line.indirect for line in lines), any(line.stale for line in lines)
    looks = [
        ("direct" if indirect else "active", "", any(line.solid for line in lines)),
        ("indirect", " dr-indirect", indirect),
        ("stale", " dr-stale", stale),
    ]
    return [(name, look) for name, look, used in looks if used and (indirect or stale)]
