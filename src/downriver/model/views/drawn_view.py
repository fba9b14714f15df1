"""What a screen shows of a graph, to be drawn as it is: groups, rows of columns, a locked path."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot
from downriver.model.views.graph_view import Change


class DrawnColumn(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A row of a dataset. `reaching` are the tags that propagate to the column."""

    name: str
    marks: list[str] = []
    reaching: list[str] = []
    change: Change | None = None
    locked: bool = False


class DrawnNode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A dataset, a job, or a group of `members` nodes; `faded` when it is not on a locked path.

    `columns` are the rows that are shown, `column_rest` counts those below them that are not.
    `place` is the layer of the node from the left, and the height of its middle.
    """

    id: str
    kind: Literal["dataset", "job", "group"]
    namespace: str
    name: str
    members: int = 0
    marks: list[str] = []
    reaching: list[str] = []
    columns: list[DrawnColumn] = []
    column_rest: int = 0
    upstream_rest: int = 0
    downstream_rest: int = 0
    blind_spot_count: int = 0
    change: Change | None = None
    faded: bool = False
    place: tuple[int, float] | None = None


class DrawnEdge(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An edge between two nodes, or between two of their columns, as a screen shows it.

    `members` counts the edges that an edge between groups stands for.
    """

    source: str
    target: str
    source_column: str | None = None
    target_column: str | None = None
    kind: str = "derives"
    type: Literal["DIRECT", "INDIRECT"] | None = None
    subtype: str | None = None
    status: Literal["active", "stale"] = "active"
    confidence: str = ""
    job: str | None = None
    masking: bool = False
    members: int = 1
    change: Change | None = None
    faded: bool = False


class DrawnView(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The nodes and edges that a screen shows, and what its summary says of the rest.

    `root` is the id of the node that the view started from. `total` counts all nodes of the
    graph, `hidden` those that a filter hides.
    """

    format: Literal["svg", "mermaid"]
    title: str
    nodes: list[DrawnNode]
    edges: list[DrawnEdge]
    root: str | None = None
    total: int = 0
    hidden: int = 0
    blind_spots: list[BlindSpot] = []
    as_of: str | None = None
    diff: str | None = None
