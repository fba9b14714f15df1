"""The shapes of an SVG: text that fits, cards, lines and their labels."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from html import escape
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from downriver.export.pictures.drawing import field_of, marks_of, owner_of, printable
from downriver.export.pictures.layout import Slot
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.export.pictures.drawing import DrawnLine
    from downriver.model.answers import NodeKind, TraceNode

# The width of one cell of text: a letter of a monospaced face, an average one of the others.
NAME_CELL, SMALL_CELL = 7.25, 5.7


def xml(text: str) -> str:
    """Escape text for an element or an attribute."""
    return escape(printable(text))


def xml_lines(*lines: str) -> str:
    """Join lines of a tooltip; a line break inside one of them is not a line of ours."""
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
    """Shorten text in its middle: the start and the end of a name distinguish it best."""
    if count_cells(text) <= cells + 0.01:  # a width computed from the text must be found to fit it
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

    def __init__(self, nodes: list[TraceNode]) -> None:
        self.nodes = nodes
        self.table = nodes[0].kind == "column"
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
        rows = len(self.nodes) * _ROW_HEIGHT + _ROWS_END if self.table else 0.0
        return _CARD_HEIGHT + rows

    @property
    def right(self) -> float:
        """Where its right side is."""
        return self.x + self.width

    def ports(self) -> Iterator[tuple[str, float]]:
        """Yield each node with how far below the top its edges arrive."""
        first = _CARD_HEIGHT + _ROW_HEIGHT / 2 if self.table else _CARD_HEIGHT / 2
        for row, node in enumerate(self.nodes):
            yield node.id, first + row * _ROW_HEIGHT

    def needed_width(self) -> float:
        """Return the width that shows every name in full, within limits."""
        first = self.nodes[0]
        names = [first.name, *(field_of(node) for node in self.nodes if self.table)]
        widths = [NAME_CELL * count_cells(name) for name in names]
        text = max(SMALL_CELL * count_cells(first.namespace), *widths)
        lowest, highest = _CARD_WIDTHS
        return min(highest, max(lowest, _TEXT_INSET + text + _TEXT_END))


def render_card(card: NodeCard, root_id: str) -> str:
    """Draw a card in its place."""
    first = card.nodes[0]
    chosen = not card.table and first.id == root_id
    radius = _CARD_HEIGHT / 2 if first.kind == "job" else 8
    title = str(DatasetId(*owner_of(first))) if card.table else first.id
    rows = "".join(_rows(card, root_id)) if card.table else ""
    return (
        f'<g class="dr-{first.kind}{_marked([] if card.table else [first])}{" dr-root" * chosen}"'
        f' transform="translate({number(card.x)} {number(card.y)})">'
        f"<title>{xml(title)}</title>"
        f'<rect class="dr-card" width="{number(card.width)}" height="{number(card.height)}"'
        f' rx="{number(radius)}"/>{_heading(card)}{rows}</g>'
    )


def _marked(nodes: list[TraceNode]) -> str:
    """Return the CSS classes of the marks of nodes."""
    return "".join(f" dr-{mark}" for node in nodes for mark in marks_of(node))


def _heading(card: NodeCard) -> str:
    """Draw the icon, name and namespace at the top of a card."""
    first = card.nodes[0]
    icon = _ICONS["dataset" if card.table else first.kind]
    room = card.width - _TEXT_INSET - _TEXT_END
    name = fit(first.name, room / NAME_CELL)
    baseline, subtitle = 27, ""
    if first.namespace.strip():
        namespace = xml(fit(first.namespace, room / SMALL_CELL))
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
    cells = (card.width - _TEXT_INSET - _TEXT_END) / NAME_CELL
    for node, (_, middle) in zip(card.nodes, card.ports(), strict=True):
        row = f'<rect class="dr-row" x="4" y="{number(middle - _ROW_HEIGHT / 2 + 1)}"'
        row += f' width="{number(card.width - 8)}" height="{number(_ROW_HEIGHT - 2)}" rx="5"/>'
        yield (
            f'<g class="dr-field{_marked([node])}{" dr-root" * (node.id == root_id)}">'
            f"<title>{xml(node.id)}</title>"
            f'{row}<path class="dr-icon" transform="translate(15 {number(middle - 6)}) scale(.75)"'
            f' d="{_ICONS["column"]}"/><text class="dr-name" x="{_TEXT_INSET:g}"'
            f' y="{number(middle + 4)}">{xml(fit(field_of(node), cells))}</text></g>'
        )


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
    return (
        f"<g><title>{title}</title>"
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
    """Return where a curve turns: half way, or out to the right when it comes back."""
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
    # Lines meet at a node with many edges, so place the label where this line is apart.
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
        # By area: comparing each label with all others would be quadratic.
        self._taken: defaultdict[tuple[int, int], list[tuple[float, float, float]]]
        self._taken = defaultdict(list)

    def add(self, label: str, way: list[Point], lean: int) -> None:
        """Write a label. `lean`: how many more lines its source has than its target."""
        text = fit(label.lower().replace("_", " "), _LABEL_CELLS)
        width = label_width(text)
        points = _label_points(way, lean, width)
        x, y = min(points, key=lambda point: self._overlap(point, width))
        self._taken[self._patch((x, y))].append((x, y, width))
        place = f'x="{number(x)}" y="{number(y + 3)}"'
        self.drawn.append(f'<text class="dr-small dr-label" {place}>{xml(text)}</text>')

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
