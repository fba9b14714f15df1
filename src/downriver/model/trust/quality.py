"""The quality score of a dataset, its parts, and the worst score upstream."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.answers import BlindSpot, MappingStruct

ScorePart = Literal["checks", "runs", "stability"]
WEIGHTS: dict[ScorePart, float] = {"checks": 0.6, "runs": 0.2, "stability": 0.2}
FORMULA = (
    "100 × (0.6 × passed checks + 0.2 × completed runs + 0.2 × stability); "
    "a part that is unknown is left out, and the weights of the others are scaled to 1"
)


class ScoredPart(msgspec.Struct, kw_only=True, frozen=True):
    """A part of a score from 0 to 1, None if it is unknown, and what it counts."""

    part: ScorePart
    value: float | None
    weight: float
    detail: str


class DatasetScore(msgspec.Struct, kw_only=True, frozen=True):
    """A dataset with its own score. `distance` counts the jobs between."""

    dataset: str
    score: float | None
    distance: int


class QualityScore(MappingStruct, kw_only=True):
    """The score of a dataset from 0 to 100.

    `own` is of the dataset itself, None if nothing is known of it. `score` is the lowest of `own`
    and the scores upstream; `worst_upstream` has the lowest of these.
    """

    dataset: str
    at: str
    score: float | None
    own: float | None
    parts: list[ScoredPart]
    formula: str
    worst_upstream: DatasetScore | None
    looked_at: int
    complete: bool
    blind_spots: list[BlindSpot]

    def reaches(self, lowest: float) -> bool:
        """Return whether the score is known and at least `lowest`.

        Raise ValueError if `lowest` is no score: a share such as 0.9 would accept every dataset.
        """
        if not 0 <= lowest <= 100 or 0 < lowest <= 1:
            raise ValueError(f"{lowest:g} is not a score from 0 to 100: write 90, not 0.9")
        return self.score is not None and self.score >= lowest
