"""Diagnosis of a metric: failed runs, failed checks and old data upstream of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.graph.answers.entity_lists import list_derivations
from downriver.graph.answers.job_runs import last_filled, list_last_runs, writers_of_all
from downriver.model.answers import BlindSpot, is_complete
from downriver.model.governance import Diagnosis, MetricSuspect, QualityResult, SourceFreshness
from downriver.model.ids import ColumnId, DatasetId
from downriver.openlineage.facets.dataset import parse_assertions
from downriver.openlineage.wire import render_time

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.graph.snapshot import CatalogSnapshot
    from downriver.model.answers import Trace
    from downriver.model.flows import LastRun
    from downriver.model.ids import NodeId

_RUNS = 5
_OLD = 24 * 3_600_000_000  # µs: a source that is a day older than the metric is reported
_HOUR = 3_600_000_000
_FAILED = ("FAIL", "ABORT")


class _Place(NamedTuple):
    """A dataset upstream of the metric, its distance, and the jobs that write it."""

    dataset: DatasetId
    number: int
    depth: int
    writers: list[NodeId]


class DiagnosisBuilder:
    """One metric, traced in one view of the catalog."""

    def __init__(
        self,
        columns: Trace,
        datasets: Trace,
        view: CatalogSnapshot,
        now: int,
    ) -> None:
        self._columns = columns
        self._view = view
        self._reader = view.reader
        self._identities = view.graph.nodes.identities
        self._now = now
        self.derivations = list_derivations(columns)
        # Without column lineage, any upstream of the dataset may be the cause.
        self._way = columns if self.derivations else datasets
        self.places = list(self._places())

    def diagnose(self, metric: ColumnId, name: str) -> Diagnosis:
        """Return the diagnosis of the metric."""
        sources = list(
            dict.fromkeys(c for derivation in self.derivations for c in derivation.input_columns)
        ) or [place.dataset.name for place in self.places if place.depth == 1]
        runs = [run for place in self.places for run in self._runs(place)]
        failures = [run for run in runs if run.state in _FAILED]
        quality = [result for place in self.places for result in self._quality(place, metric)]
        freshness = [self._freshness(source) for source in sources]
        spots = list(self._blind_spots(metric, freshness))
        return Diagnosis(
            metric=f"{name}.{metric.field}",
            dataset=str(metric.dataset),
            column=metric.field,
            direct_sources=sources,
            transformations=[d.transformation for d in self.derivations if d.transformation],
            derivations=self.derivations,
            freshness=freshness,
            last_runs=_latest(runs),
            recent_failures=failures,
            quality=quality,
            look_first=sorted(
                [
                    *self._failing_checks(quality),
                    *self._failing_jobs(runs),
                    *self._old(),
                    *_unseen(spots),
                ],
                key=lambda suspect: _ORDER.index(suspect.kind),
            ),
            complete=is_complete(spots),
            blind_spots=spots,
        )

    def _places(self) -> Iterator[_Place]:
        depths: dict[DatasetId, int] = {}
        for node in self._way.nodes:
            if node.kind != "job":
                dataset = DatasetId(node.namespace, node.name)
                depth = abs(node.depth)
                depths[dataset] = min(depths.get(dataset, depth), depth)
        for dataset, depth in sorted(depths.items(), key=lambda item: item[1]):
            number = self._reader.nodes.get(dataset)
            names = self._identities.group(number)
            yield _Place(dataset, number, depth, writers_of_all(self._view, names))

    def _runs(self, place: _Place) -> list[LastRun]:
        return list_last_runs(self._reader, place.writers, _RUNS)

    # Times of the last writes

    def _freshness(self, source: str) -> SourceFreshness:
        place = self._place_of(source)
        at = self._filled_at(place) if place is not None else None
        return SourceFreshness(
            source=source,
            dataset=str(place.dataset) if place is not None else "",
            last_updated=None if at is None else render_time(at),
            age_hours=None if at is None else round((self._now - at) / _HOUR, 2),
            written_by=[str(job) for job in place.writers] if place is not None else [],
        )

    def _place_of(self, source: str) -> _Place | None:
        fitting = [p for p in self.places if source in (p.dataset.name, self._table_of(source, p))]
        return fitting[0] if fitting else None

    def _table_of(self, source: str, place: _Place) -> str:
        return source if source.startswith(f"{place.dataset.name}.") else ""

    def _filled_at(self, place: _Place) -> int | None:
        return last_filled(self._reader, place.writers)

    # Results of checks

    def _quality(self, place: _Place, metric: ColumnId) -> Iterator[QualityResult]:
        fields = {node.field for node in self._columns.nodes if node.name == place.dataset.name} | {
            metric.field
        }
        latest: dict[tuple[str, str | None], QualityResult] = {}
        for name in self._identities.group(place.number):
            for body, at in self._reader.facets.quality(name):
                for check in parse_assertions(body):
                    if check.column is None or check.column in fields:
                        latest[check.assertion, check.column] = QualityResult(
                            dataset=str(place.dataset),
                            column=check.column,
                            assertion=check.assertion,
                            success=check.success,
                            checked_at=render_time(at),
                        )
        yield from latest.values()

    # Suspects

    def _failing_checks(self, quality: list[QualityResult]) -> Iterator[MetricSuspect]:
        depths = {str(place.dataset): place.depth for place in self.places}
        for result in quality:
            if not result.success:
                of = f" of {result.column}" if result.column else ""
                yield MetricSuspect(
                    entity=result.dataset,
                    kind="failed_check",
                    reason=f"{result.assertion}{of} failed at {result.checked_at}",
                    depth=depths[result.dataset],
                )

    def _failing_jobs(self, runs: list[LastRun]) -> Iterator[MetricSuspect]:
        depths = {str(job): place.depth for place in reversed(self.places) for job in place.writers}
        for run in _latest(runs):
            if run.state in _FAILED:
                why = f": {run.error}" if run.error else ""
                yield MetricSuspect(
                    entity=run.job,
                    kind="failed_run",
                    reason=f"its last run ended in {run.state} at {run.ended_at}{why}",
                    depth=depths[run.job],
                )

    def _old(self) -> Iterator[MetricSuspect]:
        """List the upstream datasets that are a day older than the metric."""
        own = self._filled_at(self.places[0])
        for place in self.places[1:]:
            at = self._filled_at(place)
            if own is not None and at is not None and own - at > _OLD:
                yield MetricSuspect(
                    entity=str(place.dataset),
                    kind="old_data",
                    reason=f"last written {render_time(at)}, "
                    f"{(own - at) // _HOUR} hours before the metric",
                    depth=place.depth,
                )

    def _blind_spots(
        self, metric: ColumnId, freshness: list[SourceFreshness]
    ) -> Iterator[BlindSpot]:
        if not self.derivations:
            message = "column lineage unknown: all upstreams of its dataset are included"
            yield BlindSpot(kind="no_column_lineage", entity=str(metric), message=message)
        yield from self._way.blind_spots
        for source in freshness:
            if source.last_updated is None:
                message = "no completed run that writes it is known, so its age is unknown"
                entity = source.dataset or source.source
                yield BlindSpot(kind="unknown_freshness", entity=entity, message=message)


_ORDER = ("failed_check", "failed_run", "old_data", "blind_spot")


def _unseen(spots: list[BlindSpot]) -> Iterator[MetricSuspect]:
    for spot in spots:
        if spot.kind != "unknown_freshness":
            yield MetricSuspect(entity=spot.entity, kind="blind_spot", reason=spot.message, depth=0)


def _latest(runs: list[LastRun]) -> list[LastRun]:
    """Return the last run of each job."""
    latest: dict[str, LastRun] = {}
    for run in runs:
        latest.setdefault(run.job, run)
    return list(latest.values())
