"""Lineage from other systems: MLflow, the logs of Delta Lake and Iceberg tables, and files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from downriver.errors import InvalidRequestError
from downriver.model.facts import EdgeKind
from downriver.model.ids import DatasetId, JobId, RunId
from downriver.openlineage.events import dataset_event
from downriver.openlineage.facets.dataset import (
    ASSERTIONS,
    COMMIT,
    VERSION,
    CommitFacet,
    parse_commit,
    parse_version,
    render_assertions,
)
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from downriver.capture.check_results.great_expectations import ValidationResult
    from downriver.capture.commits import TableLog
    from downriver.service.session import StoreSession
    from downriver.store.catalog.run_history import RunFacet

_TOLERANCE = 2_000_000  # µs by which the clocks of a job and of a table's log may differ


class SystemCapture(msgspec.Struct, kw_only=True):
    """The result of a capture from another system.

    `unread` lists what could not be read, and why.
    """

    system: str
    source: str
    runs: int
    datasets: list[str]
    events: int
    registered: bool
    unread: list[str] = []


class SystemApi:
    """Registers lineage that is read from other systems. A second call reads only what is new."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def mlflow(
        self,
        uri: str | None = None,
        *,
        experiment: str | None = None,
        write_tags: bool = False,
        dry_run: bool = False,
        progress: Callable[[int], None] = lambda done: None,
    ) -> SystemCapture:
        """Read the runs of an MLflow tracking store and the versions of its registered models."""
        from downriver.capture.mlflow import TrackingStore, render_run
        from downriver.capture.mlflow.events import lineage_id_of
        from downriver.capture.mlflow.tracking_store import LINEAGE_TAG, OWN_TAG

        store = TrackingStore(uri)
        capture = SystemCapture(
            system="mlflow", source=store.uri, runs=0, datasets=[], events=0, registered=not dry_run
        )
        datasets: set[str] = set()
        for run in store.runs(experiment, self._known_fingerprints()):
            events = render_run(run, now())
            if not dry_run:
                self._session.ingest(events)
                if write_tags and OWN_TAG not in run.tags:
                    tagged = LINEAGE_TAG in run.tags
                    store.write_tag(run.id, lineage_id_of(run), has_lineage_tag=tagged)
            datasets.update(str(used.dataset) for used in run.datasets)
            datasets.update(f"dataset:model:{model.name}" for model in run.models)
            capture.unread += [f"{run.id}: {text}" for text in run.unread]
            capture.runs += 1
            capture.events += len(events)
            progress(capture.runs)
        capture.datasets = sorted(datasets)
        return capture

    def great_expectations(
        self, path: Path, *, dataset: str | None = None, dry_run: bool = False
    ) -> SystemCapture:
        """Read a result file of Great Expectations. The datasets must be known.

        `dataset` is the validated dataset, if the file names it differently from the store.
        """
        from downriver.capture.check_results.great_expectations import read_validations

        validations = read_validations(path)
        return self._store_checks("great-expectations", path, validations, dataset, dry_run=dry_run)

    def soda(
        self, path: Path, *, dataset: str | None = None, dry_run: bool = False
    ) -> SystemCapture:
        """Read the result file of a Soda scan. The datasets must be known."""
        from downriver.capture.check_results.soda_deequ import read_soda_scan

        validations = read_soda_scan(path)
        return self._store_checks("soda", path, validations, dataset, dry_run=dry_run)

    def deequ(
        self, path: Path, *, dataset: str | None = None, dry_run: bool = False
    ) -> SystemCapture:
        """Read the results of Deequ's checks, as JSON, of a dataset that is known."""
        from downriver.capture.check_results.soda_deequ import read_deequ_results

        validations = read_deequ_results(path)
        return self._store_checks("deequ", path, validations, dataset, dry_run=dry_run)

    def _store_checks(
        self,
        system: str,
        path: Path,
        validations: Sequence[ValidationResult],
        dataset: str | None,
        *,
        dry_run: bool,
    ) -> SystemCapture:
        capture = SystemCapture(
            system=system, source=str(path), runs=len(validations), datasets=[],
            events=0, registered=not dry_run,
        )  # fmt: skip
        events = []
        with self._session.reading() as view:
            for validation in validations:
                name = dataset or validation.asset
                if not name:
                    raise InvalidRequestError("--dataset", f"{path} does not name the dataset")
                node = self._session.resolve(name, view).id
                if not isinstance(node, DatasetId):
                    raise InvalidRequestError("--dataset", f"{node} is not a dataset")
                facets = {ASSERTIONS: render_assertions(validation.assertions)}
                at = now() if validation.at is None else validation.at
                events.append(dataset_event(node, at, facets))
                capture.datasets.append(str(node))
                capture.unread += validation.unread
        if not dry_run:
            self._session.ingest(events)
        capture.events = len(events)
        capture.datasets = sorted(set(capture.datasets))
        return capture

    def delta(
        self,
        location: str,
        *,
        options: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> SystemCapture:
        """Read the transaction log of a Delta table."""
        from downriver.capture.delta import read_delta_log
        from downriver.openlineage.naming import dataset_at

        known = self._known_versions(dataset_at(location))
        last = max((int(version) for version in known if version.isdecimal()), default=-1)
        return self._register(read_delta_log(location, after=last, options=options), dry_run)

    def iceberg(
        self,
        table: str,
        *,
        catalog: str = "default",
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> SystemCapture:
        """Read the snapshots of an Iceberg table."""
        from downriver.capture.iceberg import read_iceberg_log

        log = read_iceberg_log(table, catalog=catalog, properties=properties or {})
        known = self._known_versions(log.table)
        new = tuple(commit for commit in log.commits if commit.version not in known)
        return self._register(log._replace(commits=new), dry_run)

    def files(self, location: str, *, dry_run: bool = False) -> SystemCapture:
        """Read the current version of a file, or of the files of a folder, by their content."""
        from downriver.capture.file_versions import read_file_version
        from downriver.openlineage.naming import dataset_at

        last_at, last = self._newest_commit(dataset_at(os.path.abspath(location)))
        log = read_file_version(location, stamp=last.parameters.get("stamp", ""))
        commits = [
            # Files that were put back have the times of an earlier version.
            commit._replace(at=now()) if commit.at <= last_at else commit
            for commit in log.commits
            if commit.version != last.version
        ]
        return self._register(log._replace(commits=tuple(commits)), dry_run)

    def _register(self, log: TableLog, dry_run: bool) -> SystemCapture:
        from downriver.capture.commits import render_table_log

        with self._session.store.reader() as reader:
            number = reader.nodes.find(log.table)
        events = render_table_log(log, lambda at: self._run_at(number, at))
        if not dry_run:
            self._session.ingest_many(events)
        return SystemCapture(
            system=log.integration.lower(),
            source=str(log.table),
            runs=len(events),
            datasets=[str(log.table)],
            events=len(events),
            registered=not dry_run,
            unread=list(log.unread),
        )

    def _known_fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the MLflow runs that the store has, by their id."""
        from downriver.capture.mlflow import MLFLOW_RUN, parse_mlflow_run
        from downriver.openlineage.facets.job import JOB_TYPE, parse_job_type

        with self._session.store.reader() as reader:
            jobs = [
                node
                for node, body in reader.facets.named(JOB_TYPE).items()
                if parse_job_type(body).integration == "MLFLOW"
            ]
            facets = reader.run_history.job_facets(jobs, MLFLOW_RUN)
        parsed = map(parse_mlflow_run, facets)
        return {facet.run: facet.fingerprint for facet in parsed if facet.run}

    def _known_versions(self, dataset: DatasetId) -> set[str]:
        """Return the versions of a dataset that runs in the store wrote."""
        return {parse_version(facet.body) for facet in self._written_facets(dataset, VERSION)}

    def _newest_commit(self, dataset: DatasetId) -> tuple[int, CommitFacet]:
        """Return the time and the facet of the newest version that a capture recorded."""
        commits = [
            (facet.first_at, parse_commit(facet.body))
            for facet in self._written_facets(dataset, COMMIT)
        ]
        return max(commits, key=lambda commit: commit[0], default=(0, CommitFacet()))

    def _written_facets(self, dataset: DatasetId, name: str) -> list[RunFacet]:
        """Return the facets with this name that runs attached to a dataset as an output."""
        from downriver.model.facts import FacetRole

        with self._session.store.reader() as reader:
            number = reader.nodes.find(dataset)
            if number is None:
                return []
            history = reader.run_history
            pairs = history.runs_with_facet([number], name, [FacetRole.OUTPUT])
            facets = history.facets([run for _, run in pairs], (name,))
        return [f for f in facets if f.node == number and f.role is FacetRole.OUTPUT]

    def _run_at(self, dataset: int | None, at: int) -> RunId | None:
        """Return the only run of a known writer that was active at a time."""
        if dataset is None:
            return None
        with self._session.reading() as view:
            flow = view.graph.nodes.flow
            import numpy as np

            edges = flow.ends.entering.of(np.array([dataset], np.int32))
            chosen = edges[flow.kind[edges] == EdgeKind.WRITES]
            writers = set(flow.ends.source[chosen].tolist())
            if not writers:
                return None
            runs = view.reader.run_history.runs_during(writers, at - _TOLERANCE, at + _TOLERANCE)
            names = view.reader.nodes.by_ids({run.job for run in runs})
        own = ("delta", "iceberg", "hudi", "files")
        run_ids = [
            RunId(job, run.run)
            for run in runs
            if isinstance(job := names[run.job], JobId) and job.namespace not in own
        ]
        return run_ids[0] if len(run_ids) == 1 else None
