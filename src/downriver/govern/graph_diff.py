"""The difference of the graph between two moments, as data and in plain words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from downriver.model.answers import BlindSpot, TraceEdge, is_complete

if TYPE_CHECKING:
    from collections.abc import Mapping

ChangeKind = Literal["added", "removed", "changed"]


class GraphState(NamedTuple):
    """The graph at a moment: ids of nodes, types of columns by dataset, and active edges.

    `names` are the nodes by each of their names, the one that is shown and the others. A name in
    `renamed` was replaced by another one.
    """

    at: str
    names: dict[str, str]
    renamed: frozenset[str]
    columns: dict[str, dict[str, str]]
    edges: list[TraceEdge]
    column_edges: list[TraceEdge]
    blind_spots: list[BlindSpot]

    @property
    def nodes(self) -> frozenset[str]:
        """The ids under which the nodes are shown."""
        return frozenset(self.names.values())


class GraphDifference(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One difference, with a sentence about it.

    `entity` is the dataset, job or column, or the target of an edge, whose `source` is given. `old`
    and `new` are types of a column, or kinds of a derivation. If a dataset changed its names,
    `source` is its old or other name.
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
    """The differences between two moments, and whether they are complete."""

    start: str
    end: str
    differences: list[GraphDifference]
    complete: bool
    blind_spots: list[BlindSpot]


def compare_states(before: GraphState, after: GraphState) -> GraphDiff:
    """Return the differences: names, datasets and jobs, then columns, edges and column edges.

    A dataset that changed its name is the same one, so both states are compared under the names of
    the later one.
    """
    names = _names(before, after)
    before = _under_later_names(before, after)
    spots = {(s.kind, s.entity, s.message): s for s in (*before.blind_spots, *after.blind_spots)}
    listed = [spots[key] for key in sorted(spots)]
    return GraphDiff(
        start=before.at,
        end=after.at,
        differences=[
            *names,
            *_nodes(before, after),
            *_columns(before, after),
            *_edges(before, after),
            *_column_edges(before, after),
        ],
        complete=is_complete(listed),
        blind_spots=listed,
    )


def _names(before: GraphState, after: GraphState) -> list[GraphDifference]:
    """Return the names that datasets got, lost or replaced. A dataset that is new has none."""
    known = {after.names[name] for name in before.names if name in after.names}
    differences = []
    for name, node in sorted(after.names.items()):
        was = before.names.get(name)
        if name == node or was == node or node not in known:
            continue
        if was == name and name in after.renamed - before.renamed:
            differences.append(_of_names(node, name, f"{name} was renamed to {node}"))
        elif was == name and before.names.get(node) in (None, name):
            differences.append(_of_names(node, name, f"{name} is now shown as {node}"))
        elif was in (None, name) or after.names.get(was) != node:
            differences.append(_of_names(node, name, f"{name} is now another name of {node}"))
    for name, node in sorted(before.names.items()):
        owner = after.names.get(node)
        if owner is not None and after.names.get(name) != owner:
            sentence = f"{name} is no longer another name of {owner}"
            differences.append(_of_names(owner, name, sentence))
    return differences


def _of_names(entity: str, other: str, sentence: str) -> GraphDifference:
    return GraphDifference(
        change="changed", kind="dataset", entity=entity, source=other, sentence=sentence
    )


def _under_later_names(before: GraphState, after: GraphState) -> GraphState:
    """Return the earlier state with each node under the name that is shown later."""
    later = {node: after.names.get(node, node) for node in before.nodes}
    if all(node == name for node, name in later.items()):
        return before
    columns: dict[str, dict[str, str]] = {}
    for dataset, types in before.columns.items():
        columns.setdefault(later[dataset], {}).update(types)
    return before._replace(
        names={name: later[node] for name, node in before.names.items()},
        columns=columns,
        edges=[_edge_under(edge, later) for edge in before.edges],
        column_edges=[_edge_under(edge, later) for edge in before.column_edges],
    )


def _edge_under(edge: TraceEdge, later: Mapping[str, str]) -> TraceEdge:
    source, target = _id_under(edge.source, later), _id_under(edge.target, later)
    return msgspec.structs.replace(edge, source=source, target=target)


def _id_under(entity: str, later: Mapping[str, str]) -> str:
    if not entity.startswith("column:"):
        return later.get(entity, entity)
    owner = entity.removeprefix("column:")
    while owner:
        owner, _, _ = owner.rpartition(":")
        name = later.get(f"dataset:{owner}")
        if name is not None:
            field = entity.removeprefix(f"column:{owner}")
            return f"column:{name.removeprefix('dataset:')}{field}"
    return entity


def _nodes(before: GraphState, after: GraphState) -> list[GraphDifference]:
    differences = []
    for node in sorted(before.nodes ^ after.nodes):
        if node in before.names and node in after.nodes:
            continue  # it was another name of a dataset
        change: ChangeKind = "added" if node in after.nodes else "removed"
        is_job = node.startswith("job:")
        sentence = f"{node} was {change}"
        kind: Literal["dataset", "job"] = "job" if is_job else "dataset"
        differences.append(
            GraphDifference(change=change, kind=kind, entity=node, sentence=sentence)
        )
    return differences


def _columns(before: GraphState, after: GraphState) -> list[GraphDifference]:
    """Return changed columns of datasets whose schema is known at both moments."""
    differences = []
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
            differences.append(
                GraphDifference(
                    change=change,
                    kind="column",
                    entity=entity,
                    sentence=sentence,
                    old=old.get(name),
                    new=new.get(name),
                )
            )
    return differences


def _edges(before: GraphState, after: GraphState) -> list[GraphDifference]:
    old = {(e.source, e.target, e.kind) for e in before.edges}
    new = {(e.source, e.target, e.kind) for e in after.edges}
    differences = []
    for source, target, kind in sorted(old ^ new):
        is_new = (source, target, kind) in new
        differences.append(
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
    return differences


def _edge_sentence(source: str, target: str, kind: str, *, is_new: bool) -> str:
    when = "now" if is_new else "no longer"
    if kind == "reads":
        return f"{target} {when} reads {source}"
    if kind == "writes":
        return f"{source} {when} writes {target}"
    return f"{target} {when} derives from {source}"


def _column_edges(before: GraphState, after: GraphState) -> list[GraphDifference]:
    old, new = _kinds(before.column_edges), _kinds(after.column_edges)
    differences = []
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
        differences.append(
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
    return differences


def _kinds(edges: list[TraceEdge]) -> dict[tuple[str, str, str], str]:
    """Return how each column derives from each other one, by job: `IDENTITY`, `JOIN, FILTER`."""
    kinds: dict[tuple[str, str, str], set[str]] = {}
    for edge in edges:
        words = edge.subtype or edge.type or edge.kind.upper()
        kind = f"{words} (masked)" if edge.masking else words
        kinds.setdefault((edge.source, edge.target, edge.job or ""), set()).add(kind)
    return {key: ", ".join(sorted(kinds_seen)) for key, kinds_seen in kinds.items()}
