"""The datasets and columns that personal data reaches, and policies that limit access to it."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct


class PersonalColumn(msgspec.Struct, kw_only=True, frozen=True):
    """A column that has the values of the field, or masked ones, and the path to it."""

    column: str
    field: str
    path: list[str]


class PersonalDataset(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A dataset, model or dashboard that the field reaches.

    `certainty` is `column` if column lineage proves it. It is `dataset` if a job without column
    lineage reads a dataset with the field: it may use the field. `purposes`, `legal_bases` and
    `retention` are the values of tags such as `purpose=billing`.
    """

    dataset: str
    name: str
    type: str
    certainty: Literal["column", "dataset"]
    columns: list[PersonalColumn] = []
    masked: list[PersonalColumn] = []
    through: list[str] = []  # the jobs by which a dataset without column lineage may get the field
    owners: list[str] = []
    purposes: list[str] = []
    legal_bases: list[str] = []
    retention: list[str] = []
    not_stated: list[str] = []  # of purpose, legal_basis and retention


class FeatureSources(msgspec.Struct, kw_only=True, frozen=True):
    """A column that a model is trained on, and the columns where its values enter."""

    feature: str
    sources: list[str]


class ModelExplanation(msgspec.Struct, kw_only=True):
    """The features of a model that the field reaches, and the raw sources of each."""

    model: str
    features: list[FeatureSources]
    omitted_count: int


class PrivacyReport(MappingStruct, kw_only=True):
    """Everything that the values of a column reach downstream.

    The report is complete if no lineage downstream of the column is unknown. A dataset with the
    certainty `dataset` is itself unknown, so a report that has one is not complete.
    """

    subject: str
    datasets: list[PersonalDataset]
    models: list[ModelExplanation]
    complete: bool
    blind_spots: list[BlindSpot]
