"""The boxes of an SVG: how large each is, and how it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.graph.draw.sketch import field_of, marks_of, owner_of
from downriver.graph.draw.svg_text import NAME_CELL, SMALL_CELL, count_cells, fit, number, xml
from downriver.graph.layout import Slot
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.model.answers import NodeKind, TraceNode

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


class Card:
    """A box of the drawing: a dataset, a job, or a dataset with some of its columns as rows."""

    def __init__(self, nodes: list[TraceNode]) -> None:
        self.nodes = nodes
        self.table = nodes[0].kind == "column"
        self.slot = Slot(0, 0)
        self.x = self.y = self.width = 0.0

    @property
    def key(self) -> str:
        """What the layout knows the card by."""
        # `repr` keeps names apart whatever they hold.
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
        """Return the width that shows every name in full, within what looks well."""
        first = self.nodes[0]
        names = [first.name, *(field_of(node) for node in self.nodes if self.table)]
        widths = [NAME_CELL * count_cells(name) for name in names]
        text = max(SMALL_CELL * count_cells(first.namespace), *widths)
        lowest, highest = _CARD_WIDTHS
        return min(highest, max(lowest, _TEXT_INSET + text + _TEXT_END))


def render_card(card: Card, root_id: str) -> str:
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
    """Return the classes of what nodes are marked as."""
    return "".join(f" dr-{mark}" for node in nodes for mark in marks_of(node))


def _heading(card: Card) -> str:
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


def _rows(card: Card, root_id: str) -> Iterator[str]:
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
