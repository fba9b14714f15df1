"""The models to rebuild after a change, as selectors of dbt, SQLMesh and Dataform."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.impact.simulate.process import Job
from downriver.model.verdicts import RebuildPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.impact.simulate.process import Process


def plan_rebuild(changed: Iterable[Process]) -> RebuildPlan:
    """Return the models to build, those to build in full, and the tests to run.

    `changed` are the processes whose results change, in the order of the data flow.
    """
    jobs = [process for process in changed if isinstance(process, Job)]
    models = [job for job in jobs if job.type in ("dbt_model", "model")]
    incremental = [job for job in models if job.build.materialized == "incremental"]
    return RebuildPlan(
        models=list(dict.fromkeys(map(_model_name, models))),
        backfill=list(dict.fromkeys(map(_model_name, incremental))),
        tests=list(dict.fromkeys(job.id.name for job in jobs if job.type == "test")),
    )


def _model_name(job: Job) -> str:
    """Return the name of a model in selectors: in dbt the name of its file, else the whole name."""
    if job.type != "dbt_model":
        return job.id.name
    return PurePosixPath(job.path).stem if job.path else job.id.name.rpartition(".")[2]
