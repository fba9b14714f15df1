"""A process fills datasets: a job with its code, or a derivation declared without a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.impact.simulate.script.job_script import JobScript
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.custom import BuildFacet, CodeFacet
    from downriver.openlineage.facets.job import JobTypeFacet


class JobKey(msgspec.Struct, frozen=True):
    """Identifies a job by its number in the catalog."""

    job: int


class DerivationKey(msgspec.Struct, frozen=True):
    """Identifies a derivation by the number of the dataset that it fills."""

    dataset: int


ProcessKey: TypeAlias = JobKey | DerivationKey


class JobColumnEdge(NamedTuple):
    """One column edge of a process: an input's field feeds an output's field.

    An edge is not `certain` if the column may belong to another table.
    """

    field: str
    output: int
    target: str
    direct: bool
    certain: bool = True


class Job(NamedTuple):
    """A job with its inputs, its outputs and its code.

    `declared` are the column edges of edited code, by input; they replace those of the catalog.
    """

    key: JobKey
    id: NodeId
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    script: JobScript | None
    code: CodeFacet | None
    path: str
    type: str
    owners: tuple[str, ...]
    tags: frozenset[str]
    build: BuildFacet
    declared: Mapping[int, list[JobColumnEdge]] | None = None


class TableDerivation(NamedTuple):
    """A dataset that derives from others and has no known job."""

    key: DerivationKey
    id: NodeId
    inputs: tuple[int, ...]
    output: int
    type: str
    owners: tuple[str, ...]
    tags: frozenset[str]

    @property
    def outputs(self) -> tuple[int, ...]:
        """The one dataset that it fills."""
        return (self.output,)


Process: TypeAlias = Job | TableDerivation


def code_path(process: Process) -> str:
    """Return the file of a process's code, "" when it is unknown."""
    return process.path if isinstance(process, Job) else ""


_JOB_KINDS = {
    ("AIRFLOW", "DAG"): "dag", ("AIRFLOW", "TASK"): "task", ("DBT", "MODEL"): "dbt_model",
    ("DBT", "JOB"): "dbt_model", ("DBT", "SNAPSHOT"): "dbt_model", ("DBT", "SEED"): "dbt_model",
    ("SPARK", ""): "spark_job", ("SQL", ""): "sql",
}  # fmt: skip


def job_kind(facet: JobTypeFacet) -> str:
    """Return the kind of a job in effects: `dbt_model`, `spark_job`, `sql`, `dag` …"""
    integration, kind = facet.integration.upper(), facet.jobType.upper()
    known = _JOB_KINDS.get((integration, kind)) or _JOB_KINDS.get((integration, ""))
    return known or kind.lower() or integration.lower() or "job"
