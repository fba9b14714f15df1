"""Follows a column downstream: the places of its values, masked columns, and owners."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from downriver.govern.checks.lineage_facts import LineageFacts
from downriver.govern.tags import column_edges, propagate
from downriver.graph import FOREVER, Entity, Question, trace
from downriver.graph.answers.node_facts import NodeFactsReader
from downriver.graph.answers.view import limit_blind_spots
from downriver.graph.names.resolution import find_entity
from downriver.model.answers import BlindSpot, Direction, is_complete
from downriver.model.ids import ColumnId, DatasetId
from downriver.model.trust.privacy import (
    FeatureSources,
    ModelExplanation,
    PersonalColumn,
    PersonalDataset,
    PrivacyReport,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.govern.entity_context import EntityContext
    from downriver.graph import CatalogSnapshot
    from downriver.graph.answers.node_facts import NodeFacts
    from downriver.model.answers import Trace
    from downriver.model.ids import NodeId

_COLUMNS = 100_000
_FEATURES = 200
_STATEMENTS = ("purpose", "legal_basis", "retention")
_MODEL = "model"

Paths = dict[str, tuple[str, ...]]


class FieldReach(NamedTuple):
    """The columns that a field reaches, the columns that mask it, and the blind spots."""

    root: str
    reached: Paths
    masked: Paths
    blind_spots: list[BlindSpot]


def report_privacy(view: CatalogSnapshot, subject: Entity, around: EntityContext) -> PrivacyReport:
    """Return every entity that the values of a column reach."""
    reach = _follow(view, subject, around)
    columns = _by_dataset({**reach.reached, reach.root: (reach.root,)}, view)
    masked = _by_dataset(reach.masked, view)
    facts = LineageFacts(view.graph, view.reader)
    possible = facts.possible_outputs(set(columns))
    listed = {*columns, *masked, *possible}
    display_names = view.graph.nodes.identities.display_names(listed, view.reader)
    known = NodeFactsReader(view.graph, view.reader).read(
        {node: display_names[node].id for node in listed}
    )
    datasets = [
        _dataset(
            display_names[node].id,
            known[node],
            around.owners(node),
            columns.get(node, []),
            masked.get(node, []),
            facts.names(possible.get(node, ())),
        )
        for node in listed
    ]
    datasets.sort(key=lambda each: (each.certainty, each.dataset))
    spots = [*reach.blind_spots, *(_unknown_use(each) for each in datasets if each.through)]
    reached = {*columns, *possible}
    models = [
        _explain(view, facts, node, str(display_names[node].id), around)
        for node in sorted(reached)
        if known[node].type == _MODEL
    ]
    return PrivacyReport(
        subject=reach.root,
        datasets=datasets,
        models=models,
        complete=is_complete(spots),
        blind_spots=limit_blind_spots(spots, len(spots)),
    )


def _follow(view: CatalogSnapshot, subject: Entity, around: EntityContext) -> FieldReach:
    question = Question(Direction.DOWNSTREAM, None, FOREVER, _COLUMNS, around.stale_days)
    answer = trace(view.graph, view.reader, subject, question)
    spread = propagate(column_edges(answer), [answer.root.id])
    return FieldReach(answer.root.id, spread.reached, spread.stopped, answer.blind_spots)


def _by_dataset(paths: Paths, view: CatalogSnapshot) -> dict[int, list[PersonalColumn]]:
    identities = view.graph.nodes.identities
    personal_columns: dict[int, list[PersonalColumn]] = defaultdict(list)
    for column, path in sorted(paths.items()):
        entity = find_entity(column, view.reader, identities)
        if entity is not None and isinstance(entity.id, ColumnId):
            personal = PersonalColumn(column=column, field=entity.id.field, path=list(path))
            personal_columns[identities.canonical(entity.node)].append(personal)
    return personal_columns


def _dataset(
    shown: NodeId,
    known: NodeFacts,
    owners: list[str],
    columns: list[PersonalColumn],
    masked: list[PersonalColumn],
    through: list[str],
) -> PersonalDataset:
    fields = {each.field.casefold() for each in (*columns, *masked)}
    tags = set(known.tags.whole)
    for field, of_column in known.tags.by_column.items():
        if field in fields:
            tags |= of_column
    stated = {
        key: sorted(tag.partition(":")[2] for tag in tags if tag.startswith(f"{key}:"))
        for key in _STATEMENTS
    }
    holds = bool(columns) or not masked  # columns with only masked values need no statement
    return PersonalDataset(
        dataset=str(shown),
        name=shown.name,
        type=known.type,
        certainty="column" if columns or masked else "dataset",
        columns=columns,
        masked=masked,
        through=through,
        owners=owners,
        purposes=stated["purpose"],
        legal_bases=stated["legal_basis"],
        retention=stated["retention"],
        not_stated=[key for key in _STATEMENTS if holds and not stated[key]],
    )


def _unknown_use(each: PersonalDataset) -> BlindSpot:
    jobs = ", ".join(each.through)
    return BlindSpot(
        kind="no_column_lineage",
        entity=each.dataset,
        message=f"column lineage unknown: {jobs} may use the field",
    )


def _explain(
    view: CatalogSnapshot, facts: LineageFacts, node: int, name: str, around: EntityContext
) -> ModelExplanation:
    """Return the columns that a model derives from, and its own columns as features."""
    features = _columns(facts, [node]) or _columns(facts, sorted(facts.sources[node]))
    question = Question(Direction.UPSTREAM, None, FOREVER, _COLUMNS, around.stale_days)
    explained = [
        FeatureSources(
            feature=str(feature.id),
            sources=_raw_sources(trace(view.graph, view.reader, feature, question)),
        )
        for feature in features[:_FEATURES]
    ]
    return ModelExplanation(
        model=name, features=explained, omitted_count=max(0, len(features) - _FEATURES)
    )


def _columns(facts: LineageFacts, datasets: list[int]) -> list[Entity]:
    identities = facts.graph.nodes.identities
    columns: Mapping[int, str]
    entities: list[Entity] = []
    for dataset in datasets:
        node_id = identities.display_names([dataset], facts.reader)[dataset].id
        columns = facts.columns(dataset)
        if isinstance(node_id, DatasetId):
            entities += [
                Entity(ColumnId(node_id, field), dataset, column)
                for column, field in sorted(columns.items(), key=lambda item: item[1])
            ]
    return entities


def _raw_sources(answer: Trace) -> list[str]:
    """Return the columns of a trace without upstream columns. They are the root if it is alone."""
    derived = {edge.target for edge in answer.edges if edge.type != "INDIRECT"}
    used = {edge.source for edge in answer.edges if edge.type != "INDIRECT"}
    return sorted(used - derived) or [answer.root.id]
