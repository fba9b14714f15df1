"""`downriver trace`: where data goes to or comes from, as a tree."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import JsonOption, StoreOption, escape, out, print_json
from downriver.model.answers import Direction
from downriver.service import DEFAULT_LIMIT, Lineage

if TYPE_CHECKING:
    from downriver.model.answers import Trace, TraceEdge, TraceNode

_LINES_SHOWN = 200
_SPOTS_SHOWN = 8

EntityArgument = Annotated[
    str,
    typer.Argument(
        metavar="ENTITY",
        help="A dataset, job or column: orders, orders.amount, dag:daily, or a full id.",
    ),
]
DepthOption = Annotated[
    int | None, typer.Option("--depth", metavar="N", min=0, help="Cross at most N jobs.")
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Use the graph as of this time.")
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="Show at most N nodes.")
]
UpstreamOption = Annotated[bool, typer.Option("--upstream", help="Show what feeds the entity.")]
DownstreamOption = Annotated[
    bool, typer.Option("--downstream", help="Show what the entity feeds. This is the default.")
]
BothOption = Annotated[bool, typer.Option("--both", help="Show both directions.")]


def trace(
    entity: EntityArgument,
    upstream: UpstreamOption = False,
    downstream: DownstreamOption = False,
    both: BothOption = False,
    depth: DepthOption = None,
    as_of: AsOfOption = None,
    limit: LimitOption = DEFAULT_LIMIT,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Trace a dataset, job or column: what it feeds, or what feeds it, and how complete that is."""
    direction = parse_direction(upstream, downstream, both)
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.trace(entity, direction, depth=depth, as_of=as_of, limit=limit)
    if json:
        print_json(answer)
    else:
        show_trace(answer)


def parse_direction(upstream: bool, downstream: bool, both: bool) -> Direction:
    """Return the one direction three flags mean."""
    if both or (upstream and downstream):
        return Direction.BOTH
    return Direction.UPSTREAM if upstream else Direction.DOWNSTREAM


def show_trace(answer: Trace) -> None:
    """Print an answer as trees, then how complete it is."""
    sides = (("upstream", -1), ("downstream", 1))
    shown = [(s, sign) for s, sign in sides if any(n.depth * sign > 0 for n in answer.nodes)]
    for side, sign in shown or [("", 1)]:
        if len(shown) > 1:
            out.print(f"[dim]{side}[/]")
        out.print("\n".join(_TreeOf(answer, sign).lines()))
    _show_completeness(answer)


class _TreeOf:
    """A trace drawn as a tree: a node with several ways to it is drawn whole once."""

    def __init__(self, answer: Trace, sign: int) -> None:
        self._answer = answer
        self._nodes = {node.id: node for node in answer.nodes}
        self._steps: defaultdict[str, defaultdict[str, list[TraceEdge]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for edge in answer.edges:
            # A node on both sides of a cycle has one depth, but belongs into both trees.
            if self._reaches(edge, sign):
                near, far = (edge.source, edge.target) if sign > 0 else (edge.target, edge.source)
                self._steps[near][far].append(edge)
        self._drawn = {answer.root.id}
        self._lines = [_label(answer.root)]

    def _reaches(self, edge: TraceEdge, sign: int) -> bool:
        """Tell whether an edge was walked in this direction, or is part of a cycle."""
        depths = self._nodes[edge.source].depth, self._nodes[edge.target].depth
        cyclic = depths[0] * depths[1] < 0 or min(depths) == max(depths) == 0
        root = self._answer.root.id
        at_root = edge.target == root if sign < 0 else edge.source == root
        return at_root or cyclic or max(d * sign for d in depths) > 0

    def lines(self) -> list[str]:
        self._grow(self._answer.root.id, "")
        if len(self._lines) > _LINES_SHOWN:
            return [*self._lines[:_LINES_SHOWN], "[dim]… --json or --depth shows the rest[/]"]
        return self._lines

    def _grow(self, node_id: str, indent: str) -> None:
        steps = self._steps[node_id]
        ordered = sorted(steps, key=lambda far: (abs(self._nodes[far].depth), far))
        for far in ordered:
            if len(self._lines) > _LINES_SHOWN:
                return
            last = far == ordered[-1]
            label = _label(self._nodes[far]) + _edge_note(steps[far])
            seen = far in self._drawn
            above = " [dim]↑ above[/]" if seen and self._steps[far] else ""
            self._lines.append(f"[dim]{indent}{'└── ' if last else '├── '}[/]{label}{above}")
            if not seen:
                self._drawn.add(far)
                self._grow(far, indent + ("    " if last else "│   "))


def _label(node: TraceNode) -> str:
    where = f" [dim]{escape(node.namespace)}[/]"
    if node.kind == "job":
        return f"[yellow]{escape(node.name)}[/] [dim]job ·[/]{where}"
    if node.kind == "column":
        return f"[cyan]{escape(node.name)}[/].[bold cyan]{escape(node.field or '')}[/]{where}"
    also = f" [dim]= {escape(', '.join(node.aliases))}[/]" if node.aliases else ""
    return f"[bold cyan]{escape(node.name)}[/]{where}{also}"


def _edge_note(edges: list[TraceEdge]) -> str:
    """Say how one column comes from another: all the ways, those that use its value first."""
    notes = {_kind(edge): None for edge in sorted(edges, key=lambda e: e.type or "") if edge.type}
    if any(edge.masking for edge in edges):
        notes["masked"] = None
    if all(edge.status == "stale" for edge in edges):
        notes[f"[red]stale since {max(edge.last_seen for edge in edges)[:10]}[/]"] = None
    unsure = {edge.confidence for edge in edges} - {"exact", "declared"}
    notes.update(dict.fromkeys(escape(each) for each in sorted(unsure)))
    return f" [dim]·[/] {' '.join(notes)}" if notes else ""


def _kind(edge: TraceEdge) -> str:
    kind = escape(edge.subtype or edge.type or "")
    return f"[magenta]{kind}[/]" if edge.type == "DIRECT" else kind


def _show_completeness(answer: Trace) -> None:
    found = len(answer.nodes) - 1
    kinds = {"dataset": 0, "job": 0, "column": 0}
    for node in answer.nodes[1:]:
        kinds[node.kind] += 1
    counts = ", ".join(f"{n} {kind}{'s' * (n != 1)}" for kind, n in kinds.items() if n)
    summary = counts if found else "nothing found"
    if answer.complete:
        out.print(f"[green]complete[/] · {summary}")
        return
    omitted = f", {answer.omitted_count} not shown" if answer.omitted_count else ""
    out.print(f"[yellow]incomplete[/] · {summary}{omitted}")
    for spot in answer.blind_spots[:_SPOTS_SHOWN]:
        out.print(f"  [yellow]?[/] {escape(spot.entity)}: {escape(spot.message)}")
    if len(answer.blind_spots) > _SPOTS_SHOWN:
        out.print(f"  [dim]and {len(answer.blind_spots) - _SPOTS_SHOWN} more (--json)[/]")
