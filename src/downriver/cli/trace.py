"""`downriver trace` and `paths`: upstream, downstream, and the paths between two entities."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING, Annotated

import typer

from downriver.cli.output import (
    ENTITY,
    DisplayNames,
    FullNamesOption,
    JsonOption,
    StoreOption,
    counted,
    escape,
    out,
    print_json,
)
from downriver.model.answers import Direction
from downriver.service import DEFAULT_LIMIT, Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.model.answers import Paths, Trace, TraceEdge, TraceNode

_LINES_SHOWN = 200
_SPOTS_SHOWN = 8

EntityArgument = Annotated[str, ENTITY]
DepthOption = Annotated[
    int | None,
    typer.Option(
        "--depth", metavar="N", min=0, help="Follow paths across at most N jobs. Default: no limit."
    ),
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="Use the graph as of this time, such as 2026-01-31T12:00:00Z.",
    ),
]
LimitOption = Annotated[
    int, typer.Option("--limit", metavar="N", min=1, help="Show at most N nodes.")
]
UpstreamOption = Annotated[
    bool, typer.Option("--upstream", help="Show what is upstream of the entity.")
]
DownstreamOption = Annotated[
    bool,
    typer.Option(
        "--downstream", help="Show what is downstream of the entity. This is the default."
    ),
]
ReadersOption = Annotated[
    bool,
    typer.Option(
        "--readers", help="Also list jobs that only read, such as Spark's collect and count."
    ),
]
StatementsOption = Annotated[
    bool,
    typer.Option(
        "--statements",
        help="List the jobs of single statements, such as dag.task.query.1, separately from their "
        "task.",
    ),
]
BothOption = Annotated[bool, typer.Option("--both", help="Show both directions.")]
IndirectOption = Annotated[
    bool,
    typer.Option(
        "--indirect",
        help="In a column trace, also show columns that only decide which rows or values appear.",
    ),
]


def trace(
    entity: EntityArgument,
    upstream: UpstreamOption = False,
    downstream: DownstreamOption = False,
    both: BothOption = False,
    depth: DepthOption = None,
    as_of: AsOfOption = None,
    limit: LimitOption = DEFAULT_LIMIT,
    indirect: IndirectOption = False,
    full_names: FullNamesOption = False,
    readers: ReadersOption = False,
    statements: StatementsOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show what is downstream or upstream of a dataset, job or column.

    The last line states whether the answer is complete. In a column trace, columns that only
    filter, join, group or sort are counted and not shown.

    Examples:
      downriver trace orders
      downriver trace orders.amount --upstream
    """
    direction = parse_direction(upstream, downstream, both)
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.trace(
            entity,
            direction,
            depth=depth,
            as_of=as_of,
            limit=limit,
            readers=readers,
            statements=statements,
        )
        badges = {} if json else lineage.govern.badges(_ids(answer))
    if json:
        print_json(answer)
    else:
        _show_trace(answer, badges, full_names=full_names, indirect=indirect)


def parse_direction(upstream: bool, downstream: bool, both: bool) -> Direction:
    """Return the direction that the three flags select."""
    if both or (upstream and downstream):
        return Direction.BOTH
    return Direction.UPSTREAM if upstream else Direction.DOWNSTREAM


def _show_trace(
    answer: Trace, badges: Mapping[str, Sequence[str]], *, full_names: bool, indirect: bool
) -> None:
    """Print an answer as one tree for each direction, then its completeness."""
    texts = (spot.message for spot in answer.blind_spots)
    names = DisplayNames(_ids(answer), full=full_names, texts=texts, badges=badges)
    names.print_heading()
    sides = (("upstream", -1), ("downstream", 1))
    shown = [(s, sign) for s, sign in sides if any(n.depth * sign > 0 for n in answer.nodes)]
    for side, sign in shown or [("", 1)]:
        if len(shown) > 1:
            out.print(f"[dim]{side}[/]")
        out.print("\n".join(_TraceTree(answer, sign, names, indirect=indirect).lines()))
    _show_completeness(answer, names, indirect=indirect)


def _ids(answer: Trace) -> Iterator[str]:
    for node in answer.nodes:
        yield node.id
        yield from node.aliases
    for spot in answer.blind_spots:
        yield spot.entity


