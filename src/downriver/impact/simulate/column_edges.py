"""Loads the column edges of one process from the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.graph.index.column_graph import INDIRECT
from downriver.impact.simulate.process import DerivationKey, JobColumnEdge, JobKey

if TYPE_CHECKING:
    from downriver.graph import GraphSnapshot
    from downriver.impact.simulate.process import ProcessKey
    from downriver.store import CatalogReader

_NO_JOB = 0  # of a claim without a job
_AMBIGUOUS = "ambiguous"  # the confidence of an edge from one of several candidates


def load_column_edges(
    process: ProcessKey, source: int, graph: GraphSnapshot, reader: CatalogReader, as_of: int
) -> list[JobColumnEdge]:
    """Return the latest column edges, as of a moment, from one input to a process's outputs."""
    columns = graph.columns
    identities = graph.nodes.identities
    ids = np.concatenate([columns.of(dataset) for dataset in identities.group(source)])
    if not len(ids):
        return []
    edges = columns.flow.leaving.of(ids.astype(np.int32))
    claims = columns.claim[edges]
    job = process.job if isinstance(process, JobKey) else _NO_JOB
    of_process = columns.claim_job[claims] == job
    edges, claims = edges[of_process], claims[of_process]
    sources = columns.flow.source[edges].tolist()
    targets = columns.flow.target[edges].tolist()
    current = _current_claims(claims.tolist(), columns.dataset[targets].tolist(), reader, as_of)
    ranks, places = columns.rank[edges].tolist(), columns.transformation[edges].tolist()
    stated = reader.evidence.transformations(current)
    names = reader.columns.by_ids(columns.places({*sources, *targets}))
    loaded = []
    for claim, start, end, rank, place in zip(
        claims.tolist(), sources, targets, ranks, places, strict=True
    ):
        dataset, target = names[end]
        output = identities.canonical(dataset)
        if isinstance(process, DerivationKey) and output != process.dataset:
            continue
        if claim in current:
            certain = stated[claim][place].confidence != _AMBIGUOUS
            loaded.append(JobColumnEdge(names[start][1], output, target, rank < INDIRECT, certain))
    return loaded


def _current_claims(
    claims: list[int], datasets: list[int], reader: CatalogReader, as_of: int
) -> set[int]:
    """Return the latest claims of a job about each dataset: only these count."""
    spans = reader.evidence.claims(set(claims))
    made = [
        (claim, dataset, min(spans[claim].last.at, as_of))
        for claim, dataset in zip(claims, datasets, strict=True)
        if spans[claim].first.at <= as_of
    ]
    latest: dict[int, int] = {}
    for _, dataset, at in made:
        latest[dataset] = max(latest.get(dataset, 0), at)
    return {claim for claim, dataset, at in made if at == latest[dataset]}
