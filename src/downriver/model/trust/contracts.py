"""Data contracts, and the outcomes of their clauses."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct
from downriver.model.trust.schemas import CompatibilityMode, DeclaredColumn

ClauseOutcome = Literal["passed", "violated", "unknown"]


class RowBounds(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The fewest and the most rows that a dataset has."""

    min: float | None = None
    max: float | None = None


class DataContract(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The promises about a dataset.

    `closed`: it has no other columns. `freshness` is the longest time since the last completed
    write. `not_checked` are promises of the file that no rule checks; their outcome is unknown.
    """

    dataset: str
    owner: str = ""
    description: str = ""
    version: str = ""
    consumers: list[str] = []
    columns: list[DeclaredColumn] = []
    closed: bool = False
    compatibility: CompatibilityMode | None = None
    freshness: str | None = None
    rows: RowBounds | None = None
    not_checked: list[str] = []


class ClauseResult(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The outcome of one clause. `event` is the SHA-256 of the event that proves it."""

    clause: str
    outcome: ClauseOutcome
    message: str
    column: str | None = None
    expected: str | None = None
    actual: str | None = None
    event: str | None = None


class ContractResult(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of a contract: the worst of its clauses. Violated is worse than unknown."""

    dataset: str
    outcome: ClauseOutcome
    clauses: list[ClauseResult]
    owner: str = ""
    consumers: list[str] = []
    path: str | None = None  # the file that states the contract


class ContractChecks(MappingStruct, kw_only=True):
    """The outcome of all contracts, those that are violated first.

    `passed`: no clause is violated. The answer is complete if no clause is unknown. `recorded`: the
    outcomes are in the log.
    """

    at: str
    passed: bool
    contracts: list[ContractResult]
    recorded: bool
    complete: bool
    blind_spots: list[BlindSpot]


class ContractChange(msgspec.Struct, kw_only=True, frozen=True):
    """What a new version of a contract changes, one line for each difference."""

    dataset: str
    differences: list[str]


class ContractChanges(MappingStruct, kw_only=True):
    """The contracts that change, of those that were declared; without `done`, would change."""

    changes: list[ContractChange]
    declared: int
    done: bool
