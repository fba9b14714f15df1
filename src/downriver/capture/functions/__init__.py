"""Python functions as jobs: a decorator, the runs that it records, and their datasets."""

from downriver.capture.functions.decorator import TrackingOptions, track_function
from downriver.capture.functions.events import create_lineage_event
from downriver.capture.functions.runs import (
    ColumnLineage,
    Dataset,
    DatasetUse,
    FrameShape,
    FunctionRun,
    current_run,
)

__all__ = [
    "ColumnLineage",
    "Dataset",
    "DatasetUse",
    "FrameShape",
    "FunctionRun",
    "TrackingOptions",
    "create_lineage_event",
    "current_run",
    "track_function",
]
