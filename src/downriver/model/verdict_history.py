"""Verdicts that the gate has recorded."""

from __future__ import annotations

import msgspec

from downriver.model.answers import MappingStruct
from downriver.model.verdicts import Decision, Risk


class RecordedVerdict(MappingStruct, kw_only=True):
    """A verdict of the gate, in short: what was to change, the decision, and how far it reaches.

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
