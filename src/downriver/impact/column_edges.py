"""Column edges of processes whose logic is not known: which input fields feed which outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from downriver.graph.column_graph import INDIRECT

if TYPE_CHECKING:
    from downriver.graph import GraphIndex
    from downriver.store import Reader


class Derives(NamedTuple):
    """One column edge of a job: an input's field feeds an output's field."""

    field: str
    output: int
    target: str
    direct: bool


class ColumnEdges:
    """Loads the column edges of a process when they are first asked for."""

    def __init__(self, graph: GraphIndex) -> None:
        self._graph = graph
        self._known: dict[tuple[int, int], list[Derives]] = {}

    def of(self, process: int, source: int, reader: Reader) -> list[Derives]:
        """Return how one input feeds a process, by its key, as was last told."""
        key = (process, source)
        if key not in self._known:
            self._known[key] = self._load(process, source, reader)
        return self._known[key]

    def _load(self, process: int, source: int, reader: Reader) -> list[Derives]:
        columns = self._graph.columns
        identities = self._graph.nodes.identities
        datasets = identities.group(source)
        ids = np.concatenate([columns.of(dataset) for dataset in datasets])
        if not len(ids):
            return []
        edges = columns.flow.leaving.of(ids.astype(np.int32))
        claims = columns.claim.view[edges]
        mine = columns.claim_job.view[claims] == max(process, 0)
        edges, claims = edges[mine], claims[mine]
        froms = columns.flow.source.view[edges].tolist()
        tos = columns.flow.target.view[edges].tolist()
        current = _current_claims(claims.tolist(), columns.dataset.view[tos].tolist(), reader)
        ranks = columns.rank.view[edges].tolist()
        names = reader.fields(columns.places({*froms, *tos}))
        found = []
        for claim, one, other, rank in zip(claims.tolist(), froms, tos, ranks, strict=True):
            dataset, target = names[other]
            output = identities.canonical(dataset)
            if claim in current and (process > 0 or output == -process):
                found.append(Derives(names[one][1], output, target, rank < INDIRECT))
        return found


def _current_claims(claims: list[int], datasets: list[int], reader: Reader) -> set[int]:
    """Of what a job has said about one dataset, only what it said last still counts."""
    spans = reader.claim_spans(set(claims))
    latest: dict[int, int] = {}
    for claim, dataset in zip(claims, datasets, strict=True):
        latest[dataset] = max(latest.get(dataset, 0), spans[claim].last.at)
    return {
        claim
        for claim, dataset in zip(claims, datasets, strict=True)
        if spans[claim].last.at == latest[dataset]
    }
