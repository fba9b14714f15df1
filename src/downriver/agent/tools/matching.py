"""Names in a description, matched against the graph: known ones found, near ones offered."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import AmbiguousNameError, EntityNotFoundError, InvalidRequestError
from downriver.graph.entity_names import entity_id
from downriver.model.ids import ColumnId
from downriver.service import DEFAULT_NAMESPACE, Lineage

if TYPE_CHECKING:
    from downriver.agent.grammar import FlowDraft, PipelineDraft
    from downriver.agent.tools.desk import Desk
    from downriver.store import Reader

_NEAR_LOOKED = 100
_NEAR_FACTOR = 0.9  # a name that is almost a known one is less sure


class _Match(NamedTuple):
    id: str
    near: list[str]
    problem: str = ""


async def match_flows(pipelines: list[PipelineDraft], desk: Desk) -> list[str]:
    """Give every flow the ids of known entities; take out and return those that are ambiguous.

    Names that the same description introduces are known to its other lines by that name. What a
    new name is spelled like is looked up for the first hundred.
    """
    flows = [flow for pipeline in pipelines for flow in pipeline.flows]
    ends = list(dict.fromkeys(end for flow in flows for end in (flow.source, flow.target)))
    matches = await _match_all(ends, desk)
    refused: list[str] = []
    for pipeline in pipelines:
        kept = []
        for flow in pipeline.flows:
            problem = _match_flow(flow, matches)
            if problem:
                refused.append(f"line {flow.line}: {flow.source} → {flow.target}: {problem}")
            else:
                kept.append(flow)
        pipeline.flows = kept
    return refused


def _match_flow(flow: FlowDraft, matches: dict[str, _Match]) -> str:
    source, target = matches[flow.source], matches[flow.target]
    flow.source, flow.target = source.id, target.id
    flow.near = [*source.near, *target.near]
    if flow.near:
        flow.confidence = round(flow.confidence * _NEAR_FACTOR, 2)
    return source.problem or target.problem


async def _match_all(ends: list[str], desk: Desk) -> dict[str, _Match]:
    backend = desk.tracker.sync.backend
    if isinstance(backend, Lineage):
        return await asyncio.to_thread(_match_here, ends, backend)
    return {end: await _match_there(end, desk) for end in ends}


def _match_here(ends: list[str], lineage: Lineage) -> dict[str, _Match]:
    """Look names up in one view of the store; the near ones of a new name are dear."""
    matches: dict[str, _Match] = {}
    looked = 0
    with lineage.reading() as reader:
        for end in ends:
            found = [entity.id for entity in lineage.find(end, reader)]
            if len(found) == 1 and not isinstance(found[0], ColumnId):
                matches[end] = _Match(entity_id(found[0], DEFAULT_NAMESPACE), [])
            elif found or looked < _NEAR_LOOKED:
                matches[end] = _unclear(end, lineage, reader)
                looked += 1
            else:
                matches[end] = _Match(end, [])
    return matches


def _unclear(end: str, lineage: Lineage, reader: Reader) -> _Match:
    """Return what is wrong with a name that means nothing, a column, or several things."""
    try:
        lineage.resolve(end, reader)
    except EntityNotFoundError as unknown:
        return _Match(end, [near for near in unknown.near if is_near(end, near)])
    except (AmbiguousNameError, InvalidRequestError) as error:
        return _Match(end, [], error.message)
    return _Match(end, [], f"{end} is a column; flows join datasets and jobs")


async def _match_there(end: str, desk: Desk) -> _Match:
    try:
        found = await desk.tracker.get_entity(end)
    except EntityNotFoundError as unknown:
        return _Match(end, [near for near in unknown.near if is_near(end, near)])
    except (AmbiguousNameError, InvalidRequestError) as unclear:
        return _Match(end, [], unclear.message)
    return _Match(found.entity_id, [])


def is_near(written: str, known: str) -> bool:
    """Tell whether a name is almost another: a letter or two amiss, not another number."""
    a, b = _letters(written), _letters(known)
    if a == b:
        return True
    if re.findall(r"\d+", a) != re.findall(r"\d+", b) or min(len(a), len(b)) < 5:
        return False
    return _distance_is_at_most(a, b, 1 if len(a) < 10 else 2)


def _letters(name: str) -> str:
    short = name.partition(":")[2] or name
    return re.sub(r"[^a-z0-9]", "", short.casefold()).removesuffix("s")


def _distance_is_at_most(a: str, b: str, most: int) -> bool:
    if abs(len(a) - len(b)) > most:
        return False
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        following = [i]
        for j, other in enumerate(b, 1):
            change = row[j - 1] + (letter != other)
            following.append(min(change, row[j] + 1, following[-1] + 1))
        row = following
    return row[-1] <= most
