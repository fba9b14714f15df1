"""MLflow: training runs with their datasets, and the model versions that they made.

`autolog.py` finds the models that this process autologged, `tracking_store.py` reads runs of a
store, `events.py` renders them, and `hook.py` reads every run when it ends.
"""

from downriver.capture.mlflow.autolog import find_logged_runs
from downriver.capture.mlflow.events import MLFLOW_RUN, parse_mlflow_run, render_run
from downriver.capture.mlflow.hook import MlflowHook
from downriver.capture.mlflow.tracking_store import TrackedRun, TrackingStore, job_of_run

__all__ = [
    "MLFLOW_RUN",
    "MlflowHook",
    "TrackedRun",
    "TrackingStore",
    "find_logged_runs",
    "job_of_run",
    "parse_mlflow_run",
    "render_run",
]
