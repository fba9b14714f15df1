"""Drift of columns, edges, statistics and rhythms, compared with their own history.

Every rule is a function of the catalog and a moment. The order of events does not change the
catalog, so it does not change the findings.
"""

from downriver.govern.drift.inspector import Inspector
from downriver.govern.drift.series import DriftLimits, LatenessLimits, SeriesLimits

__all__ = ["DriftLimits", "Inspector", "LatenessLimits", "SeriesLimits"]
