"""The systems that can send lineage, and the last event received from each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from downriver.capture.integrations import INTEGRATIONS, installed_version
from downriver.model.views.integrations import IntegrationList, IntegrationStatus
from downriver.openlineage.facets.base import parse_facet
from downriver.openlineage.facets.job import JOB_TYPE
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.capture.integrations import Integration
    from downriver.service.session import StoreSession


class _Origin(msgspec.Struct):
    """The integration and the producer in the jobType facet of a job."""

    integration: str = ""
    producer: str = msgspec.field(default="", name="_producer")


class _KnownJob(NamedTuple):
    name: str
    last_at: int
    origin: _Origin


class IntegrationApi:
    """Lists the integrations. Call it."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self) -> IntegrationList:
        """Return every integration with its package and the last job that was received from it."""
        jobs = self._jobs()
        known = {word for entry in INTEGRATIONS for word in entry.integrations}
        others = {job.origin.integration.upper() for job in jobs if not _matches_any(job)}
        return IntegrationList(
            integrations=[_status(entry, jobs) for entry in sorted(INTEGRATIONS)],
            others=sorted(others - known - {"", "DOWNRIVER"}),
        )

    def _jobs(self) -> list[_KnownJob]:
        with self._session.store.reader() as reader:
            facets = reader.facets.named(JOB_TYPE)
            names, spans = reader.nodes.by_ids(facets), reader.nodes.spans(facets)
        return [
            _KnownJob(str(names[node]), spans[node].last.at, parse_facet(body, _Origin))
            for node, body in facets.items()
            if node in names
        ]


def _matches(entry: Integration, job: _KnownJob) -> bool:
    """Return whether a job comes from a system, by its type or the producer of the type."""
    if job.origin.integration:
        return job.origin.integration.upper() in entry.integrations
    return any(part in job.origin.producer for part in entry.producers)


def _matches_any(job: _KnownJob) -> bool:
    return any(_matches(entry, job) for entry in INTEGRATIONS)


def _status(entry: Integration, jobs: Sequence[_KnownJob]) -> IntegrationStatus:
    received = [job for job in jobs if _matches(entry, job)]
    last = _newest(received)
    version = installed_version(entry)
    return IntegrationStatus(
        name=entry.name,
        setup=entry.setup,
        extra=entry.extra or None,
        package=entry.package or None,
        installed=version is not None if entry.package else None,
        version=version or None,
        guide=entry.guide,
        jobs=len(received),
        last_job=None if last is None else last.name,
        last_received=None if last is None else render_time(last.last_at),
    )


def _newest(jobs: Iterable[_KnownJob]) -> _KnownJob | None:
    return max(jobs, key=lambda job: (job.last_at, job.name), default=None)