class _TraceTree:
    """A trace as a tree. A node that several paths lead to is expanded once."""

    def __init__(self, answer: Trace, sign: int, names: DisplayNames, *, indirect: bool) -> None:
        self._answer = answer
        self._sign = sign
        self._names = names
        self._nodes = {node.id: node for node in answer.nodes}
        self._steps: defaultdict[str, defaultdict[str, list[TraceEdge]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for edge in answer.edges:
            # A node on both sides of a cycle has one depth, but belongs to both trees.
            if self._is_in_direction(edge):
                near, far = (edge.source, edge.target) if sign > 0 else (edge.target, edge.source)
                self._steps[near][far].append(edge)
        self._folded = {} if indirect else self._fold_indirect()
        self._drawn = {answer.root.id}
        self._lines = [self._label(answer.root)]

    def _is_in_direction(self, edge: TraceEdge) -> bool:
        """Whether an edge was walked in this direction, or is part of a cycle."""
        depths = self._nodes[edge.source].depth, self._nodes[edge.target].depth
        cyclic = depths[0] * depths[1] < 0 or min(depths) == max(depths) == 0
        root = self._answer.root.id
        at_root = edge.target == root if self._sign < 0 else edge.source == root
        return at_root or cyclic or max(d * self._sign for d in depths) > 0

    def _fold_indirect(self) -> dict[str, int]:
        """Remove the steps with only INDIRECT edges, and count them by the node they start at."""
        folded: dict[str, int] = {}
        for near, steps in self._steps.items():
            hidden = [far for far, edges in steps.items() if _only_indirect(edges)]
            for far in hidden:
                del steps[far]
            if hidden:
                folded[near] = len(hidden)
        return folded

    def lines(self) -> list[str]:
        """Return the lines of the tree, with rich's markup."""
        self._grow(self._answer.root.id, "")
        if len(self._lines) > _LINES_SHOWN:
            return [*self._lines[:_LINES_SHOWN], "[dim]… --json or --depth shows the rest[/]"]
        return self._lines

    def _grow(self, node_id: str, indent: str) -> None:
        steps = self._steps[node_id]
        ordered = sorted(steps, key=lambda far: (abs(self._nodes[far].depth), far))
        folded = self._folded.get(node_id, 0)
        for far in ordered:
            if len(self._lines) > _LINES_SHOWN:
                return
            last = far == ordered[-1] and not folded
            label = self._label(self._nodes[far]) + _edge_note(steps[far])
            seen = far in self._drawn
            above = " [dim]↑ above[/]" if seen and self._steps[far] else ""
            self._lines.append(f"[dim]{indent}{'└── ' if last else '├── '}[/]{label}{above}")
            if not seen:
                self._drawn.add(far)
                self._grow(far, indent + ("    " if last else "│   "))
        if folded:
            self._lines.append(f"[dim]{indent}└── {_folded_note(folded, self._sign)}[/]")

    def _label(self, node: TraceNode) -> str:
        if node.kind == "job":
            count = len(node.statements)
            noun = "statement" if count == 1 else "statements"
            note = f" [dim]with {count} {noun} (--statements)[/]" if count else ""
            return f"[yellow]{self._names.label(node.id)}[/]{note}"
        aliases = ", ".join(self._names[alias] for alias in node.aliases)
        also = f" [dim]= {aliases}[/]" if aliases else ""
        return f"[bold cyan]{self._names[node.id]}[/]{self._names.badge(node.id)}{also}"


def _only_indirect(edges: list[TraceEdge]) -> bool:
    return all(edge.type == "INDIRECT" for edge in edges)


def _folded_note(count: int, sign: int) -> str:
    if sign > 0:
        return f"+ {count} whose rows it decides"
    return f"+ {count} that {'decides' if count == 1 else 'decide'} which rows"


def _edge_note(edges: list[TraceEdge]) -> str:
    """Return how one column derives from another: every kind of derivation, DIRECT ones first."""
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


def _show_completeness(answer: Trace, names: DisplayNames, *, indirect: bool) -> None:
    summary = _count_nodes(answer, indirect=indirect) or "nothing found"
    if answer.reader_count:
        summary += f" [dim]+ {counted(answer.reader_count, 'reader')}[/]"
    if answer.complete:
        out.print(f"[green]complete[/] · {summary}")
        return
    omitted = f", {answer.omitted_count} not shown" if answer.omitted_count else ""
    out.print(f"[yellow]incomplete[/] · {summary}{omitted}")
    for spot in answer.blind_spots[:_SPOTS_SHOWN]:
        out.print(f"  [yellow]?[/] {names.label(spot.entity)}: {names.replace_in(spot.message)}")
    if len(answer.blind_spots) > _SPOTS_SHOWN:
        out.print(f"  [dim]and {len(answer.blind_spots) - _SPOTS_SHOWN} more (--json)[/]")


def _count_nodes(answer: Trace, *, indirect: bool) -> str:
    kinds = {"dataset": 0, "job": 0, "column": 0}
    folded = 0
    for node in answer.nodes[1:]:
        if node.derivation == "INDIRECT" and not indirect:
            folded += 1
        else:
            kinds[node.kind] += 1
    counts = [counted(n, kind) for kind, n in kinds.items() if n]
    if folded:
        counts.append(f"{folded} indirect (--indirect shows them)")
    return ", ".join(counts)


def paths(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The entity to start from.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The entity to end at.")],
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=1, help="Show at most N paths.")
    ] = 10,
    full_names: FullNamesOption = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show the paths that data takes from one dataset, job or column to another, shortest first.

    The exit code is 1 if there is no path.
    """
    with Lineage.open(store, create=False) as lineage:
        answer = lineage.trace.paths(source, target, limit=limit)
        badges = {} if json else lineage.govern.badges(_ids_of_paths(answer))
    if json:
        print_json(answer)
    else:
        _show_paths(answer, badges, full_names=full_names)
    sys.exit(int(not answer.paths))


def _ids_of_paths(answer: Paths) -> list[str]:
    ends = (answer.source.id, answer.target.id)
    return [*ends, *(node for path in answer.paths for node in path)]


def _show_paths(answer: Paths, badges: Mapping[str, Sequence[str]], *, full_names: bool) -> None:
    ends = (answer.source.id, answer.target.id)
    texts = (spot.message for spot in answer.blind_spots)
    names = DisplayNames(_ids_of_paths(answer), full=full_names, texts=texts, badges=badges)
    names.print_heading()
    for path in answer.paths:
        out.print(" [dim]→[/] ".join(names.label(node) for node in path))
    if not answer.paths:
        out.print(f"no path from {names.label(ends[0])} to {names.label(ends[1])}")
    for spot in answer.blind_spots:
        out.print(f"[yellow]incomplete[/]: {names.replace_in(spot.message)}")
