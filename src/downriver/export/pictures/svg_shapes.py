"""The shapes of an SVG: text that fits, cards, lines and their labels."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from html import escape
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from downriver.export.pictures.drawing import (
    badges_of,
    field_of,
    marks_of,
    owner_of,
    printable,
)
from downriver.export.pictures.layout import Slot
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.export.pictures.drawing import Drawing, DrawnLine
    from downriver.model.answers import NodeKind, TraceNode

# The width of one cell of text: a letter of a monospaced face, an average one of the others.
NAME_CELL, SMALL_CELL = 7.25, 5.7


def xml(text: str) -> str:
    """Escape text for an element or an attribute."""
    return escape(printable(text))


def xml_lines(*lines: str) -> str:
    """Join the lines of a tooltip. A line break inside a line is escaped."""
    return "\n".join(xml(line) for line in lines)


def number(value: float) -> str:
    """Write a coordinate to a tenth, without trailing zeros."""
    return f"{value:.1f}".removesuffix(".0")


def count_cells(text: str) -> int:
    """Estimate how wide text is: two cells for East Asian letters, none for marks over others."""
    return sum(map(_cell, text))


def _cell(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, cells: float) -> str:
    """Shorten text in the middle, because the start and end of a name distinguish it best."""
    if count_cells(text) <= cells + 0.01:  # allow for rounding
        return text
    head = _take(text, (cells - 1) * 0.4)
    tail = _take(text[::-1], cells - 1 - count_cells(head))[::-1]
    return f"{head}…{tail}"


def _take(text: str, cells: float) -> str:
    """Return the beginning of text that fits."""
    taken = 0
    for number, char in enumerate(text):
        taken += _cell(char)
        if taken > cells:
            return text[:number]
    return text


_CARD_HEIGHT = 46.0
_ROW_HEIGHT = 24.0
_ROWS_END = 6.0  # below the last row of a card
_CARD_WIDTHS = (132.0, 272.0)
_CAPTIONED_WIDTH = 520.0
_TEXT_INSET = 42.0
_TEXT_END = 14.0
_ICONS: dict[NodeKind, str] = {
    "dataset": "M2.5 4.2c0-1.3 2.5-2.2 5.5-2.2s5.5.9 5.5 2.2-2.5 2.2-5.5 2.2-5.5-.9-5.5-2.2zv7.6"
    "c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2V4.2M2.5 8c0 1.3 2.5 2.2 5.5 2.2s5.5-.9 5.5-2.2",
    "job": "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4zM6.6 5.4v5.2l4.2-2.6z",
    "column": "M3.5 3h9v10h-9zM8 3v10",
}


class NodeCard:
    """A box of the drawing: a dataset, a job, or a dataset with some of its columns as rows."""

    def __init__(self, nodes: list[TraceNode], sketch: Drawing) -> None:
        self.nodes = nodes
        self.sketch = sketch
        self.table = nodes[-1].kind == "column"
        self.head = nodes[0] if self.table and nodes[0].kind == "dataset" else None
        self.slot = Slot(0, 0)
        self.x = self.y = self.width = 0.0

    @property
    def key(self) -> str:
        """The key of the card in the layout."""
        # `repr` keeps names with any characters distinct.
        first = self.nodes[0]
        return f"table {owner_of(first)!r}" if self.table else f"node {first.id}"

    @property
    def height(self) -> float:
        """The height of its heading and rows."""
        rows = len(self.rows) * _ROW_HEIGHT + _ROWS_END if self.table else 0.0
        return _CARD_HEIGHT + rows

    @property
    def rows(self) -> list[TraceNode]:
        """The columns of a table."""
        return [node for node in self.nodes if node.kind == "column"]

    @property
    def subtitle(self) -> str:
        """What stands below the name: the badges, the namespace and the caption."""
        first = self.nodes[0]
        badges = [] if first.kind == "column" else badges_of(first)
        parts = (*badges, first.namespace.strip(), self.sketch.captions.get(first.id, ""))
        return " · ".join(part for part in parts if part)

    @property
    def right(self) -> float:
        """The position of its right side."""
        return self.x + self.width

    def ports(self) -> Iterator[tuple[str, float]]:
        """Yield each node with the distance of its edges below the top."""
        for node in self.nodes:
            if node.kind != "column":
                yield node.id, _CARD_HEIGHT / 2
        for row, node in enumerate(self.rows):
            yield node.id, _CARD_HEIGHT + (row + 0.5) * _ROW_HEIGHT

    def needed_width(self) -> float:
        """Return the width that shows every name in full, within limits."""
        first = self.nodes[0]
        widths = [NAME_CELL * count_cells(first.name)]
        for node in self.rows:
            name = NAME_CELL * count_cells(field_of(node))
            widths.append(name + _caption_width(self.sketch.captions.get(node.id, "")))
        text = max(SMALL_CELL * count_cells(self.subtitle), *widths)
        lowest, highest = _CARD_WIDTHS
        if not self.sketch.captions.keys().isdisjoint(node.id for node in self.nodes):
            highest = _CAPTIONED_WIDTH
        return min(highest, max(lowest, _TEXT_INSET + text + _TEXT_END))


def render_card(card: NodeCard, root_id: str) -> str:
    """Draw a card in its place."""
    first = card.nodes[0]
    chosen = first.kind != "column" and first.id == root_id
    faded = " dr-faded" * (first.id in card.sketch.faded)
    radius = _CARD_HEIGHT / 2 if first.kind == "job" else 8
    name = str(DatasetId(*owner_of(first))) if card.table else first.id
    title = xml_lines(*filter(None, (name, card.sketch.captions.get(first.id))))
    rows = "".join(_rows(card, root_id)) if card.table else ""
    return (
        f'<g class="dr-{first.kind}{_classes([first] if first.kind != "column" else [])}'
        f'{" dr-root" * chosen}{faded}"'
        f' transform="translate({number(card.x)} {number(card.y)})">'
        f"<title>{title}</title>"
        f'<rect class="dr-card" width="{number(card.width)}" height="{number(card.height)}"'
        f' rx="{number(radius)}"/>{_heading(card)}{rows}</g>'
    )


def _classes(nodes: list[TraceNode]) -> str:
    """Return the CSS classes of the marks of nodes."""
    return "".join(f" dr-{mark}" for node in nodes for mark in marks_of(node))


def _heading(card: NodeCard) -> str:
    """Draw the icon, name and namespace at the top of a card."""
    first = card.nodes[0]
    icon = _ICONS["dataset" if card.table else first.kind]
    room = card.width - _TEXT_INSET - _TEXT_END
    name = fit(first.name, room / NAME_CELL)
    baseline, subtitle = 27, ""
    if card.subtitle:
        namespace = xml(fit(card.subtitle, room / SMALL_CELL))
        baseline, subtitle = (
            20,
            f'<text class="dr-small" x="{_TEXT_INSET:g}" y="34">{namespace}</text>',
        )
    return (
        f'<rect class="dr-badge" x="9" y="11" width="24" height="24" rx="{_badge_radius(first)}"/>'
        f'<path class="dr-icon" transform="translate(13 15)" d="{icon}"/>'
        f'<text class="dr-name" x="{_TEXT_INSET:g}" y="{baseline}">{xml(name)}</text>'
        f"{subtitle}"
    )


def _badge_radius(node: TraceNode) -> int:
    return 12 if node.kind == "job" else 6


def _rows(card: NodeCard, root_id: str) -> Iterator[str]:
    width = number(card.width)
    yield f'<path class="dr-rule" d="M0 {number(_CARD_HEIGHT)}H{width}"/>'
    ports = dict(card.ports())
    for node in card.rows:
        middle, caption = ports[node.id], card.sketch.captions.get(node.id, "")
        room = card.width - _TEXT_INSET - _TEXT_END - _caption_width(caption)
        cells = room / NAME_CELL
        row = f'<rect class="dr-row" x="4" y="{number(middle - _ROW_HEIGHT / 2 + 1)}"'
        row += f' width="{number(card.width - 8)}" height="{number(_ROW_HEIGHT - 2)}" rx="5"/>'
        yield (
            f'<g class="dr-field{_classes([node])}{" dr-root" * (node.id == root_id)}">'
            f"<title>{xml(node.id)}</title>"
            f'{row}<path class="dr-icon" transform="translate(15 {number(middle - 6)}) scale(.75)"'
            f' d="{_ICONS["column"]}"/><text class="dr-name" x="{_TEXT_INSET:g}"'
            f' y="{number(middle + 4)}">{xml(fit(field_of(node), cells))}</text>'
            f"{_row_caption(caption, card.width, middle)}</g>"
        )


_CAPTION_CELLS = 32


def _caption_width(caption: str) -> float:
    """Return the room at the end of a row for its caption."""
    return SMALL_CELL * min(_CAPTION_CELLS, count_cells(caption)) + 8 if caption else 0.0


def _row_caption(caption: str, width: float, middle: float) -> str:
    if not caption:
        return ""
    place = f'x="{number(width - _TEXT_END)}" y="{number(middle + 4)}" text-anchor="end"'
    return f'<text class="dr-small" {place}>{xml(fit(caption, _CAPTION_CELLS))}</text>'


Point: TypeAlias = tuple[float, float]

LOOP_REACH = 40.0
_LABEL_CELLS = 28
_LABEL_CELL, _LABEL_HEIGHT = 5.1, 12.0
_LABEL_PLACES = (0.3, 0.4, 0.5, 0.6, 0.7)


def render_tip(prefix: str, suffix: str) -> str:
    """Define the arrowhead of the lines of one style."""
    return (
        f'<marker id="{prefix}-tip{suffix}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8"'
        f' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="dr-tip{suffix}" d="M0 .6L8 4L0 7.4L1.8 4z"/></marker>'
    )


def render_line(line: DrawnLine, way: list[Point], prefix: str) -> str:
    """Draw a line along its points; its tooltip shows the evidence."""
    look = "dr-line" + " dr-indirect" * line.indirect + " dr-stale" * line.stale
    look += f" dr-line-{line.change}" if line.change else ""
    tip = f"{prefix}-tip{'-stale' * line.stale}"
    title = xml_lines(f"{line.source} → {line.target}", *line.evidence)
    group = '<g class="dr-faded">' if line.faded else "<g>"
    return (
        f"{group}<title>{title}</title>"
        f'<path class="{look}" d="{_path(way)}" marker-end="url(#{tip})"/></g>'
    )


def _path(way: list[Point]) -> str:
    (x, y), *rest = way
    path = [f"M{number(x)} {number(y)}"]
    for leg, (next_x, next_y) in enumerate(rest):
        if leg % 2:
            path.append(f"H{number(next_x)}")
        else:
            bend = number(_bend(x, next_x))
            path.append(
                f"C{bend} {number(y)} {bend} {number(next_y)} {number(next_x)} {number(next_y)}"
            )
        x, y = next_x, next_y
    return "".join(path)


def _bend(x: float, next_x: float) -> float:
    """Return where a curve turns: half way, or at the right if the line leads back."""
    return (x + next_x) / 2 if x != next_x else x + LOOP_REACH


def _point(start: Point, end: Point, t: float) -> Point:
    """Return the point a fraction `t` along the curve between two points."""
    (x, y), (next_x, next_y) = start, end
    across = 3 * t * (1 - t) * (_bend(x, next_x) - x) + t**3 * (next_x - x)
    return x + across, y + (3 * t**2 - 2 * t**3) * (next_y - y)


def label_width(label: str) -> float:
    """Return the width of a label, which is cut when it is long."""
    return _LABEL_CELL * min(_LABEL_CELLS, count_cells(label))


def _label_points(way: list[Point], lean: int, width: float) -> list[Point]:
    """List where to centre a label, best first."""
    # Lines meet at a node with many edges, so place the label where this line is separate.
    start, end = way[-2:] if lean > 0 else way[:2]
    if start[0] == end[0]:
        x, y = _point(start, end, 0.5)
        return [(x + width / 2 + 2, y)]
    best = 0.5 + 0.2 * ((lean > 0) - (lean < 0))
    places = sorted(_LABEL_PLACES, key=lambda place: abs(place - best))
    return [_point(start, end, place) for place in places]


class EdgeLabels:
    """Labels beside the lines, placed so that they do not overlap where that is possible."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        # Indexed by area: comparing each label with all others takes quadratic time.
        self._taken: defaultdict[tuple[int, int], list[tuple[float, float, float]]]
        self._taken = defaultdict(list)

    def add(self, label: str, way: list[Point], lean: int, *, faded: bool = False) -> None:
        """Write a label. `lean`: how many more lines its source has than its target."""
        text = fit(label.lower().replace("_", " "), _LABEL_CELLS)
        width = label_width(text)
        points = _label_points(way, lean, width)
        x, y = min(points, key=lambda point: self._overlap(point, width))
        self._taken[self._patch((x, y))].append((x, y, width))
        place = f'x="{number(x)}" y="{number(y + 3)}"'
        look = "dr-small dr-label" + " dr-faded" * faded
        self.drawn.append(f'<text class="{look}" {place}>{xml(text)}</text>')

    @staticmethod
    def _patch(point: Point) -> tuple[int, int]:
        x, y = point
        return int(x // (_LABEL_CELLS * _LABEL_CELL + 4)), int(y // _LABEL_HEIGHT)

    def _overlap(self, point: Point, width: float) -> float:
        """Return the area of other labels that a label here would cover."""
        (x, y), (across, down) = point, self._patch(point)
        patches = product(range(across - 1, across + 2), range(down - 1, down + 2))
        near = (label for patch in patches for label in self._taken.get(patch, ()))
        return sum(
            max(0.0, (width + other_width) / 2 + 4 - abs(x - other_x))
            * max(0.0, _LABEL_HEIGHT - abs(y - other_y))
            for other_x, other_y, other_width in near
        )
