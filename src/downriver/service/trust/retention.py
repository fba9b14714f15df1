"""Removes datasets and jobs from answers, and shows them again. Events stay in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from downriver.errors import InvalidRequestError
from downriver.govern.drift.runs import parse_period
from downriver.govern.retention import PrunePlan
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.model.trust.retention import (
    Forgotten,
    ForgottenEdge,
    Pruned,
    RedactedEntries,
    RestoredRuns,
    RetiredEntity,
)
from downriver.openlineage.events import dataset_event, job_event
from downriver.openlineage.facets.custom import (
    DELETED,
    RESTORED,
    render_deleted,
    render_restored,
)
from downriver.openlineage.facets.edge_retirement import (
    EDGE_RETIREMENT,
    EdgeRetirement,
    render_edge_retirement,
)
from downriver.openlineage.facets.run_retirement import (
    RUN_RETIREMENT,
    RunRetirement,
    render_run_retirement,
)
from downriver.openlineage.wire import render_time
from downriver.service.session import now
from downriver.store.redaction import NamePattern, make_redaction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from downriver.model.ids import NodeId
    from downriver.openlineage import Event
    from downriver.service.session import StoreSession


_SHORTEST_NAME = 3
_ALL_RUNS = 2**31 - 1


class RetentionApi:
    """Forgets, prunes and restores."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def forget(
        self, entity: str, *, reason: str = "", by: str = "", undo: bool = False, done: bool = True
    ) -> Forgotten:
        """Remove a dataset or job from answers until an event mentions it again.

        `undo` shows it again. Without `done`, return what would be removed.
        """
        with self._session.reading() as view:
            found = self._session.resolve(entity, view)
            if isinstance(found.id, ColumnId):
                raise InvalidRequestError("entity", f"{found.id} is a column; name its dataset")
            group = view.graph.nodes.identities.group(found.node)
            names = view.reader.nodes.by_ids(group)
            seen = view.reader.retirement.last_mentions()
            retired = view.graph.retired
        wanted = [node for node in group if (node in retired) == undo]
        if not wanted:
            state = "not forgotten" if undo else "already forgotten"
            raise InvalidRequestError("entity", f"{found.id} is {state}")
        if done:
            self._retire([names[node] for node in wanted], reason, by, undo=undo)
        entities = [
            RetiredEntity(
                id=str(names[node]),
                kind="job" if isinstance(names[node], JobId) else "dataset",
                last_seen=render_time(seen[node]),
                reason=reason or ("restored" if undo else "forgotten"),
            )
            for node in wanted
        ]
        return Forgotten(entities=entities, restored=undo, done=done)

    def prune(self, older_than: str, *, by: str = "", done: bool = True) -> Pruned:
        """Remove entities from answers that no event has mentioned for a period such as `90d`.

        The upstream of certified datasets, jobs that run more rarely, and datasets of active jobs
        stay. Without `done`, return what would be removed.
        """
        period = parse_period(older_than)
        if period is None:
            raise InvalidRequestError("older_than", f"{older_than!r} is not a period such as 90d")
        at = now()
        with self._session.reading() as view:
            plan = PrunePlan(view.graph, view.reader, at - period, at).result()
        if not done:
            return plan
        with self._session.reading() as view:
            ids = [self._session.resolve(entity.id, view).id for entity in plan.retired]
        reason = f"pruned: not mentioned for {older_than}"
        self._retire([i for i in ids if isinstance(i, DatasetId | JobId)], reason, by)
        self._state_edges([(e.source, e.target) for e in plan.retired_edges], reason, by)
        self._state_runs({each.job: each.before for each in plan.retired_runs}, reason, by)
        with self._session.store.ledger() as ledger:
            ledger.delete_resolved(at - period)
        return msgspec.structs.replace(plan, done=True)

    def forget_edge(
        self,
        source: str,
        target: str,
        *,
        reason: str = "",
        by: str = "",
        undo: bool = False,
        done: bool = True,
    ) -> ForgottenEdge:
        """Remove one edge between a job and a dataset until an event shows it again.

        `undo` shows it again. Without `done`, return what would be removed.
        """
        with self._session.reading() as view:
            ends = [self._session.resolve(name, view) for name in (source, target)]
            nodes = tuple(end.node for end in ends)
            retired = view.reader.retirement.retired_edges()
            flow = view.graph.nodes.flow
            leaving = flow.ends.target[flow.ends.leaving.of(np.array([nodes[0]], np.int32))]
            exists = nodes in retired if undo else nodes[1] in leaving.tolist()
        ids = [str(end.id) for end in ends]
        if not exists:
            kind = "retired edge" if undo else "edge"
            raise InvalidRequestError("target", f"no {kind} from {ids[0]} to {ids[1]}")
        if done:
            self._state_edges([(ids[0], ids[1])], reason, by, retired=not undo)
        return ForgottenEdge(source=ids[0], target=ids[1], restored=undo, done=done)

    def restore_runs(self, job: str, *, by: str = "", done: bool = True) -> RestoredRuns:
        """List the pruned runs of a job again. Without `done`, return how many these are."""
        with self._session.reading() as view:
            found = self._session.resolve(job, view)
            before = view.reader.retirement.retired_runs().get(found.node)
            starts = view.reader.history.runs(found.node, _ALL_RUNS, now())
        if before is None:
            return RestoredRuns(job=str(found.id), before=None, runs=0, done=done)
        restored = RestoredRuns(
            job=str(found.id),
            before=render_time(before),
            runs=sum(run.first_at < before for run in starts),
            done=done,
        )
        if done and restored.before is not None:
            self._state_runs({restored.job: restored.before}, "", by, retired=False)
        return restored

    def _state_runs(
        self, jobs: Mapping[str, str], reason: str, by: str, *, retired: bool = True
    ) -> None:
        at = now()
        with self._session.reading() as view:
            ids = {name: self._session.resolve(name, view).id for name in jobs}
        statements = [
            RunRetirement(job=job, before=jobs[name], retired=retired, reason=reason, by=by)
            for name, job in ids.items()
            if isinstance(job, JobId)
        ]
        self._session.ingest_many(
            [
                dataset_event(each.record, at, {RUN_RETIREMENT: render_run_retirement(each)})
                for each in statements
            ]
        )

    def _state_edges(
        self, edges: list[tuple[str, str]], reason: str, by: str, *, retired: bool = True
    ) -> None:
        at = now()
        with self._session.reading() as view:
            ends = [tuple(self._session.resolve(name, view).id for name in edge) for edge in edges]
        statements = []
        for source, target in ends:
            job, dataset = (source, target) if isinstance(source, JobId) else (target, source)
            if not (isinstance(job, JobId) and isinstance(dataset, DatasetId)):
                raise InvalidRequestError("target", "an edge connects a job and a dataset")
            statements.append(
                EdgeRetirement(
                    job=job,
                    dataset=dataset,
                    direction="writes" if isinstance(source, JobId) else "reads",
                    retired=retired,
                    reason=reason,
                    by=by,
                )
            )
        self._session.ingest_many(
            [
                dataset_event(each.record, at, {EDGE_RETIREMENT: render_edge_retirement(each)})
                for each in statements
            ]
        )

    def redact(
        self, name: str, *, reason: str = "", by: str = "", done: bool = True
    ) -> RedactedEntries:
        """Erase the name of a person from facets in the log, and record which entries changed.

        The hash chain stays intact. Without `done`, return what would change.
        """
        if len(name.strip()) < _SHORTEST_NAME:
            raise InvalidRequestError("name", f"is shorter than {_SHORTEST_NAME} characters")

        pattern = NamePattern(name.strip())

        def record(entries: Mapping[int, bytes]) -> Event:
            redacted = pattern.redact_text  # else the redaction itself adds the name again
            return make_redaction(entries, redacted(reason), redacted(by), now())

        found = self._session.store.redact(name.strip(), record, done=done)
        return RedactedEntries(entries=len(found.entries), remaining=found.remaining, done=done)

    def _retire(
        self,
        entities: list[DatasetId | JobId] | list[NodeId],
        reason: str,
        by: str,
        *,
        undo: bool = False,
    ) -> None:
        at = now()
        facets = {RESTORED: render_restored(by)} if undo else {DELETED: render_deleted(reason, by)}

        def event(entity: NodeId) -> Event:
            if isinstance(entity, JobId):
                return job_event(entity, at, facets=facets)
            return dataset_event(entity, at, facets)

        self._session.ingest_many([event(entity) for entity in entities])
