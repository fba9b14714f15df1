"""Facets of a job and its runs: type, SQL, location of the code, order, error, engine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from downriver import __version__
from downriver.errors import InvalidEventError
from downriver.openlineage.facets.base import (
    Identifier,
    identifier,
    job_id,
    parse_facet,
    render_facet,
)
from downriver.openlineage.wire import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from downriver.model.ids import JobId, RunId

JOB_TYPE = "jobType"
SQL = "sql"
SOURCE_CODE_LOCATION = "sourceCodeLocation"
PARENT = "parent"
JOB_DEPENDENCIES = "jobDependencies"
SPARK = "SPARK"  # integration of Spark jobs
READ_JOB_TYPE = "READ"  # jobType of a job that only reads, such as Spark's `collect`
_CHECK_JOB_TYPES = frozenset({"TEST", "CHECK", "DATA_QUALITY"})
SEED_JOB_TYPE = "SEED"  # jobType of a job that writes data which is part of its code
_LONGEST_SQL = 200_000


class JobTypeFacet(msgspec.Struct):
    """The system that runs a job, and the type of the job in that system."""

    integration: str = ""
    jobType: str = ""  # noqa: N815
    processingType: str = ""  # noqa: N815


# Suffixes of job names for Spark actions that return rows to the driver. Python's listener appends
# the called function, and OpenLineage's Spark jar the first node of the physical plan. Plans that
# may write (`…_command`, `deserialize_to_object`, `map_partitions`) are not among them.
READ_CALLS = (
    r"\.(?:collect|collectAsArrowToPython|collectAsList|collectToPython|count|first|head|isEmpty|"
    r"reduce|show|showString|summary|tail|tailToPython|take|takeAsList|toArrow|toLocalIterator|"
    r"toPandas|toPythonIterator)$"
)
READ_PLANS = (
    r"\.(?:adaptive_spark_plan|collect_limit|collect_tail|hash_aggregate|object_hash_aggregate|"
    r"sort_aggregate|take_ordered_and_project|whole_?stage_?codegen(?:_\d+)?)$"
)


def only_reads(job_type: JobTypeFacet, name: str) -> bool:
    """Return whether a job without outputs only reads, by its type or name."""
    if job_type.jobType == READ_JOB_TYPE or re.search(READ_PLANS, name):
        return True
    return job_type.integration.upper() == SPARK and re.search(READ_CALLS, name) is not None


def only_checks(job_type: JobTypeFacet) -> bool:
    """Return whether a job only tests data, by its type."""
    return job_type.jobType.upper() in _CHECK_JOB_TYPES


def loads_own_file(job_type: JobTypeFacet) -> bool:
    """Return whether a job loads a file of its own project, by its type."""
    return job_type.jobType.upper() == SEED_JOB_TYPE


class SqlFacet(msgspec.Struct):
    """The SQL of a job."""

    query: str = ""
    dialect: str = ""


def parse_job_type(body: bytes | None) -> JobTypeFacet:
    """Return the system that runs a job, and the type of the job in that system."""
    return parse_facet(body or b"{}", JobTypeFacet)


def parse_sql(body: bytes | None) -> SqlFacet:
    """Return the SQL of a job."""
    return parse_facet(body or b"{}", SqlFacet)


class _JobReference(msgspec.Struct):
    job: Identifier | None = None


class _RunReference(msgspec.Struct):
    runId: str = ""  # noqa: N815


class _Parent(msgspec.Struct):
    job: Identifier | None = None
    run: _RunReference | None = None
    root: _JobReference | None = None


class _Dependencies(msgspec.Struct):
    upstream: list[_JobReference] | None = None
    downstream: list[_JobReference] | None = None


class JobDependencies(NamedTuple):
    """The jobs that run before and after a job."""

    upstream: list[JobId]
    downstream: list[JobId]


def parse_parents(body: bytes) -> list[JobId]:
    """Return the jobs that a job runs in: the outermost first, its direct parent last."""
    facet = parse_facet(body, _Parent)
    return _jobs([facet.root or _JobReference(), _JobReference(facet.job)])


class ParentRun(NamedTuple):
    """The job that started a run, and the id of its run, "" when that is unknown."""

    job: JobId
    run: str


def parse_parent_run(body: bytes | None) -> ParentRun | None:
    """Return the direct parent of a run."""
    facet = parse_facet(body or b"{}", _Parent)
    jobs = _jobs([_JobReference(facet.job)])
    return ParentRun(jobs[0], facet.run.runId if facet.run else "") if jobs else None


def parse_dependencies(body: bytes) -> JobDependencies:
    """Return the jobs that must run before a job, and those that run after it."""
    facet = parse_facet(body, _Dependencies)
    return JobDependencies(_jobs(facet.upstream), _jobs(facet.downstream))


def _jobs(references: Sequence[_JobReference] | None) -> list[JobId]:
    return [
        job_id(reference.job.namespace, reference.job.name)
        for reference in references or ()
        if reference.job and reference.job.name
    ]


def render_job_type(integration: str, kind: str, *, streaming: bool = False) -> msgspec.Raw:
    """Return the facet with the system that runs a job and the type of the job."""
    return render_facet(
        "JobTypeJobFacet",
        "2-0-3",
        processingType="STREAMING" if streaming else "BATCH",
        integration=integration,
        jobType=kind,
    )


def render_sql(query: str, dialect: str) -> msgspec.Raw:
    """Return the facet with the SQL of a job; a very long text is cut."""
    return render_facet("SQLJobFacet", "1-1-0", query=query[:_LONGEST_SQL], dialect=dialect)


def render_source_code_location(path: str, repository: str = "", commit: str = "") -> msgspec.Raw:
    """Return the facet with the file, repository and commit of a job's code."""
    revision = {"repoUrl": repository, "version": commit} if repository else {}
    return render_facet(
        "SourceCodeLocationJobFacet",
        "1-0-1",
        type="git" if repository else "file",
        url=f"file:{path}",
        path=path,
        **revision,
    )


