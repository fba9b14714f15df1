"""The effects of changes on consumers, the verdict, recorded verdicts, and `analyze_impact`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.changes import Change, Outcome
from downriver.model.ids import ColumnId, DatasetId, EntityId
from downriver.model.trust.verification import DatabaseVerification, DatasetPrediction
from downriver.model.unread import Unread

Basis = Literal["simulated", "column_edges", "table_edges"]


class EffectSeverity(str, Enum):
    """How badly a change affects a consumer."""

    BREAKING = "breaking"
    WARNING = "warning"
    NONE = "none"


class Reference(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One place in the code of a consumer that names a changed column or dataset."""

    dataset: str
    column: str
    clause: str = "other"
    path: str = ""
    line: int = 0
    text: str = ""
    conditional: bool = False


class EntityMention(msgspec.Struct, frozen=True):
    """An entity in a sentence: its full id, and its name without the namespace."""

    id: str
    name: str

    @classmethod
    def of(cls, entity: EntityId) -> EntityMention:
        """Return the mention of an entity."""
        if isinstance(entity, ColumnId):
            return cls(str(entity), f"{entity.dataset.name}.{entity.field}")
        return cls(str(entity), entity.name)


SentenceParts: TypeAlias = list[str | EntityMention]


def join_parts(parts: SentenceParts, name: Callable[[EntityMention], str] | None = None) -> str:
    """Return a sentence as text. `name` selects the name of each entity."""
    return "".join(
        part if isinstance(part, str) else part.name if name is None else name(part)
        for part in parts
    )


class Effect(msgspec.Struct, kw_only=True):
    """The effect of the changes on one consumer, with its evidence.

    `hops` counts the jobs from the change to this one; `path` leads through the columns. If a
    consumer is only not rebuilt, `because_of` are the consumers that fail. `reason_parts` and
    `path_ids` contain the entities that `reason` and `path` name. `possible` is true where only the
    edges between tables are known: the effect is assumed, not shown.
    """

    consumer: str
    name: str
    asset_type: str
    severity: EffectSeverity
    outcome: Outcome
    basis: Basis
    reason: str
    reason_parts: SentenceParts = []
    affected_references: list[str] = []
    references: list[Reference] = []
    hops: int = 1
    path: list[str] = []
    path_ids: list[str] = []
    reads: list[str] = []
    writes: list[str] = []
    owners: list[str] = []
    tags: list[str] = []
    certified: bool = False
    last_run: str | None = None
    because_of: list[str] = []
    possible: bool = False

    def __post_init__(self) -> None:
        self.possible = self.outcome is Outcome.MAY_FAIL


StoredCommit = Literal["none", "base", "head", "older", "newer", "unrelated"]


class ComparedCommits(msgspec.Struct, kw_only=True, frozen=True):
    """The commits whose code was compared, and the commit that the store has of this repository.

    An empty `head` is the working tree. `stored_is` relates `stored` to the base; `behind` counts
    the commits of the base that it lacks. The store's code of this repository is not used.
    """

    base: str
    head: str = ""
    stored: str = ""
    stored_is: StoredCommit = "none"
    behind: int = 0


class ProposedChange(msgspec.Struct, kw_only=True, frozen=True):
    """A change, and the full id of the dataset that it is made to."""

    dataset: str
    change: Change


class RebuildPlan(msgspec.Struct, kw_only=True, frozen=True):
    """The dbt models to build after a change, those to build in full, and the tests to run."""

    models: list[str] = []
    backfill: list[str] = []
    tests: list[str] = []


class LeftOut(msgspec.Struct, kw_only=True, frozen=True):
    """The affected consumers that a selector leaves out; `breaking` of them break, or may."""

    selector: str
    consumers: int
    breaking: int = 0


