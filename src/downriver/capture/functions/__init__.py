"""Python functions as jobs: a decorator, the runs it sees, and the data they move."""

from downriver.capture.functions.declared import ColumnLineage, Dataset
from downriver.capture.functions.events import create_lineage_event
from downriver.capture.functions.runs import Described, FunctionRun, Moved, current_run
from downriver.capture.functions.wrapping import Tracking, track_function

__all__ = [
    "ColumnLineage",
    "Dataset",
    "Described",
    "FunctionRun",
    "Moved",
    "Tracking",
    "create_lineage_event",
    "current_run",
    "track_function",
]
