"""Scores of quality, from checks, runs and drift."""

from downriver.govern.quality.score import score_dataset

__all__ = ["score_dataset"]
