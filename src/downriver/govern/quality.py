"""The quality score of a dataset: results of checks, outcomes of runs, and drift."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.drift.measures import read_checks
from downriver.graph import Entity
from downriver.model.answers import BlindSpot, Direction, is_complete
from downriver.model.facts import RunState
from downriver.model.governance import FindingKind, Severity
from downriver.model.trust.quality import (
    FORMULA,
    WEIGHTS,
    DatasetScore,
    QualityScore,
    ScoredPart,
)
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from downriver.govern.drift import Inspector
    from downriver.govern.entity_context import EntityContext
    from downriver.graph import CatalogSnapshot

_UPSTREAM = 400  # entities that are scored, the nearest first
_MEASURES = 500
_RUNS = 10
_WARNINGS = frozenset({"warn", "warning", "info"})
_COST = {Severity.INFO: 0.05, Severity.WARNING: 0.25, Severity.CRITICAL: 0.5}
# Failed checks and runs have parts of their own.
_COUNTED_ELSEWHERE = frozenset(
    {FindingKind.QUALITY_FAILED, FindingKind.RUN_FAILED, FindingKind.CODE_CHANGED}
)


class ScoreInputs(NamedTuple):
    """One view of a store at a moment, and the inspector that finds drift in it."""

    view: CatalogSnapshot
    around: EntityContext
    inspector: Inspector
    now: int


def score_dataset(dataset: Entity, inputs: ScoreInputs) -> QualityScore:
    """Return the score of a dataset, and the worst score upstream of it."""
    parts = score_parts(dataset.node, inputs)
    own = combine(parts)
    upstream = inputs.around.trace(dataset, Direction.UPSTREAM, _UPSTREAM)
    scores = []
    for node in upstream.nodes:
        number = inputs.around.number(node)
        if node.kind != "dataset" or number is None or node.id == upstream.root.id:
            continue
        own_score = combine(score_parts(number, inputs))
        scores.append(DatasetScore(dataset=node.id, score=own_score, distance=abs(node.depth)))
    known = [each for each in scores if each.score is not None]
    worst = min(known, key=lambda each: (each.score, each.distance, each.dataset), default=None)
    spots = list(upstream.blind_spots)
    unknown = [each.dataset for each in scores if each.score is None]
    unknown += [upstream.root.id] if own is None else []
    spots += [_unscored(name) for name in unknown]
    everything = [own, None if worst is None else worst.score]
    return QualityScore(
        dataset=upstream.root.id,
        at=render_time(inputs.now),
        score=None if own is None else min(each for each in everything if each is not None),
        own=own,
        parts=parts,
        formula=FORMULA,
        worst_upstream=worst,
        looked_at=len(scores),
        complete=is_complete(spots),
        blind_spots=spots,
    )


def _unscored(dataset: str) -> BlindSpot:
    return BlindSpot(
        kind="quality_unknown",
        entity=dataset,
        message="quality unknown: no event reports a check or a finished run",
    )


def combine(parts: list[ScoredPart]) -> float | None:
    """Return the weighted mean of the known parts, from 0 to 100.

    Stability alone gives no score: a dataset without reports has no findings.
    """
    known = [part for part in parts if part.value is not None]
    if all(part.part == "stability" for part in known):
        return None
    weight = sum(part.weight for part in known)
    total = sum((part.value or 0.0) * part.weight for part in known)
    return round(100 * total / weight, 1)


def score_parts(node: int, inputs: ScoreInputs) -> list[ScoredPart]:
    """Return the parts of the score of a dataset."""
    return [_checks(node, inputs), _runs(node, inputs), _stability(node, inputs)]


def _checks(node: int, inputs: ScoreInputs) -> ScoredPart:
    """The share of checks whose last result passed. A check of severity warning counts half."""
    reader = inputs.view.reader
    names = inputs.view.graph.nodes.identities.group(node)
    measures = [m for name in names for m in reader.history.measures(name, _MEASURES, inputs.now)]
    measures.sort(key=lambda measure: measure.at)
    results = [check.assertion for check in read_checks(measures)]
    weights = [0.5 if (r.severity or "").lower() in _WARNINGS else 1.0 for r in results]
    passed = [w for w, result in zip(weights, results, strict=True) if result.success]
    return ScoredPart(
        part="checks",
        value=round(sum(passed) / sum(weights), 4) if results else None,
        weight=WEIGHTS["checks"],
        detail=f"{len(passed)} of {len(results)} checks passed",
    )


def _runs(node: int, inputs: ScoreInputs) -> ScoredPart:
    """The share of completed runs, of the last ten that ended of each job that writes it."""
    history = inputs.view.reader.history
    ended = [
        run
        for job in inputs.around.writers(node)
        for run in sorted(
            (
                run
                for run in history.runs(job, 2 * _RUNS, inputs.now)
                if run.ended_at is not None and run.ended_at <= inputs.now
            ),
            key=lambda run: run.began_at,
        )[-_RUNS:]
    ]
    completed = sum(run.state is RunState.COMPLETE for run in ended)
    return ScoredPart(
        part="runs",
        value=round(completed / len(ended), 4) if ended else None,
        weight=WEIGHTS["runs"],
        detail=f"{completed} of {len(ended)} runs completed",
    )


def _stability(node: int, inputs: ScoreInputs) -> ScoredPart:
    """One, less a part for each finding of drift or lateness, by its severity."""
    nodes = [node, *inputs.around.writers(node)]
    findings = [
        finding
        for each in nodes
        for finding in inputs.inspector.inspect(each)
        if finding.kind not in _COUNTED_ELSEWHERE
    ]
    lost = sum(_COST[finding.severity] for finding in findings)
    return ScoredPart(
        part="stability",
        value=round(max(0.0, 1 - lost), 4),
        weight=WEIGHTS["stability"],
        detail=f"{len(findings)} findings of drift or lateness",
    )
