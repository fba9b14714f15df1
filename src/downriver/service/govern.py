"""KPIs, incidents, tags, certified paths, and findings of the monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver import settings
from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.govern import incidents, kpi_history, kpis
from downriver.govern.drift import DriftLimits, Inspector
from downriver.govern.drift.runs import parse_period
from downriver.govern.drift.series import DAY
from downriver.govern.entity_context import EntityContext
from downriver.govern.inventory import measure_inventory
from downriver.govern.suspects import IncidentInputs
from downriver.govern.tags import (
    certified_paths,
    find_badges,
    propagating_tags,
    reach_of_tag,
    tags_of_dataset,
)
from downriver.lake.bronze.store_log import publish
from downriver.lake.reach.closure import VertexItems, count_reached
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import read_current_version
from downriver.model.governance import FindingKind, PropagatingTags, Severity
from downriver.model.ids import JobId
from downriver.model.verdicts import Decision
from downriver.model.views.history import KpiHistory
from downriver.openlineage.wire import parse_time
from downriver.service.limits import DEFAULT_FINDINGS
from downriver.service.session import now
from downriver.service.trace import parse_as_of
from downriver.store.findings import FindingFilter
from downriver.store.verdicts import VerdictFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.govern.kpis import Ints
    from downriver.govern.watch import Monitor, WatchConfig
    from downriver.graph import CatalogSnapshot
    from downriver.model.governance import (
        CertifiedPaths,
        DatasetTags,
        Findings,
        Incident,
        InventoryCoverage,
        Kpis,
        TagReach,
    )
    from downriver.model.verdicts import RecordedVerdicts
    from downriver.service.session import StoreSession
    from downriver.store.findings import ChannelBacklog


_MOST_POINTS = 200


class GovernApi:
    """The state of the graph: KPIs, incidents, tags, findings."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def kpis(self, *, examples: int = kpis.EXAMPLES) -> Kpis:
        """Return the KPIs of the whole graph: coverage, blast radius, failures and more.

        `examples` limits the entities in each list.
        """
        with self._session.reading() as view:
            around = self._around(view)
            inputs = kpis.KpiInputs(
                view.graph, view.reader, around, _count_reached, around.stale_days, now(), examples
            )
            return kpis.measure_kpis(inputs)

    def inventory_coverage(self, source: str, tables: Sequence[str]) -> InventoryCoverage:
        """Return how many of the tables that exist, as a source lists them, have lineage."""
        if not tables:
            raise InvalidRequestError("tables", "lists no table")
        with self._session.reading() as view:
            return measure_inventory(view.graph, view.reader, source, tables)

    def kpi_history(
        self, *, since: str | None = None, points: int = 30, certified: bool = False
    ) -> KpiHistory:
        """Return KPIs at evenly spaced moments since a time, or since the first event.

        `certified` adds the integrity of certified paths, which takes longer than the others.
        """
        if not 1 <= points <= _MOST_POINTS:
            raise InvalidRequestError("points", f"{points} is not from 1 to {_MOST_POINTS}")
        moment = now()
        with self._session.reading() as view:
            around = self._around(view)
            inputs = kpis.KpiInputs(
                view.graph, view.reader, around, _count_reached, around.stale_days, moment
            )
            start = kpi_history.first_moment(inputs)
            if start is None:
                return KpiHistory(points=[])
            if since is not None:
                start = max(start, parse_since(since, moment))
            moments = np.linspace(min(start, moment), moment, points, dtype=np.int64).tolist()
            return KpiHistory(
                points=kpi_history.measure_history(inputs, moments, certified=certified)
            )

    def incident_report(
        self, entity: str, at: str | None = None, *, limits: DriftLimits | None = None
    ) -> Incident:
        """Report the problems of a dataset, column or job, their causes, and who is affected.

        `at` is the moment of the report, now by default. Later events are ignored.
        """
        moment = now() if at is None else parse_moment(at, "at")
        with self._session.reading() as view:
            resolved = self._session.resolve(entity, view)
            limits = limits or DriftLimits()

            def inspect_at(time: int) -> Inspector:
                return Inspector(view.graph, view.reader, limits, time, old_failures=True)

            old = moment - int(limits.lateness.give_up_days * DAY)
            around = self._around(view)
            scene = IncidentInputs(view.reader, inspect_at, around, moment, old)
            return incidents.report_incident(resolved, scene)

    def tag_reach(self, tag: str, as_of: str | None = None) -> TagReach:
        """Return where a tag such as `pii` is set, and the columns that it reaches.

        `as_of` is a moment of the lineage; the tags are those of the present.
        """
        if not tag.strip():
            raise InvalidRequestError("tag", "empty")
        moment = parse_as_of(as_of)
        with self._session.reading(moment) as view:
            around = self._around(view)
            wanted = tag.strip().lower()
            return reach_of_tag(view.graph, view.reader, wanted, around, around.stale_days, moment)

    def dataset_tags(self, entity: str) -> DatasetTags:
        """Return the tags of a dataset and of its columns, with those that reach a column."""
        with self._session.reading() as view:
            resolved = self._session.resolve(entity, view)
            if isinstance(resolved.id, JobId):
                raise InvalidRequestError("dataset", f"{resolved.id} is a job and has no columns")
            stale_days = self._around(view).stale_days
            return tags_of_dataset(view.graph, view.reader, resolved, stale_days)

    def badges(self, entities: Iterable[str]) -> dict[str, list[str]]:
        """Return the tags to show beside names: of a source of truth, and those that propagate."""
        with self._session.reading() as view:
            return find_badges(view.graph, view.reader, entities)

    def propagating_tags(self) -> PropagatingTags:
        """Return the tags that propagate along column lineage: `pii`, and those declared so."""
        with self._session.reading() as view:
            return PropagatingTags(tags=sorted(propagating_tags(view.reader)))

    def certified_paths(self) -> CertifiedPaths:
        """Return every certified dataset with the gaps in its upstream lineage."""
        with self._session.reading() as view:
            return certified_paths(view.graph, view.reader, self._around(view))

    def findings(
        self,
        *,
        status: str | None = "open",
        entity: str | None = None,
        kind: str | None = None,
        severity: str | None = None,
        since: str | None = None,
        limit: int = DEFAULT_FINDINGS,
    ) -> Findings:
        """Return the findings of the monitor, the latest first; status None: all."""
        with self._session.reading() as view:
            named = None if entity is None else str(self._session.resolve(entity, view).id)
            wanted = FindingFilter(
                _one_of(status, ("open", "resolved"), "status"),
                named,
                _one_of(kind, [k.value for k in FindingKind], "kind"),
                None if severity is None else Severity(_one_of(severity, _SEVERITIES, "severity")),
                None if since is None else parse_since(since, now()),
                limit,
            )
            return view.reader.findings.find(wanted)

    def verdicts(
        self,
        *,
        decision: str | None = None,
        since: str | None = None,
        limit: int = DEFAULT_FINDINGS,
    ) -> RecordedVerdicts:
        """Return the recorded verdicts of the gate, the latest first."""
        wanted = VerdictFilter(
            _one_of(decision and decision.upper(), [d.value for d in Decision], "decision"),
            None if since is None else parse_since(since, now()),
            limit,
        )
        with self._session.store.reader() as reader:
            return reader.verdicts.find(wanted)

    def waiting_alerts(self) -> list[ChannelBacklog]:
        """Return the alerts that are not yet sent."""
        with self._session.store.reader() as reader:
            return reader.findings.waiting()

    def monitor(self, watch: WatchConfig) -> Monitor:
        """Return a monitor of this store."""
        stale_days = settings.read_number(settings.STALE_DAYS)
        # Here, because the monitor loads the readers of code, which a trace does not need.
        from downriver.govern.watch import Monitor

        return Monitor(self._session.store, self._session.reading, watch, stale_days)

    def take_from_lake(self, place: str) -> int:
        """Append the events that a lake ingested since the last call; return how many are new."""
        folder = Folder(place)
        name = f"lake {folder.location}"
        with self._session.store.reader() as reader:
            after = int(reader.findings.state(name) or b"0")
        last = max((batch.number for batch in read_current_version(folder).batches), default=0)
        if last <= after:
            return 0
        published = publish(folder, self._session.store, after=after)
        with self._session.store.ledger() as ledger:
            ledger.keep(name, str(last).encode())
        return published.events

    def _around(self, view: CatalogSnapshot) -> EntityContext:
        return EntityContext(view.graph, view.reader, settings.read_number(settings.STALE_DAYS))


def _count_reached(
    size: int, source: Ints, target: Ints, of: Ints, kind: Ints
) -> tuple[Ints, Ints]:
    counted = count_reached(size, source, target, VertexItems(of, kind))
    none = np.zeros(size, np.int64)  # where there are no datasets, or no jobs
    datasets, jobs = (*counted, none, none)[:2]
    return datasets, jobs


_SEVERITIES = [severity.value for severity in Severity]


def _one_of(text: str | None, known: Sequence[str], field: str) -> str | None:
    if text is not None and text not in known:
        raise InvalidRequestError(field, f"{text!r} is not one of {', '.join(known)}")
    return text


def parse_since(text: str, moment: int) -> int:
    """Return the moment that a time means, or a period such as `24h` before `moment`."""
    period = parse_period(text)
    return parse_moment(text, "since") if period is None else moment - period


def parse_moment(text: str, field: str) -> int:
    """Return the moment that an ISO 8601 time means."""
    try:
        return parse_time(text, field)
    except InvalidEventError as exc:
        raise InvalidRequestError(field, exc.reason) from exc