def render_source_code_url(url: str) -> msgspec.Raw:
    """Return the facet with the URL of a job's code."""
    return render_facet("SourceCodeLocationJobFacet", "1-0-1", type="git", url=url)


class SourceCodeLocation(NamedTuple):
    """Where the code of a job is; a field is empty when it is not known."""

    path: str = ""
    repository: str = ""
    commit: str = ""
    url: str = ""


class _SourceCodeLocation(msgspec.Struct):
    path: str = ""
    repoUrl: str = ""  # noqa: N815
    version: str = ""
    url: str = ""


def parse_source_code_location(facets: Mapping[str, bytes]) -> SourceCodeLocation:
    """Return the location of a job's code in its facets."""
    facet = parse_facet(facets.get(SOURCE_CODE_LOCATION, b"{}"), _SourceCodeLocation)
    return SourceCodeLocation(facet.path, facet.repoUrl, facet.version, facet.url)


def render_parent_job(parent: JobId) -> msgspec.Raw:
    """Return the facet that names the parent job when its run is unknown."""
    return render_facet("ParentRunFacet", "1-1-0", job=identifier(parent))


def render_parent_run(parent: RunId, root: RunId) -> msgspec.Raw:
    """Return the facet that names the parent run and the outermost run."""
    return render_facet("ParentRunFacet", "1-1-0", **_run(parent), root=_run(root))


def _run(run: RunId) -> dict[str, dict[str, str]]:
    return {"run": {"runId": run.run}, "job": identifier(run.job)}


def render_dependencies(upstream: Iterable[JobId]) -> msgspec.Raw:
    """Return the facet that names the jobs that must run before this one."""
    return render_facet(
        "JobDependenciesRunFacet", "1-0-1", upstream=[{"job": identifier(job)} for job in upstream]
    )


ERROR_MESSAGE: Final = "errorMessage"
NOMINAL_TIME: Final = "nominalTime"
PROCESSING_ENGINE = "processing_engine"


class _ErrorMessage(msgspec.Struct):
    message: str = ""


class NominalTimeFacet(msgspec.Struct, omit_defaults=True):
    """The period for which a run was scheduled, as sent."""

    nominalStartTime: str = ""  # noqa: N815
    nominalEndTime: str = ""  # noqa: N815


def parse_error_message(body: bytes | None) -> str:
    """Return the message of an errorMessage facet, "" when there is none."""
    return "" if body is None else parse_facet(body, _ErrorMessage).message


def parse_nominal_time(body: bytes | None) -> NominalTimeFacet:
    """Return the period for which a run was scheduled."""
    return parse_facet(body or b"{}", NominalTimeFacet)


def render_nominal_time(period: NominalTimeFacet) -> msgspec.Raw:
    """Return the facet with the period for which a run is scheduled."""
    return render_facet("NominalTimeRunFacet", "1-0-1", **msgspec.to_builtins(period))


def parse_nominal_start(body: bytes | None) -> int | None:
    """Return the time for which a run was scheduled, in µs since the epoch."""
    if body is None:
        return None
    try:
        return parse_time(parse_nominal_time(body).nominalStartTime, "nominalStartTime")
    except InvalidEventError:
        return None


def render_error_message(message: str, stack: str = "", *, language: str = "python") -> msgspec.Raw:
    """Return the facet of the error that ended a run."""
    content = {"stackTrace": stack} if stack else {}
    return render_facet(
        "ErrorMessageRunFacet", "1-0-1", message=message, programmingLanguage=language, **content
    )


def render_processing_engine(name: str, version: str) -> msgspec.Raw:
    """Return the facet that names the engine of a run."""
    return render_facet(
        "ProcessingEngineRunFacet",
        "1-1-1",
        name=name,
        version=version,
        openlineageAdapterVersion=__version__,
    )
