"""From a harvested action to its lineage: which columns of what came out come from where."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.spark.operators import Flow
from downriver.capture.spark.plan import parse_tree
from downriver.capture.spark.sources import Sources
from downriver.capture.spark.text import render_expression
from downriver.capture.sql.deps import Deps, Kind, Sure
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from downriver.capture.spark.harvest import Harvest, Place
    from downriver.capture.spark.relations import Relation

_CHECKPOINTS = frozenset({"checkpoint", "localCheckpoint"})
# What differs between two runs of the same code.
_OF_ONE_RUN = re.compile(
    r'"id":\d+,"jvmId":"[^"]*"|"(?:createTime|dataframeId|seed|resultId)":-?\d+'
)


class Use(msgspec.Struct, frozen=True):
    """A column of an input, as an output column or the output's rows depend on it."""

    dataset: DatasetId
    field: str
    kind: Kind
    masking: bool
    sure: Sure


class OutputColumn(msgspec.Struct):
    """A column of what was written or returned: its name, what it uses, and how it was made."""

    name: str
    uses: list[Use]
    expression: str = ""


class Spot(msgspec.Struct, frozen=True):
    """Something in a plan that could not be seen through."""

    kind: str
    message: str


class PlanLineage(msgspec.Struct):
    """What an action read, and how what came out depends on it."""

    inputs: list[Place]
    columns: list[OutputColumn] = []
    rows: list[Use] = []
    spots: list[Spot] = []
    plan_hash: str = ""


def read_lineage(
    harvest: Harvest, carried: MutableMapping[int, dict[str, Deps]]
) -> PlanLineage:
    """Return the lineage of an action; where its plan is too large, only what it reads.

    `carried` says what rows without a plan come from, and grows by those of checkpoints.
    """
    inputs = {place: None for leaf in harvest.leaves for place in leaf.places}
    spots = [
        Spot("unknown_source", f"reads from {leaf.unknown}, which Downriver does not know")
        for leaf in harvest.leaves
        if leaf.unknown
    ]
    if harvest.too_large:
        spots.append(Spot("large_plan", f"the plan is too large to read: {harvest.too_large}"))
    if not harvest.plan:
        return PlanLineage(list(inputs), spots=spots)
    sources = Sources(harvest.leaves, carried)
    flow = Flow(sources.relation, harvest.asides)
    relation = flow.relation(parse_tree(msgspec.json.decode(harvest.plan)))
    if harvest.action in _CHECKPOINTS and relation.columns:
        carried[relation.columns[0].id] = _carried(relation)
    spots += [Spot(spot.kind, spot.message) for spot in sources.spots]
    spots += [
        Spot("opaque_function", f"{name} is code: what comes out may use all that goes in")
        for name in (*sources.opaque, *flow.opaque)
    ]
    return PlanLineage(
        inputs=list({**inputs, **sources.places}),
        columns=_columns(relation, harvest),
        rows=_uses(relation.rows),
        spots=spots,
        plan_hash=hashlib.sha256(_OF_ONE_RUN.sub("", harvest.plan).encode()).hexdigest(),
    )


def _carried(relation: Relation) -> dict[str, Deps]:
    return {**{f"#{column.id}": column.deps for column in relation.columns}, "*": relation.rows}


def _columns(relation: Relation, harvest: Harvest) -> list[OutputColumn]:
    names = harvest.sink.columns if harvest.sink is not None else None
    if names is None or len(names) != len(relation.columns):
        names = [column.name for column in relation.columns]
    return [
        OutputColumn(
            name,
            _uses(column.deps),
            "" if column.made_by is None else render_expression(column.made_by),
        )
        for name, column in zip(names, relation.columns, strict=True)
    ]


def _uses(deps: Deps) -> list[Use]:
    return [
        Use(DatasetId(table[0], table[1]), column, Kind(kind), masked, Sure(sure))
        for (table, column, kind, masked), sure in deps.items()
    ]
