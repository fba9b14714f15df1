"""A metric that looks wrong: what it is made of, how that went lately, and where to look first."""

from __future__ import annotations

from typing import Any

from downriver.model.answers import BlindSpot
from downriver.model.flows import ColumnDerivation, LastRun
from downriver.model.readable import Readable

_FRESHNESS = "freshness_"


class SourceFreshness(Readable, kw_only=True):
    """When the dataset of a source was last filled by a run that completed; None is unknown."""

    source: str
    dataset: str
    last_updated: str | None
    age_hours: float | None
    written_by: list[str]


class QualityResult(Readable, kw_only=True):
    """How one check of a dataset came out when it was last made."""

    dataset: str
    column: str | None
    assertion: str
    success: bool
    checked_at: str


class Suspect(Readable, kw_only=True):
    """Something to look at; `depth` counts the steps from the metric."""

    entity: str
    kind: str
    reason: str
    depth: int


class Diagnosis(Readable, kw_only=True):
    """A metric traced back to its sources.

    `freshness_<source>` is a key too, for each of the direct sources.
    """

    metric: str
    dataset: str
    column: str
    direct_sources: list[str]
    transformations: list[str]
    derivations: list[ColumnDerivation]
    freshness: list[SourceFreshness]
    last_runs: list[LastRun]
    recent_failures: list[LastRun]
    quality: list[QualityResult]
    look_first: list[Suspect]
    complete: bool
    blind_spots: list[BlindSpot]

    def keys(self) -> list[str]:
        """Return the names of the fields, and of the freshness of each direct source."""
        return [*self.__struct_fields__, *(_FRESHNESS + source for source in self.direct_sources)]

    def __getitem__(self, name: str) -> Any:
        if name in self.__struct_fields__:
            return getattr(self, name)
        source = name.removeprefix(_FRESHNESS)
        if source == name or source not in self.direct_sources:
            raise KeyError(name)
        return next((f.last_updated for f in self.freshness if f.source == source), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the value as JSON would have it, with the freshness of each direct source."""
        found = super().to_dict()
        return {**found, **{name: self[name] for name in self.keys() if name not in found}}
