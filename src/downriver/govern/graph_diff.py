"""The difference of the graph between two moments, as data and in plain words."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from downriver.model.answers import BlindSpot, TraceEdge, is_complete

ChangeKind = Literal["added", "removed", "changed"]


class GraphState(NamedTuple):
    """The graph at a moment: ids of nodes, types of columns by dataset, and active edges."""

    at: str
    nodes: frozenset[str]
    columns: dict[str, dict[str, str]]
    edges: list[TraceEdge]
    column_edges: list[TraceEdge]
    blind_spots: list[BlindSpot]


class GraphDifference(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One difference, with a sentence about it.

    `entity` is the dataset, job or column, or the target of an edge, whose `source` is given. `old`
    and `new` are types of a column, or kinds of a derivation.
    """

    change: ChangeKind
    kind: Literal["dataset", "job", "column", "edge", "column_edge"]
    entity: str
    sentence: str
    source: str | None = None
    job: str | None = None
    old: str | None = None
    new: str | None = None


class GraphDiff(msgspec.Struct, kw_only=True, rename={"start": "from", "end": "to"}):
    """What differs between two moments, and how complete that is."""

    start: str
    end: str
    differences: list[GraphDifference]
    complete: bool
    blind_spots: list[BlindSpot]


def compare_states(before: GraphState, after: GraphState) -> GraphDiff:
    """Return the differences: datasets and jobs, then columns, edges and column edges."""
    spots = {(s.kind, s.entity, s.message): s for s in (*before.blind_spots, *after.blind_spots)}
    listed = [spots[key] for key in sorted(spots)]
    return GraphDiff(
        start=before.at,
        end=after.at,
        differences=[
            *_nodes(before, after),
            *_columns(before, after),
            *_edges(before, after),
            *_column_edges(before, after),
        ],
        complete=is_complete(listed),
        blind_spots=listed,
    )


def _nodes(before: GraphState, after: GraphState) -> list[GraphDifference]:
    found = []
    for node in sorted(before.nodes ^ after.nodes):
        change: ChangeKind = "added" if node in after.nodes else "removed"
        is_job = node.startswith("job:")
        sentence = f"{node} was {change}"
        kind: Literal["dataset", "job"] = "job" if is_job else "dataset"
        found.append(GraphDifference(change=change, kind=kind, entity=node, sentence=sentence))
    return found


def _columns(before: GraphState, after: GraphState) -> list[GraphDifference]:
    """Return changed columns of datasets whose schema is known at both moments."""
    found = []
    for dataset in sorted(before.columns.keys() & after.columns.keys()):
        old, new = before.columns[dataset], after.columns[dataset]
        for name in sorted(old.keys() | new.keys()):
            entity = f"column:{dataset.removeprefix('dataset:')}:{name}"
            if name not in old or name not in new:
                change: ChangeKind = "added" if name in new else "removed"
                sentence = f"column {name} of {dataset} was {change}"
            elif old[name] != new[name]:
                change = "changed"
                was, now = old[name] or "an unknown type", new[name] or "an unknown type"
                sentence = f"column {name} of {dataset} changed its type from {was} to {now}"
            else:
                continue
            found.append(
                GraphDifference(
                    change=change,
                    kind="column",
                    entity=entity,
                    sentence=sentence,
                    old=old.get(name),
                    new=new.get(name),
                )
            )
    return found


def _edges(before: GraphState, after: GraphState) -> list[GraphDifference]:
    old = {(e.source, e.target, e.kind) for e in before.edges}
    new = {(e.source, e.target, e.kind) for e in after.edges}
    found = []
    for source, target, kind in sorted(old ^ new):
        is_new = (source, target, kind) in new
        found.append(
            GraphDifference(
                change="added" if is_new else "removed",
                kind="edge",
                entity=target,
                source=source,
                old=None if is_new else kind,
                new=kind if is_new else None,
                sentence=_edge_sentence(source, target, kind, is_new=is_new),
            )
        )
    return found


def _edge_sentence(source: str, target: str, kind: str, *, is_new: bool) -> str:
    when = "now" if is_new else "no longer"
    if kind == "reads":
        return f"{target} {when} reads {source}"
    if kind == "writes":
        return f"{source} {when} writes {target}"
    return f"{target} {when} derives from {source}"


def _column_edges(before: GraphState, after: GraphState) -> list[GraphDifference]:
    old, new = _kinds(before.column_edges), _kinds(after.column_edges)
    found = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        source, target, job = key
        by = f" by {job}" if job else ""
        if was is None or now is None:
            change: ChangeKind = "added" if was is None else "removed"
            when = f"now derives from {source}{by} ({now})"
            sentence = f"{target} {when if was is None else f'no longer derives from {source}{by}'}"
        else:
            change = "changed"
            sentence = f"{target}, derived from {source}{by}, changed from {was} to {now}"
        found.append(
            GraphDifference(
                change=change,
                kind="column_edge",
                entity=target,
                source=source,
                job=job or None,
                old=was,
                new=now,
                sentence=sentence,
            )
        )
    return found


def _kinds(edges: list[TraceEdge]) -> dict[tuple[str, str, str], str]:
    """Return how each column derives from each other one, by job: `IDENTITY`, `JOIN, FILTER`."""
    kinds: dict[tuple[str, str, str], set[str]] = {}
    for edge in edges:
        words = edge.subtype or edge.type or edge.kind.upper()
        kind = f"{words} (masked)" if edge.masking else words
        kinds.setdefault((edge.source, edge.target, edge.job or ""), set()).add(kind)
    return {key: ", ".join(sorted(found)) for key, found in kinds.items()}
