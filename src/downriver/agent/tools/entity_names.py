"""Resolve names that people write to entities of the graph, and suggest similar names."""

from __future__ import annotations

import asyncio
import difflib
import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.agent.grammar.typing_errors import distance
from downriver.errors import (
    AmbiguousNameError,
    DownriverError,
    EntityNotFoundError,
    InvalidRequestError,
)
from downriver.graph.names.entity_ids import entity_id
from downriver.model.ids import DEFAULT_NAMESPACE, ColumnId
from downriver.sdk.backend import LocalLineage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.agent.grammar import FlowDraft, PipelineDraft
    from downriver.agent.tools.tool import ToolContext
    from downriver.graph import CatalogSnapshot
    from downriver.model.flows import EntityDetails
    from downriver.service import Lineage


class NamedEntity(NamedTuple):
    """An entity of the graph by its id in answers, and a column if one was named."""

    entity_id: str
    column: str | None = None

    @property
    def full_id(self) -> str:
        """The id for a trace: of the column, else of the dataset or job."""
        if self.column is None:
            return self.entity_id
        word, _, rest = self.entity_id.partition(":")
        return f"column:{rest}:{self.column}" if word == "dataset" else f"{rest}.{self.column}"

    def __str__(self) -> str:
        return f"{self.entity_id}.{self.column}" if self.column else self.entity_id


async def resolve_entity(name: str, context: ToolContext) -> NamedEntity:
    """Return the entity of a name, which may be a column of a dataset."""
    try:
        return NamedEntity((await context.tracker.get_entity(name)).entity_id)
    except (EntityNotFoundError, InvalidRequestError) as error:
        dataset, dot, column = name.rpartition(".")
        if not dot or not dataset:
            raise
        try:
            owner = await context.tracker.get_entity(dataset)
        except DownriverError:
            raise error from None
        return NamedEntity(owner.entity_id, known_column(owner, column))


async def known_names(words: Iterable[str], context: ToolContext) -> frozenset[str]:
    """Return the words that are the name of an entity."""
    return frozenset([word for word in dict.fromkeys(words) if await _is_name(word, context)])


async def _is_name(word: str, context: ToolContext) -> bool:
    try:
        await resolve_entity(word, context)
    except EntityNotFoundError:
        return False
    except DownriverError:
        return True  # ambiguous, so it is the name of several
    return True


def known_column(owner: EntityDetails, column: str) -> str:
    """Return a column as its schema spells it, or unchanged if the schema is unknown."""
    known = {field.name.casefold(): field.name for field in owner.columns}
    if not known or column.casefold() in known:
        return known.get(column.casefold(), column)
    near = difflib.get_close_matches(column.casefold(), known, 3, 0.5)
    raise EntityNotFoundError(
        f"{owner.name}.{column}", [f"{owner.name}.{known[name]}" for name in near]
    )


_MAX_NEAR_LOOKUPS = 100
_NEAR_FACTOR = 0.9  # confidence of a name that is similar to a known one


class _Match(NamedTuple):
    id: str
    near: list[str]
    problem: str = ""


async def match_flows(pipelines: list[PipelineDraft], context: ToolContext) -> list[str]:
    """Set the ids of known entities in all flows; remove and return ambiguous flows.

    A new name means the same entity in all lines of a description. Similar names are searched
    for the first hundred new names only.
    """
    flows = [flow for pipeline in pipelines for flow in pipeline.flows]
    ends = list(dict.fromkeys(end for flow in flows for end in (flow.source, flow.target)))
    matches = await _match_all(ends, context)
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


async def _match_all(ends: list[str], context: ToolContext) -> dict[str, _Match]:
    backend = context.tracker.sync.backend
    if isinstance(backend, LocalLineage):
        return await asyncio.to_thread(_match_locally, ends, backend.lineage)
    return {end: await _match_remotely(end, context) for end in ends}


def _match_locally(ends: list[str], lineage: Lineage) -> dict[str, _Match]:
    """Look up names in one read transaction; the search for similar names is expensive."""
    matches: dict[str, _Match] = {}
    looked = 0
    with lineage.session.reading() as view:
        for end in ends:
            entity_ids = [entity.id for entity in lineage.session.find(end, view)]
            if len(entity_ids) == 1 and not isinstance(entity_ids[0], ColumnId):
                matches[end] = _resolved(
                    end, entity_id(entity_ids[0], DEFAULT_NAMESPACE), entity_ids[0].name
                )
            elif entity_ids or looked < _MAX_NEAR_LOOKUPS:
                matches[end] = _unresolved_match(end, lineage, view)
                looked += 1
            else:
                matches[end] = _Match(end, [])
    return matches


def _unresolved_match(end: str, lineage: Lineage, view: CatalogSnapshot) -> _Match:
    """Return the problem of a name that is unknown, ambiguous or a column."""
    try:
        lineage.session.resolve(end, view)
    except EntityNotFoundError as unknown:
        return _Match(end, [near for near in unknown.near if is_near(end, near)])
    except (AmbiguousNameError, InvalidRequestError) as error:
        return _Match(end, [], error.message)
    return _Match(end, [], f"{end} is a column; flows connect datasets and jobs")


async def _match_remotely(end: str, context: ToolContext) -> _Match:
    try:
        details = await context.tracker.get_entity(end)
    except EntityNotFoundError as unknown:
        return _Match(end, [near for near in unknown.near if is_near(end, near)])
    except (AmbiguousNameError, InvalidRequestError) as unclear:
        return _Match(end, [], unclear.message)
    return _resolved(end, details.entity_id, details.name)


def _resolved(end: str, found: str, name: str) -> _Match:
    """Return the known entity.

    It is only near if the name is spelled differently, as `raw/events`.
    """
    written = end if "://" in end else end.partition(":")[2] or end
    same = "://" in end or name.casefold().endswith(written.casefold())
    return _Match(found, []) if same else _Match(end, [found])


def is_near(written: str, known: str) -> bool:
    """True if two names differ by one or two letters, but not in digits."""
    a, b = _letters(written), _letters(known)
    if a == b:
        return True
    if re.findall(r"\d+", a) != re.findall(r"\d+", b) or min(len(a), len(b)) < 5:
        return False
    return distance(a, b) <= (1 if len(a) < 10 else 2)


def _letters(name: str) -> str:
    short = name.partition(":")[2] or name
    return re.sub(r"[^a-z0-9]", "", short.casefold()).removesuffix("s")
