"""Where everything in an SVG stands."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from downriver.graph.draw.sketch import field_of
from downriver.graph.draw.svg_boxes import Card
from downriver.graph.draw.svg_edges import LOOP_REACH, label_width
from downriver.graph.layout import Layout, Link, Slot, lay_out, spread

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.graph.draw.sketch import Line, Sketch
    from downriver.graph.draw.svg_edges import Point

MARGIN = 24.0
_CARD_GAP = 18.0
_TRACK = 8.0  # between lines that run side by side
_LAYER_GAPS = (76.0, 200.0)


class Board:
    """The cards of a drawing in their places, and the ways of the lines between them."""

    def __init__(self, sketch: Sketch) -> None:
        self.lines = sketch.lines
        self.cards = [Card([node]) for node in sketch.alone]
        self.cards += [Card(columns) for columns in sketch.owned.values()]
        self.home = {node.id: card for card in self.cards for node in card.nodes}
        self.layout = self._lay_out()
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

    def ends(self, line: Line) -> tuple[Card, Card]:
        """Return the cards a line joins."""
        return self.home[line.source], self.home[line.target]

    def loops(self, line: Line) -> bool:
        """Tell whether a line ends in the card it comes from."""
        source, target = self.ends(line)
        return source is target

    def _lay_out(self) -> Layout:
        ends = [self.ends(line) for line in self.lines]
        layout = lay_out(
            [card.key for card in self.cards], [(source.key, target.key) for source, target in ends]
        )
        for card in self.cards:
            card.slot = layout.slots[card.key]
        return layout

    def lane(self, line: Line) -> tuple[Slot, ...]:
        """Return the slots between the cards of a line, in its direction."""
        source, target = self.ends(line)
        return self.layout.lanes.get((source.key, target.key), ())

    def _assign_tracks(self) -> dict[Line, int]:
        """Number the lines that share a lane, so that they run side by side."""
        sharing: defaultdict[Slot, list[Line]] = defaultdict(list)
        for line in self.lines:
            for slot in self.lane(line)[:1]:
                sharing[min(slot, self.lane(line)[-1])].append(line)
        return {line: number for lines in sharing.values() for number, line in enumerate(lines)}

    def _fan_out(self) -> dict[Line, float]:
        """Part lines that join the same two nodes, and lines that go back from all others."""
        pairs: defaultdict[frozenset[str], list[Line]] = defaultdict(list)
        for line in self.lines:
            pairs[frozenset((line.source, line.target))].append(line)
        fans: dict[Line, float] = {}
        for pair in pairs.values():
            step = min(_TRACK, 2 * _TRACK / len(pair))
            first = -(len(pair) - 1) / 2 if len(pair) > 1 or not self._goes_back(pair[0]) else 1
            fans.update((line, (first + number) * step) for number, line in enumerate(pair))
        return fans

    def _goes_back(self, line: Line) -> bool:
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

    def _track_offset(self, line: Line) -> float:
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
            wishes = {
                node.id: _mean(heights[other] for other in beside[node.id] or [node.id])
                for node in card.nodes
            }
            card.nodes.sort(key=lambda node: (wishes[node.id], field_of(node)))
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
        """The end of the last layer, and of what loops beyond it."""
        loops = [
            LOOP_REACH + label_width(line.label)
            for line in self.lines
            if self.loops(line) and self.home[line.source].slot.layer == len(self.layers) - 1
        ]
        return self.layers[-1][1] + max(loops, default=0.0)

    def way(self, line: Line) -> list[Point]:
        """Return the points a line passes: a curve to each lane, level along it, a curve on."""
        source, target = self.ends(line)
        start, end = (self.joints[node] + self.fans[line] for node in line[:2])
        if source is target:
            # A node that feeds itself is joined twice, a little apart.
            apart = _TRACK if line.source == line.target else 0.0
            return [(source.right, start - apart), (source.right, end + apart)]
        if self._goes_back(line):
            return [(source.x, start), *self._along(line, -1), (target.right, end)]
        return [(source.right, start), *self._along(line, 1), (target.x, end)]

    def _along(self, line: Line, direction: int) -> Iterator[Point]:
        for slot in self.lane(line):
            height = self.lane_tops[slot] + self._track_offset(line)
            for x in self.layers[slot.layer][::direction]:
                yield x, height


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed)
