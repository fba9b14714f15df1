"""What differs from what was: columns, edges, figures and rhythms, judged by their own history.

Every rule is a function of the catalog and a moment alone. The catalog is the same whatever order
events came in, and so are the findings.
"""

from downriver.govern.drift.inspector import Inspector
from downriver.govern.drift.limits import DriftLimits, LatenessLimits, SeriesLimits

__all__ = ["DriftLimits", "Inspector", "LatenessLimits", "SeriesLimits"]
