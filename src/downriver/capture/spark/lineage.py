"""From a harvested action to its lineage: which columns of what came out come from where."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.spark.operators import Flow
from downriver.capture.spark.plan import parse_tree
from downriver.capture.spark.relations import Relation
from downriver.capture.spark.sources import Sources
from downriver.capture.spark.text import render_expression
from downriver.capture.sql.deps import Deps
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from downriver.capture.spark.harvest import Harvest, Place
    from downriver.capture.spark.sources import Carried

# What differs between two runs of the same code.
_OF_ONE_RUN = re.compile(
    r'"id":\d+,"jvmId":"[^"]*"|"(?:createTime|dataframeId|seed|resultId)":-?\d+'
)


class OutputColumn(msgspec.Struct):
    """A column of what was written or returned: its name, its origins, and how it was made."""

    name: str
    deps: Deps
    expression: str = ""


class Spot(msgspec.Struct, frozen=True):
    """Something in a plan that could not be seen through."""

    kind: str
    message: str


class PlanLineage(msgspec.Struct):
    """What an action read, and how what came out depends on it."""

    inputs: list[Place]
    columns: list[OutputColumn] = []
    rows: Deps = {}
    spots: list[Spot] = []
    plan_hash: str = ""
    schemas: dict[DatasetId, list[tuple[str, Any]]] = {}  # of inputs: names and Spark's types

    def tables(self) -> set[tuple[str, ...]]:
        """Return every table that anything in it depends on."""
        parts = [self.rows, *(column.deps for column in self.columns)]
        return {key[0] for deps in parts for key in deps}


def read_lineage(harvest: Harvest, carried: Carried) -> PlanLineage:
    """Return the lineage of an action; where its plan is too large, only what it reads."""
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
    spots += [Spot(spot.kind, spot.message) for spot in sources.spots]
    spots += [
        Spot("opaque_function", f"{name} is code: what comes out may use all that goes in")
        for name in (*sources.opaque, *flow.opaque)
    ]
    return PlanLineage(
        inputs=list({**inputs, **sources.places}),
        columns=_columns(relation, harvest),
        rows=relation.rows,
        spots=spots,
        schemas={
            dataset: [(each.name, each.fields.get("dataType")) for each in columns]
            for dataset, columns in sources.schemas.items()
        },
        plan_hash=hashlib.sha256(_OF_ONE_RUN.sub("", harvest.plan).encode()).hexdigest(),
    )


def read_relation(harvest: Harvest, carried: Carried) -> Relation:
    """Return what comes out of an action's plan; nothing where the plan is too large."""
    if not harvest.plan:
        return Relation([])
    flow = Flow(Sources(harvest.leaves, carried).relation, harvest.asides)
    return flow.relation(parse_tree(msgspec.json.decode(harvest.plan)))


def _columns(relation: Relation, harvest: Harvest) -> list[OutputColumn]:
    names = harvest.sink.columns if harvest.sink is not None else None
    if names is None or len(names) != len(relation.columns):
        names = [column.name for column in relation.columns]
    return [
        OutputColumn(
            name,
            column.deps,
            "" if column.made_by is None else render_expression(column.made_by),
        )
        for name, column in zip(names, relation.columns, strict=True)
    ]
