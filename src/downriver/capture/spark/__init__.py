"""PySpark: lineage of every query of a session, from its plans, without a jar."""

from downriver.capture.spark.session import TrackedSession
from downriver.capture.spark.uncaptured import UncapturedSession

__all__ = ["TrackedSession", "UncapturedSession"]
