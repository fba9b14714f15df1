"""PySpark: lineage of every query of a session, from its plans, without a jar."""

from downriver.capture.spark.connect.session import TrackedConnectSession
from downriver.capture.spark.inactive_tracker import UncapturedSession
from downriver.capture.spark.session import TrackedSession

__all__ = ["TrackedConnectSession", "TrackedSession", "UncapturedSession"]
