"""Actions that triggers start downstream of a finding."""

from __future__ import annotations

from enum import Enum
from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.governance import FindingKind, Severity


class ActionState(str, Enum):
    """The state of a triggered action."""

    PLANNED = "planned"  # a dry run: it is not recorded
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class TriggerCause(msgspec.Struct, kw_only=True, frozen=True):
    """A finding that started an action, and the path from it to the target.

    `certainty` is `column` if column lineage leads to the target, and `dataset` if only dataset
    lineage does: a job without column lineage may use the column.
    """

    finding: str
    opened_at: str
    kind: FindingKind
    entity: str
    subject: str
    severity: Severity
    message: str
    certainty: Literal["column", "dataset"]
    path: list[str]


class TriggeredAction(msgspec.Struct, kw_only=True):
    """One action of a trigger on one target, for one or more findings."""

    trigger: str
    target: str
    target_name: str
    target_type: str
    action: str  # what is run, without secrets
    causes: list[TriggerCause]
    at: str
    owners: list[str] = []
    state: ActionState = ActionState.PLANNED
    attempts: int = 0
    finished_at: str | None = None
    result: str = ""
    id: int = 0


class TriggeredActions(MappingStruct, kw_only=True):
    """Actions of triggers, and whether all lineage between findings and targets is known."""

    actions: list[TriggeredAction]
    findings: int  # that were compared with the triggers
    complete: bool
    blind_spots: list[BlindSpot]


class TriggerHistory(MappingStruct, kw_only=True):
    """Recorded actions, the latest first; `total` includes those not shown."""

    actions: list[TriggeredAction]
    total: int
    complete: bool
