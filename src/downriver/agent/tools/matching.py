"""Names in a description, matched against the graph: known ones found, near ones offered."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import AmbiguousNameError, EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from downriver.agent.grammar import FlowDraft, PipelineDraft
    from downriver.agent.tools.desk import Desk

_NEAR_FACTOR = 0.9  # a name that is almost a known one is less sure


class _Match(NamedTuple):
    id: str
    near: list[str]
    problem: str = ""


async def match_flows(pipelines: list[PipelineDraft], desk: Desk) -> list[str]:
    """Give every flow the ids of known entities; take out and return those that are ambiguous.

    Names that the same description introduces are known to its other lines by that name.
    """
    matches: dict[str, _Match] = {}
    refused: list[str] = []
    for pipeline in pipelines:
        kept = []
        for flow in pipeline.flows:
            problem = await _match_flow(flow, matches, desk)
            if problem:
                refused.append(f"line {flow.line}: {flow.source} → {flow.target}: {problem}")
            else:
                kept.append(flow)
        pipeline.flows = kept
    return refused


async def _match_flow(flow: FlowDraft, matches: dict[str, _Match], desk: Desk) -> str:
    for end in (flow.source, flow.target):
        if end not in matches:
            matches[end] = await _match(end, desk)
    source, target = matches[flow.source], matches[flow.target]
    flow.source, flow.target = source.id, target.id
    flow.near = [*source.near, *target.near]
    if flow.near:
        flow.confidence = round(flow.confidence * _NEAR_FACTOR, 2)
    return source.problem or target.problem


async def _match(end: str, desk: Desk) -> _Match:
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
