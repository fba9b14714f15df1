"""The edges of an SVG: curves along their ways, and words beside them."""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

from downriver.graph.draw.svg_text import count_cells, fit, number, xml, xml_lines

if TYPE_CHECKING:
    from downriver.graph.draw.sketch import Line

Point: TypeAlias = tuple[float, float]

LOOP_REACH = 40.0
_LABEL_CELLS = 28
_LABEL_CELL, _LABEL_HEIGHT = 5.1, 12.0
_LABEL_PLACES = (0.3, 0.4, 0.5, 0.6, 0.7)


def render_tip(prefix: str, suffix: str) -> str:
    """Define the arrowhead that lines of one look end in."""
    return (
        f'<marker id="{prefix}-tip{suffix}" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8"'
        f' markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path class="dr-tip{suffix}" d="M0 .6L8 4L0 7.4L1.8 4z"/></marker>'
    )


def render_line(line: Line, way: list[Point], prefix: str) -> str:
    """Draw a line along its way; its tooltip tells the evidence."""
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
    # Lines gather at a busy node: write where this one is still apart from the others.
    start, end = way[-2:] if lean > 0 else way[:2]
    if start[0] == end[0]:
        x, y = _point(start, end, 0.5)
        return [(x + width / 2 + 2, y)]
    best = 0.5 + 0.2 * ((lean > 0) - (lean < 0))
    places = sorted(_LABEL_PLACES, key=lambda place: abs(place - best))
    return [_point(start, end, place) for place in places]


class Labels:
    """Words beside the lines, each where it hides no other if there is such a place."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        # By patch of paper: comparing each label with all others would be quadratic.
        self._taken: defaultdict[tuple[int, int], list[tuple[float, float, float]]]
        self._taken = defaultdict(list)

    def add(self, label: str, way: list[Point], lean: int) -> None:
        """Write a label. `lean` tells how much busier the line's source is than its target."""
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
        """Measure how much a label here would hide of the others."""
        (x, y), (across, down) = point, self._patch(point)
        patches = product(range(across - 1, across + 2), range(down - 1, down + 2))
        near = (label for patch in patches for label in self._taken.get(patch, ()))
        return sum(
            max(0.0, (width + other_width) / 2 + 4 - abs(x - other_x))
            * max(0.0, _LABEL_HEIGHT - abs(y - other_y))
            for other_x, other_y, other_width in near
        )
