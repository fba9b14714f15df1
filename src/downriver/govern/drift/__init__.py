"""What differs from what was: columns, edges, figures and rhythms, judged by their own history.

Every rule is a function of the catalog and a moment alone. The catalog is the same whatever order
events came in, and so are the findings.
"""

from downriver.govern.drift.inspecting import Inspector
from downriver.govern.drift.limits import LatenessLimits, Limits, SeriesLimits

__all__ = ["Inspector", "LatenessLimits", "Limits", "SeriesLimits"]