class Impact(msgspec.Struct, kw_only=True, dict=True):
    """The effects of changes downstream, and how complete that answer is.

    `untouched` counts consumers that read the dataset but are not affected. `unread` are edited
    files, or statements in them, whose effect is unknown. `edited` are the jobs whose code was
    edited; `commits` is set when two commits were compared. `proposed` has `changes` as data.
    `predictions` are the datasets that differ then, `verification` what a database shows of them.
    `left_out` counts the affected consumers that a selector leaves out. `propagating` are the tags
    that were declared to propagate along column lineage.
    """

    changes: list[str]
    change_types: list[str]
    targets: list[str]
    target_names: list[str]
    effects: list[Effect]
    untouched: int
    complete: bool
    blind_spots: list[BlindSpot]
    target_tags: list[str] = []
    propagating: list[str] = []
    owners: list[str] = []
    unread: list[Unread] = []
    edited: list[str] = []
    proposed: list[ProposedChange] = []
    commits: ComparedCommits | None = None
    rebuild: RebuildPlan = RebuildPlan()
    predictions: list[DatasetPrediction] = []
    verification: DatabaseVerification | None = None
    left_out: LeftOut | None = None

    def name_of(self, entity: str) -> str:
        """Return the short name of a consumer or target."""
        return self._names.get(entity, entity)

    @cached_property
    def _names(self) -> dict[str, str]:
        targets = dict(zip(self.targets, self.target_names, strict=True))
        return targets | {effect.consumer: effect.name for effect in self.effects}

    @property
    def changed_datasets(self) -> list[DatasetId]:
        """The targets as ids, also of datasets that no store has."""
        named = zip(self.targets, self.target_names, strict=True)
        return [
            DatasetId(target.removeprefix("dataset:").removesuffix(f":{name}"), name)
            for target, name in named
        ]

    @property
    def breaking(self) -> list[Effect]:
        """The effects that break a consumer."""
        return [effect for effect in self.effects if effect.severity is EffectSeverity.BREAKING]

    @property
    def not_rebuilt(self) -> list[Effect]:
        """The effects on consumers that only lack new data, because another consumer fails."""
        return [effect for effect in self.effects if effect.outcome is Outcome.NOT_REBUILT]

    @property
    def own_effects(self) -> list[Effect]:
        """The effects on consumers that the change itself affects."""
        return [effect for effect in self.effects if effect.outcome is not Outcome.NOT_REBUILT]

    def not_rebuilt_after(self, failing: Effect) -> list[Effect]:
        """Return the consumers that are not rebuilt because this one fails."""
        return [effect for effect in self.not_rebuilt if failing.consumer in effect.because_of]

    @property
    def warnings(self) -> list[Effect]:
        """The effects that change a consumer without breaking it."""
        return [e for e in self.own_effects if e.severity is EffectSeverity.WARNING]


class Decision(str, Enum):
    """The decision of the gate."""

    APPROVED = "APPROVED"
    CAUTION = "CAUTION"
    BLOCKED = "BLOCKED"


class Risk(str, Enum):
    """The risk of a change."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"


class RuleFinding(msgspec.Struct, kw_only=True):
    """The result of one rule of the policy. `waived` names the author and reason of a waiver.

    `message_parts` has the entities that `message` names.
    """

    rule: str
    decision: Decision
    risk: Risk
    message: str
    message_parts: SentenceParts = []
    entities: list[str] = []
    waived: str = ""


class Verdict(msgspec.Struct, kw_only=True):
    """The decision about changes, the rule that made it, and what to do next."""

    decision: Decision
    risk: Risk
    affected: int
    reason: str
    recommendation: str
    decided_by: str
    findings: list[RuleFinding]
    ask: list[str]
    impact: Impact


class ImpactRequest(MappingStruct, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A proposed change. `changes` lists changes in full, in place of the other fields.

    An unknown field is an error: a misspelt `required` would make the change harmless.
    """

    entity_id: str
    change_type: str = "schema_change"
    column: str | None = None
    to: str | None = None
    data_type: str | None = None
    required: bool = False
    nullable: bool | None = None
    changes: list[dict[str, Any]] | None = None


class AffectedEntity(MappingStruct, kw_only=True):
    """An affected consumer. `depth` counts the steps from the change."""

    entity_id: str
    id: str
    name: str
    type: str
    depth: int
    severity: str
    outcome: str
    reason: str
    references: list[str]
    path: list[str]
    writes: list[str]
    owners: list[str]


class ImpactAnswer(MappingStruct, kw_only=True):
    """The effects of a change on all consumers, and the decision of the policy."""

    entity_id: str
    change_type: str
    changes: list[str]
    directly_affected_count: int
    total_affected_count: int
    untouched_count: int
    affected_entities: list[AffectedEntity]
    risk_level: str
    verdict: str
    reason: str
    recommendation: str
    findings: list[RuleFinding]
    ask: list[str]
    complete: bool
    blind_spots: list[BlindSpot]


class RecordedVerdict(MappingStruct, kw_only=True):
    """A summary of a gate verdict: the changes, the decision, and the affected consumers.

    `affected` counts the consumers that the change affects. `waived` names the rules that were
    waived, by whom and why. An empty `head` is the working tree.
    """

    id: str
    at: str
    decision: Decision
    risk: Risk
    reason: str
    decided_by: str
    changes: list[str]
    targets: list[str]
    affected: int
    breaking: int
    complete: bool
    by: str = ""
    waived: tuple[str, ...] = ()
    base: str = ""
    head: str = ""


class RecordedVerdicts(msgspec.Struct, kw_only=True):
    """Recorded verdicts, the latest first; `total` includes those not shown."""

    verdicts: list[RecordedVerdict]
    total: int
    complete: bool


class ChangeBlastRadius(msgspec.Struct, kw_only=True, frozen=True):
    """The consumers affected per change, over the changes that the gate decided about.

    A change that was checked several times counts once, with its latest verdict.
    """

    changes: int
    median: float | None
    largest: int
    blocked: int
    days: int
