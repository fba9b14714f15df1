"""The screens of the demo: flows, origins of a column, effects of a rename, and the verdict."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from rich.cells import cell_len
from rich.markup import escape, render

from downriver.cli.output import out
from downriver.impact.report import name_verdict, short_names
from downriver.model.answers import is_complete
from downriver.model.verdicts import Decision

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from downriver.model.answers import Trace, TraceNode
    from downriver.model.verdicts import Verdict

_ARROW_BACK = "[dim]←[/]"
_MODELS = "model"  # the namespace of trained models


class RelativeNames:
    """Names of datasets relative to the folder that contains all of them."""

    def __init__(self, folder: Path) -> None:
        self._prefix = f"{folder.resolve()}/"

    def full(self, short: str) -> str:
        """Return the full name of a dataset given as `raw/orders` or `database:TABLE`."""
        database, colon, table = short.partition(":")
        where = f"{self._prefix}{database}"
        return f"dataset:derby:{where}:{table}" if colon else where

    def shortened(self, trace: Trace) -> Trace:
        """Return a trace with short names of datasets."""
        nodes = [
            msgspec.structs.replace(
                node,
                name=self.dataset(node),
                namespace=node.namespace.partition(self._prefix)[0].rstrip(":"),
            )
            for node in trace.nodes
        ]
        return msgspec.structs.replace(trace, root=nodes[0], nodes=nodes)

    def dataset(self, node: TraceNode) -> str:
        """Return the short name of a dataset, or of the dataset of a column."""
        _, prefix, inside = node.namespace.partition(self._prefix)
        name = node.name.removeprefix(self._prefix)
        return f"{inside}.{name}" if prefix else name

    def datasets(self, nodes: Sequence[TraceNode]) -> str:
        """Return the short names of several datasets. Datasets of one folder name it once."""
        by_folder: defaultdict[str, list[str]] = defaultdict(list)
        for name in map(self.dataset, nodes):
            folder, slash, last = name.rpartition("/")
            by_folder[folder + slash].append(last)
        return ", ".join(folder + ", ".join(names) for folder, names in by_folder.items())


def join_traces(traces: Sequence[Trace]) -> Trace:
    """Return the union of several traces."""
    nodes = {node.id: node for trace in traces for node in trace.nodes}
    edges = {(e.source, e.target, e.kind): e for trace in traces for e in trace.edges}
    spots = [spot for trace in traces for spot in trace.blind_spots]
    return msgspec.structs.replace(
        traces[0],
        nodes=list(nodes.values()),
        edges=list(edges.values()),
        complete=is_complete(spots),
        blind_spots=spots,
        omitted_count=sum(trace.omitted_count for trace in traces),
    )


# Jobs with their inputs and outputs


class _Flow(NamedTuple):
    job: TraceNode
    reads: list[TraceNode]
    writes: list[TraceNode]


def show_flows(trace: Trace, names: RelativeNames) -> None:
    """Print a line for each job that writes a dataset, in the order of the data flow."""
    flows = _in_order(_flows(trace))
    rows = [
        (
            f"[bold cyan]{escape(names.datasets(flow.writes))}[/]",
            f"[yellow]{escape(flow.job.name)}[/]",
            f"[cyan]{escape(names.datasets(flow.reads))}[/]",
        )
        for flow in flows
    ]
    _print_aligned(rows, f" {_ARROW_BACK} ")
    datasets = {node.id for flow in flows for node in (*flow.reads, *flow.writes)}
    _print_completeness(trace, f"{len(datasets)} datasets, {len(flows)} jobs")


def _flows(trace: Trace) -> list[_Flow]:
    nodes = {node.id: node for node in trace.nodes}
    jobs = {node.id: _Flow(node, [], []) for node in trace.nodes if node.kind == "job"}
    for edge in sorted(trace.edges, key=lambda edge: (edge.source, edge.target)):
        if edge.target in jobs:
            jobs[edge.target].reads.append(nodes[edge.source])
        elif edge.source in jobs:
            jobs[edge.source].writes.append(nodes[edge.target])
    return [flow for flow in jobs.values() if flow.writes]


def _in_order(flows: list[_Flow]) -> list[_Flow]:
    """Sort jobs so that each comes after the jobs whose outputs it reads, except in cycles."""
    remaining, ordered = sorted(flows, key=lambda flow: flow.job.name), list[_Flow]()
    while remaining:
        unwritten = {node.id for flow in remaining for node in flow.writes}
        ready = [f for f in remaining if not any(node.id in unwritten for node in f.reads)]
        ordered += ready or remaining
        remaining = [flow for flow in remaining if flow not in ordered]
    return ordered


# Origins of a column


class _Chain(NamedTuple):
    """A chain of columns, each derived from the next, up to a column with several sources."""

    columns: list[TraceNode]
    branches: list[_Chain]


def show_origins(trace: Trace, names: RelativeNames) -> None:
    """Print the columns that a column derives from, each chain without branches on one line."""
    steps = _Steps(trace, upstream=True)
    top = _grow(trace.root, steps)
    out.print(f" {_ARROW_BACK} ".join(_cells(top, names)))
    _print_aligned(_branch_rows(top, names, ""), f" {_ARROW_BACK} ")
    sources = [node for node in trace.nodes if not steps.beyond(node) and steps.reaches(node)]
    tables = sorted({names.dataset(node) for node in sources})
    deciding = sum(node.derivation == "INDIRECT" for node in trace.nodes)
    _print_completeness(
        trace,
        f"[bold]{len(sources)}[/] columns of [bold]{len(tables)}[/] sources carry its value; "
        f"{deciding} more columns decide which rows (joins, filters, groups)",
    )


def _grow(node: TraceNode, steps: _Steps) -> _Chain:
    chain = [node]
    while len(following := steps.beyond(chain[-1])) == 1:
        chain.append(following[0])
    return _Chain(chain, [_grow(each, steps) for each in following])


def _branch_rows(chain: _Chain, names: RelativeNames, indent: str) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for branch in _unfolded(chain):
        last = branch is chain.branches[-1]
        first, *others = _cells(branch, names)
        rows.append((f"[dim]{indent}{'└── ' if last else '├── '}[/]{first}", *others))
        rows += _branch_rows(branch, names, indent + ("    " if last else "│   "))
    return rows


def _cells(chain: _Chain, names: RelativeNames) -> list[str]:
    cells = [_shown(names.dataset(node), [node]) for node in chain.columns]
    if chain.branches and not _unfolded(chain):
        ends = [branch.columns[0] for branch in chain.branches]
        cells.append(_shown(names.dataset(ends[0]), ends))
    return cells


def _unfolded(chain: _Chain) -> list[_Chain]:
    """Return the branches that need lines of their own. Branches into one dataset share a line."""
    ends = [branch.columns[0] for branch in chain.branches if len(branch.columns) == 1]
    one = {(node.namespace, node.name) for node in ends}
    return [] if len(ends) == len(chain.branches) and len(one) == 1 else chain.branches


def _shown(dataset: str, columns: list[TraceNode]) -> str:
    fields = ", ".join(escape(node.field or "") for node in columns)
    return f"[cyan]{escape(dataset)}[/].[bold]{fields}[/]"


# Consumers of a column


def show_breakage(trace: Trace, names: RelativeNames) -> None:
    """Print every table and model that depends on a column, as a tree."""
    readers = {edge.job for edge in trace.edges if edge.source == trace.root.id and edge.job}
    jobs = ", ".join(f"[yellow]{escape(job.rpartition(':')[2])}[/]" for job in sorted(readers))
    reads = "job reads" if len(readers) == 1 else "jobs read"
    out.print(f"[red]{len(readers)}[/] {reads} it by name: {jobs}")
    touched = _by_dataset(trace, names)
    origin = names.dataset(trace.root)
    below: defaultdict[str, list[str]] = defaultdict(list)
    for dataset, above in _depends_on(trace, names).items():
        below[above].append(dataset)
    out.print(_shown(origin, [trace.root]))
    for line in _breakage_lines(origin, below, touched, ""):
        out.print(line)
    _print_completeness(trace, f"[bold red]{len(touched)}[/] tables and models break downriver")


def _breakage_lines(
    dataset: str, below: dict[str, list[str]], touched: dict[str, list[TraceNode]], indent: str
) -> Iterator[str]:
    for each in below.get(dataset, ()):
        last = each == below[dataset][-1]
        columns = touched[each]
        model = " [magenta]model[/]" if columns[0].namespace == _MODELS else ""
        branch = f"[dim]{indent}{'└── ' if last else '├── '}[/]"
        yield f"{branch}[red]✗[/] {_shown(each, columns)}{model}"
        yield from _breakage_lines(each, below, touched, indent + ("    " if last else "│   "))


def _by_dataset(trace: Trace, names: RelativeNames) -> dict[str, list[TraceNode]]:
    touched: defaultdict[str, list[TraceNode]] = defaultdict(list)
    for node in sorted(trace.nodes, key=lambda node: node.id):
        if node.id != trace.root.id:
            touched[names.dataset(node)].append(node)
    return touched


def _depends_on(trace: Trace, names: RelativeNames) -> dict[str, str]:
    """Return the predecessor of each dataset on the shortest path from the root."""
    steps = _Steps(trace, upstream=False)
    before = {names.dataset(trace.root): ""}
    waiting = [trace.root]
    while waiting:
        node = waiting.pop(0)
        following = [each for each in steps.beyond(node) if names.dataset(each) not in before]
        before.update((names.dataset(each), names.dataset(node)) for each in following)
        waiting += following
    return before


# Shared by the screens


class _Steps:
    """The steps of a trace away from its root, without steps that a longer path implies."""

    def __init__(self, trace: Trace, *, upstream: bool) -> None:
        self._nodes = {node.id: node for node in trace.nodes}
        self._next: defaultdict[str, set[str]] = defaultdict(set)
        for edge in trace.edges:
            if upstream and edge.type != "DIRECT":
                continue
            near, far = (edge.target, edge.source) if upstream else (edge.source, edge.target)
            self._next[near].add(far)
        self._beyond: dict[str, set[str]] = {}
        self._reached = {trace.root.id, *self._all_beyond(trace.root.id)}

    def reaches(self, node: TraceNode) -> bool:
        """Whether a node is the root or can be reached from it."""
        return node.id in self._reached

    def beyond(self, node: TraceNode) -> list[TraceNode]:
        """Return the next nodes, sorted by name."""
        following = self._next[node.id]
        further = {far for each in following for far in self._all_beyond(each)}
        return [self._nodes[far] for far in sorted(following - further)]

    def _all_beyond(self, node: str) -> set[str]:
        if node not in self._beyond:
            self._beyond[node] = set()  # stops the recursion in a cycle
            following = self._next[node]
            self._beyond[node] = following.union(*(self._all_beyond(each) for each in following))
        return self._beyond[node]


def _print_aligned(rows: Sequence[tuple[str, ...]], between: str) -> None:
    """Print rows of cells with markup, each column as wide as its widest cell."""
    widths: defaultdict[int, int] = defaultdict(int)
    for row in rows:
        for at, cell in enumerate(row):
            widths[at] = max(widths[at], _width(cell))
    for row in rows:
        cells = [cell + " " * (widths[at] - _width(cell)) for at, cell in enumerate(row[:-1])]
        out.print(between.join([*cells, row[-1]]))


def _width(cell: str) -> int:
    return cell_len(render(cell, emoji=False).plain)


def _print_completeness(trace: Trace, summary: str) -> None:
    if trace.complete:
        out.print(f"[green]complete[/] · {summary}")
        return
    out.print(f"[yellow]incomplete[/] · {summary}")
    for spot in trace.blind_spots:
        out.print(f"  [yellow]?[/] {escape(spot.entity)}: {escape(spot.message)}")


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict of the gate on a change."""
    verdict = name_verdict(verdict, short_names(verdict.impact))
    colour = "bold green" if verdict.decision is Decision.APPROVED else "bold red"
    impact = verdict.impact
    effects = f"{len(impact.breaking)} breaking, {len(impact.warnings)} warnings"
    out.print()
    out.print(
        f"DECISION: [{colour}]{verdict.decision.value}[/]  RISK: [{colour}]{verdict.risk.value}[/]"
        f"  AFFECTED SYSTEMS: {verdict.affected} [dim]({effects})[/]"
    )
    out.print(f"REASON: {escape(verdict.reason)}")
    out.print(f"RECOMMENDATION: {escape(verdict.recommendation)}")
