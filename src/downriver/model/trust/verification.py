"""Results of building both sides of a change in a scratch schema, compared with predictions."""

from __future__ import annotations

from enum import Enum

import msgspec

from downriver.model.changes import Outcome


class BuildState(str, Enum):
    """The result of building a model on one side of a change."""

    BUILT = "built"
    FAILED = "failed"  # the database, or dbt, refuses it
    NOT_BUILT = "not_built"  # a model upstream failed or was not built
    ABSENT = "absent"  # this side has no such model


class UnverifiedReason(str, Enum):
    """Why a consumer was not verified."""

    TEMPLATE = "template"  # a part of its template is known only at run time
    NOT_A_QUERY = "not_a_query"  # its SQL is not one query that only reads
    PYTHON_MODEL = "python_model"
    SNAPSHOT = "snapshot"  # it has a history that a new build lacks
    SEED = "seed"  # the change edits its rows
    MIGRATION = "migration"  # it reads a table that the change alters outside of dbt
    MISSING_RELATION = "missing_relation"  # the database does not have a table that it reads
    AMBIGUOUS_RELATION = "ambiguous_relation"  # the database has several tables of that name
    UPSTREAM = "upstream"  # a model that it reads was not verified
    BASE_FAILS = "base_fails"  # the model cannot be built before the change either
    TIMEOUT = "timeout"
    NOT_A_MODEL = "not_a_model"  # no dbt model of this repository


class Contradiction(str, Enum):
    """How an observation contradicts a prediction."""

    UNPREDICTED_FAILURE = "unpredicted_failure"
    UNPREDICTED_DIFFERENCE = "unpredicted_difference"
    UNCONFIRMED_FAILURE = "unconfirmed_failure"  # predicted to fail, but builds


class SideBuild(msgspec.Struct, kw_only=True, frozen=True):
    """A model as one side of the change builds it; `error` is the reason if it was not built."""

    state: BuildState
    rows: int | None = None
    error: str = ""


class ColumnSummary(msgspec.Struct, kw_only=True, frozen=True):
    """The values of a column on one side. `low` and `high` are None if its type has no order."""

    type: str
    nulls: int | None = None
    low: str | None = None
    high: str | None = None


class ColumnComparison(msgspec.Struct, kw_only=True, frozen=True):
    """A column that was predicted to change, or that differs. A side without it is None.

    `differing` counts the rows with another value, None if values were not compared. `unstable`: it
    also differs between two builds of the base.
    """

    name: str
    predicted: bool
    base: ColumnSummary | None = None
    head: ColumnSummary | None = None
    differing: int | None = None
    unstable: bool = False


class RowComparison(msgspec.Struct, kw_only=True, frozen=True):
    """The rows that differ: by `key`, or without a key as multisets.

    Without a key, a changed row is one that is removed and one that is added.
    """

    key: list[str] = []
    added: int = 0
    removed: int = 0
    changed: int = 0

    @property
    def differing(self) -> int:
        """The number of rows that differ."""
        return self.added + self.removed + self.changed


class DatasetPrediction(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The predicted differences of a dataset: `columns`, with the kinds of their difference.

    `rows`: it may have other rows. `unknown`: it may differ in any column.
    """

    dataset: str
    columns: dict[str, list[str]] = {}
    rows: bool = False
    unknown: bool = False
    gone: bool = False


class ModelVerification(msgspec.Struct, kw_only=True):
    """The verification of one model: the prediction, and the builds of both sides of the change.

    `rows` is None if the values were not compared; `not_compared` then has the reason.
    `unverified` and `detail` state why a model was not verified.
    """

    model: str
    path: str
    predicted: Outcome
    base: SideBuild
    head: SideBuild
    prediction: DatasetPrediction | None = None
    columns: list[ColumnComparison] = []
    rows: RowComparison | None = None
    not_compared: str = ""
    unverified: UnverifiedReason | None = None
    detail: str = ""
    contradictions: list[Contradiction] = []

    def contradicts(self, *kinds: Contradiction) -> bool:
        """Return whether an observation contradicts the prediction in one of these ways."""
        return not set(kinds).isdisjoint(self.contradictions)


class UnverifiedConsumer(msgspec.Struct, kw_only=True, frozen=True):
    """An affected consumer that is not a model, so it was not built."""

    consumer: str
    name: str
    asset_type: str
    reason: UnverifiedReason


class DatabaseVerification(msgspec.Struct, kw_only=True):
    """The models that were built on both sides, and the affected consumers that were not.

    `upstream` are models that the database does not have: they were built from the base.
    """

    database: str
    models: list[ModelVerification] = []
    consumers: list[UnverifiedConsumer] = []
    upstream: list[str] = []

    def contradicting(self, *kinds: Contradiction) -> list[ModelVerification]:
        """Return the models whose observation contradicts the prediction."""
        return [model for model in self.models if model.contradicts(*kinds)]
