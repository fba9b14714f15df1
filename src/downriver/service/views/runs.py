"""Runs of jobs with durations, counts, errors and results of checks."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.model.facts import EdgeKind, FacetRole, RunState
from downriver.model.ids import JobId
from downriver.model.views.runs import QualityCounts, RunDetails, RunFacets, RunRecord, Runs
from downriver.openlineage.facets.dataset import (
    ASSERTIONS,
    INPUT_STATISTICS,
    OUTPUT_STATISTICS,
    parse_assertions,
    parse_statistics,
)
from downriver.openlineage.facets.job import (
    ERROR_MESSAGE,
    PARENT,
    parse_error_message,
    parse_parents,
)
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_moment
from downriver.store.catalog.run_history import RunFilter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from downriver.graph import CatalogSnapshot
    from downriver.service.session import StoreSession
    from downriver.store.catalog.history import JobRun
    from downriver.store.catalog.run_history import RunFacet

_SUMMARIZED = (ASSERTIONS, ERROR_MESSAGE, INPUT_STATISTICS, OUTPUT_STATISTICS, PARENT)
_ROLES = {FacetRole.RUN: "run", FacetRole.INPUT: "input", FacetRole.OUTPUT: "output"}


class _Datasets(NamedTuple):
    """The datasets that each job reads and writes."""

    inputs: dict[int, list[int]]
    outputs: dict[int, list[int]]

    def of(self, jobs: Iterable[int]) -> set[int]:
        return {node for job in jobs for side in self for node in side.get(job, ())}


class RunApi:
    """Runs of a job, of the jobs that write a dataset, or of all jobs. Call it to list them."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        entity: str | None = None,
        *,
        state: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> Runs:
        """Return runs, the latest first. `before` is a time, or `next_before` of a page."""
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is less than 1")
        with self._session.reading() as view:
            jobs = None if entity is None else self._jobs(entity, view)
            wanted = RunFilter(jobs, _parse_state(state), _parse_before(before), limit + 1)
            job_runs = view.reader.run_history.list_runs(wanted)
            listed = job_runs[:limit]
            records = _Records(view, listed)
            return Runs(
                runs=[records.record(run) for run in listed],
                next_before=_cursor(listed[-1]) if len(job_runs) > limit else None,
            )

    def details(self, run: str, job: str | None = None) -> RunDetails:
        """Return one run with its facets as sent. `job` selects one of several of the same id."""
        with self._session.reading() as view:
            found = view.reader.run_history.find_runs(run)
            if job is not None:
                wanted = self._session.resolve(job, view).node
                found = [listed for listed in found if listed.job == wanted]
            if not found:
                raise EntityNotFoundError(run)
            return _Records(view, found[:1], every_facet=True).details(found[0])

    def _jobs(self, entity: str, view: CatalogSnapshot) -> Collection[int]:
        """Return the job of a name, or the jobs that write the dataset of the name."""
        found = self._session.resolve(entity, view)
        if isinstance(found.id, JobId):
            return [found.node]
        flow = view.graph.nodes.flow
        names = np.array(view.graph.nodes.identities.group(found.node), np.int32)
        edges = flow.ends.entering.of(names)
        writers: list[int] = flow.ends.source[edges[flow.kind[edges] == EdgeKind.WRITES]].tolist()
        return set(writers)


