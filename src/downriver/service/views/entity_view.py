"""An entity with its code, results of checks, last good run and raw facets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from downriver.graph.answers.node_facts import NodeRun
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind, RunState
from downriver.model.governance import QualityResult
from downriver.model.ids import JobId
from downriver.model.views.graph_view import EntityView
from downriver.openlineage.facets.base import parse_facet
from downriver.openlineage.facets.custom import parse_code
from downriver.openlineage.facets.dataset import parse_assertions
from downriver.openlineage.facets.job import SQL, SqlFacet, parse_source_code_location
from downriver.openlineage.wire import render_time
from downriver.service.entities import EntityApi, facets_by_name
from downriver.service.trace import parse_question
from downriver.service.views.graph_view import summarize_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.graph import CatalogSnapshot
    from downriver.model.ids import NodeId
    from downriver.model.views.graph_view import RunSummary
    from downriver.service.session import StoreSession

_RUNS_LOOKED_AT = 50  # of a job, for one that completed


class EntityViewApi:
    """An entity as its page shows it. Call it."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, entity: str, *, as_of: str | None = None) -> EntityView:
        """Return all details of a dataset or job, now or at a past moment."""
        question = parse_question(Direction.BOTH, 1, as_of, 1)
        until = question.until
        with self._session.reading(question.as_of) as view:
            details = EntityApi(self._session).details(entity, as_of=as_of)
            resolved = self._session.resolve(entity, view)
            names = view.graph.nodes.identities.group(resolved.node)
            display = view.graph.nodes.identities.display_names([resolved.node], view.reader)
            facets: dict[str, bytes] = {}
            for listed in reversed(facets_by_name(names, display[resolved.node], view, until)):
                facets.update(listed)
            jobs = [resolved.node] if isinstance(resolved.id, JobId) else _writers(names, view)
            return EntityView(
                **{name: getattr(details, name) for name in details.__struct_fields__},
                sql=parse_facet(facets.get(SQL, b"{}"), SqlFacet).query or None,
                source=_source(facets),
                quality=_quality(names, details.id, view, until),
                last_good_run=_last_good_run(jobs, view, until),
                facets={name: _decode(body) for name, body in sorted(facets.items())},
            )


def _writers(names: Iterable[int], view: CatalogSnapshot) -> list[int]:
    writers = view.graph.nodes.neighbours(names, EdgeKind.WRITES, downstream=False)
    return sorted({job for jobs in writers.values() for job in jobs})


def _source(facets: Mapping[str, bytes]) -> str | None:
    code = parse_code(facets)
    path = (code.path if code else "") or parse_source_code_location(facets).path
    if not path:
        return None
    return f"{path}:{code.line}" if code and code.line else path


def _quality(
    names: Iterable[int], dataset: str, view: CatalogSnapshot, until: int | None
) -> list[QualityResult]:
    """Return the last result of each check."""
    latest: dict[tuple[str, str | None], QualityResult] = {}
    for name in names:
        for body, at in view.reader.facets.quality(name, until):
            for check in parse_assertions(body):
                latest[check.assertion, check.column] = QualityResult(
                    dataset=dataset,
                    column=check.column,
                    assertion=check.assertion,
                    success=check.success,
                    checked_at=render_time(at),
                )
    return sorted(latest.values(), key=lambda r: (r.success, r.column or "", r.assertion))


def _last_good_run(jobs: list[int], view: CatalogSnapshot, until: int | None) -> RunSummary | None:
    runs = view.reader.runs.latest_of_each(jobs, _RUNS_LOOKED_AT, until)
    completed = [
        NodeRun(job, run)
        for job, listed in runs.items()
        for run in listed
        if run.state is RunState.COMPLETE
    ]
    if not completed:
        return None
    names: dict[int, NodeId] = view.reader.nodes.by_ids({seen.job for seen in completed})
    last = max(completed, key=lambda seen: (seen.run.state_at, str(names[seen.job]), seen.run.run))
    return summarize_run(last, names[last.job])


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode(errors="replace")
