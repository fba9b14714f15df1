"""Resolve names that people write to entities of the graph, and suggest similar names."""

from __future__ import annotations

import asyncio
import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import (
    AmbiguousNameError,
    DownriverError,
    EntityNotFoundError,
    InvalidRequestError,
)
from downriver.graph.names.entity_ids import entity_id
from downriver.model.ids import ColumnId
from downriver.service import DEFAULT_NAMESPACE, Lineage

if TYPE_CHECKING:
    from downriver.agent.grammar import FlowDraft, PipelineDraft
    from downriver.agent.tools.tool import ToolContext
    from downriver.graph import CatalogSnapshot
    from downriver.model.flows import EntityDetails


class NamedEntity(NamedTuple):
    """An entity that is there, as answers call it; with a column where one was named."""

    entity_id: str
    column: str | None = None

    @property
    def full_id(self) -> str:
        """The id by which a column is traced, else that of the dataset or job."""
        if self.column is None:
            return self.entity_id
        word, _, rest = self.entity_id.partition(":")
        return f"column:{rest}:{self.column}" if word == "dataset" else f"{rest}.{self.column}"

    def __str__(self) -> str:
        return f"{self.entity_id}.{self.column}" if self.column else self.entity_id


async def resolve_entity(name: str, desk: ToolContext) -> NamedEntity:
    """Return what a name means; a column of a known dataset too."""
    try:
        return NamedEntity((await desk.tracker.get_entity(name)).entity_id)
    except (EntityNotFoundError, InvalidRequestError) as error:
        dataset, dot, column = name.rpartition(".")
        if not dot or not dataset:
            raise
        try:
            owner = await desk.tracker.get_entity(dataset)
        except DownriverError:
            raise error from None
        return NamedEntity(owner.entity_id, _known_column(owner, column))


def _known_column(owner: EntityDetails, column: str) -> str:
    """Return a column as its dataset writes it; where no schema was told, as it was asked for."""
    known = {found.name.casefold(): found.name for found in owner.columns}
    if not known or column.casefold() in known:
        return known.get(column.casefold(), column)
    near = difflib.get_close_matches(column.casefold(), known, 3, 0.5)
    raise EntityNotFoundError(
        f"{owner.name}.{column}", [f"{owner.name}.{known[name]}" for name in near]
    )


_MAX_NEAR_LOOKUPS = 100
_NEAR_FACTOR = 0.9  # a name that is almost a known one is less sure


class _Match(NamedTuple):
    id: str
    near: list[str]
    problem: str = ""


async def match_flows(pipelines: list[PipelineDraft], desk: ToolContext) -> list[str]:
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


async def _match_all(ends: list[str], desk: ToolContext) -> dict[str, _Match]:
    backend = desk.tracker.sync.backend
    if isinstance(backend, Lineage):
        return await asyncio.to_thread(_match_locally, ends, backend)
    return {end: await _match_remotely(end, desk) for end in ends}


def _match_locally(ends: list[str], lineage: Lineage) -> dict[str, _Match]:
    """Look names up in one view of the store; the near ones of a new name are dear."""
    matches: dict[str, _Match] = {}
    looked = 0
    with lineage.reading() as view:
        for end in ends:
            found = [entity.id for entity in lineage.find(end, view)]
            if len(found) == 1 and not isinstance(found[0], ColumnId):
                matches[end] = _Match(entity_id(found[0], DEFAULT_NAMESPACE), [])
            elif found or looked < _MAX_NEAR_LOOKUPS:
                matches[end] = _unresolved_match(end, lineage, view)
                looked += 1
            else:
                matches[end] = _Match(end, [])
    return matches


def _unresolved_match(end: str, lineage: Lineage, view: CatalogSnapshot) -> _Match:
    """Return what is wrong with a name that means nothing, a column, or several things."""
    try:
        lineage.resolve(end, view)
    except EntityNotFoundError as unknown:
        return _Match(end, [near for near in unknown.near if is_near(end, near)])
    except (AmbiguousNameError, InvalidRequestError) as error:
        return _Match(end, [], error.message)
    return _Match(end, [], f"{end} is a column; flows join datasets and jobs")


async def _match_remotely(end: str, desk: ToolContext) -> _Match:
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