class _Records:
    """Renders runs that were read together."""

    def __init__(
        self, view: CatalogSnapshot, runs: list[JobRun], *, every_facet: bool = False
    ) -> None:
        jobs = {run.job for run in runs}
        self._datasets = _datasets_of(jobs, view)
        nodes = {*jobs, *self._datasets.of(jobs)}
        self._names = view.reader.nodes.by_ids(nodes)
        numbers = [run.number for run in runs]
        named = () if every_facet else _SUMMARIZED
        self._facets: defaultdict[int, list[RunFacet]] = defaultdict(list)
        for facet in view.reader.run_history.facets(numbers, named):
            self._facets[facet.run].append(facet)

    def record(self, run: JobRun) -> RunRecord:
        """Return a run with its counts."""
        facets = self._facets[run.number]
        own = {facet.name: facet.body for facet in facets if facet.role is FacetRole.RUN}
        parents = parse_parents(own[PARENT]) if PARENT in own else []
        ended = run.ended_at
        return RunRecord(
            id=run.run,
            job=str(self._names[run.job]),
            state=run.state.name,
            inputs=self._ids(self._datasets.inputs.get(run.job, ())),
            outputs=self._ids(self._datasets.outputs.get(run.job, ())),
            started_at=render_time(run.began_at),
            ended_at=None if ended is None else render_time(ended),
            duration_seconds=None if ended is None else max(ended - run.began_at, 0) / 1e6,
            rows_read=_total(facets, INPUT_STATISTICS, "rowCount"),
            rows_written=_total(facets, OUTPUT_STATISTICS, "rowCount"),
            bytes_written=_total(facets, OUTPUT_STATISTICS, "size"),
            error=parse_error_message(own.get(ERROR_MESSAGE)) or None,
            quality=_quality(facets),
            parent=str(parents[-1]) if parents else None,
        )

    def details(self, run: JobRun) -> RunDetails:
        """Return a run with all its facets."""
        facets = self._facets[run.number]
        grouped: dict[tuple[str, str], dict[str, Any]] = {}
        events = {run.first_event: None, run.last_event: None}
        for facet in facets:
            key = (str(self._names[facet.node]), _ROLES[facet.role])
            grouped.setdefault(key, {})[facet.name] = _decode(facet.body)
            events |= {facet.first_event: None, facet.last_event: None}
        return RunDetails(
            run=self.record(run),
            facets=[
                RunFacets(entity=entity, role=role, facets=content)
                for (entity, role), content in sorted(grouped.items())
            ],
            events=[event.hex() for event in events],
        )

    def _ids(self, nodes: Iterable[int]) -> list[str]:
        return sorted(str(self._names[node]) for node in nodes)


def _datasets_of(jobs: Iterable[int], view: CatalogSnapshot) -> _Datasets:
    flow = view.graph.nodes.flow
    numbers = np.array(sorted(jobs), np.int32)
    datasets = _Datasets({}, {})
    sides = (
        (datasets.inputs, flow.ends.entering, flow.ends.source, EdgeKind.READS),
        (datasets.outputs, flow.ends.leaving, flow.ends.target, EdgeKind.WRITES),
    )
    for listed, rows, far, kind in sides:
        edges, places = rows.of_each(numbers)
        chosen = flow.kind[edges] == kind
        ends = zip(numbers[places[chosen]].tolist(), far[edges[chosen]].tolist(), strict=True)
        for job, dataset in ends:
            listed.setdefault(job, []).append(dataset)
    return datasets


def _total(facets: Iterable[RunFacet], name: str, field: str) -> int | None:
    """Return the sum over the datasets of a run of the last value sent for each."""
    values: dict[int, float] = {}
    for facet in facets:
        value = getattr(parse_statistics(facet.body), field) if facet.name == name else None
        if value is not None:
            values[facet.node] = value
    return int(sum(values.values())) if values else None


def _quality(facets: Iterable[RunFacet]) -> QualityCounts | None:
    last = {facet.node: facet.body for facet in facets if facet.name == ASSERTIONS}
    results = [result.success for body in last.values() for result in parse_assertions(body)]
    if not results:
        return None
    return QualityCounts(passed=sum(results), failed=len(results) - sum(results))


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode(errors="replace")


def _parse_state(state: str | None) -> RunState | None:
    if state is None:
        return None
    try:
        return RunState[state.upper()]
    except KeyError as exc:
        known = ", ".join(known.name for known in RunState)
        raise InvalidRequestError("state", f"{state!r} is not one of {known}") from exc


_CURSOR = re.compile(r"[0-9]{5,18}-[0-9]{1,18}")  # at least five digits: not the year of a time


def _cursor(run: JobRun) -> str:
    return f"{run.first_at}-{run.number}"


def _parse_before(before: str | None) -> tuple[int, int] | None:
    """Parse a cursor or a time into a position."""
    if before is None:
        return None
    if _CURSOR.fullmatch(before):
        at, _, number = before.partition("-")
        return int(at), int(number)
    return parse_moment(before, "before"), 0
