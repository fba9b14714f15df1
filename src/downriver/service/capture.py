"""Lineage from SQL, dbt projects, repositories, and assets registered by hand."""

from __future__ import annotations

import hashlib
import uuid
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import find_revision
from downriver.capture.dbt import (
    DbtCapture,
    capture_dbt,
    read_artifact_tables,
    read_artifacts,
    relation_names,
)
from downriver.capture.inventory.databases import list_tables, read_rows
from downriver.capture.scan import (
    AssetRegistration,
    Repository,
    ScanCatalog,
    ScanResult,
    scan_repository,
)
from downriver.capture.sql import SqlLineage, find_connector_tables, parse_sql_lineage
from downriver.capture.sql.events import SqlJob, render_sql_event
from downriver.graph.names.assets import Assets
from downriver.graph.names.table_names import CatalogNames, DbtNames
from downriver.model.assets import RegisteredAsset
from downriver.model.ids import DEFAULT_NAMESPACE, DatasetId, JobId
from downriver.service.limits import DBT_NAMESPACE
from downriver.service.registration.assets import Registrar, render_registration
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from downriver.capture.code.revision import SourceRevision
    from downriver.capture.dbt import Artifacts
    from downriver.graph import CatalogSnapshot
    from downriver.openlineage.wire import Event
    from downriver.service.session import StoreSession
    from downriver.store import CatalogReader


class SqlCapture(msgspec.Struct, kw_only=True):
    """The lineage of a script, and whether it was registered under a job."""

    job: str
    lineage: SqlLineage
    registered: bool


class CaptureApi:
    """Registers lineage that is read from SQL, dbt or code, or declared by hand."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def sql(
        self,
        sql: str,
        *,
        dialect: str | None = None,
        schema: Mapping[str, Sequence[str]] | None = None,
        job: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        description: str = "",
        path: str = "",
        ran: bool = False,
        dry_run: bool = False,
    ) -> SqlCapture:
        """Read lineage from SQL and register it: as declared or, with `ran`, as executed.

        Schemas of tables that are not in `schema` come from the catalog.
        """
        with self._session.reading() as view:
            names = CatalogNames(view.reader, view.graph.nodes.identities, namespace)

            def columns_of(table: str) -> Sequence[str] | None:
                given = (schema or {}).get(table)
                return names.columns_of(table) if given is None else given

            capture, event = read_sql(
                sql,
                dialect=dialect,
                schema=columns_of,
                job=job,
                namespace=namespace,
                description=description,
                path=path,
                ran=ran,
                names=names.dataset_for,
            )
        capture.registered = capture.registered and not dry_run
        if capture.registered:
            self._session.ingest([event])
        return capture

    def dbt(
        self,
        target: Path,
        *,
        namespace: str | None = None,
        job_namespace: str = DBT_NAMESPACE,
        project_dir: Path | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> DbtCapture:
        """Read the artifacts in a dbt target directory and register their lineage.

        Without a namespace, tables get the namespace of tables with the same names in the catalog.
        """
        artifacts = read_artifacts(target)
        return self._register_dbt(
            artifacts,
            namespace=namespace,
            job_namespace=job_namespace,
            project_dir=project_dir,
            revision=find_revision(project_dir or target),
            dry_run=dry_run,
            progress=progress,
        )

    def dbt_artifacts(
        self,
        url: str,
        schema: str,
        *,
        namespace: str | None = None,
        job_namespace: str = DBT_NAMESPACE,
        dry_run: bool = False,
    ) -> DbtCapture:
        """Read the newest run from the tables of the dbt package dbt_artifacts."""
        return self._register_dbt(
            read_artifact_tables(
                schema,
                list_tables(url),
                partial(read_rows, url),
                url.partition("://")[0].partition("+")[0],
            ),
            namespace=namespace,
            job_namespace=job_namespace,
            dry_run=dry_run,
        )

    def _register_dbt(
        self,
        artifacts: Artifacts,
        *,
        namespace: str | None,
        job_namespace: str,
        dry_run: bool,
        project_dir: Path | None = None,
        revision: SourceRevision | None = None,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> DbtCapture:
        if namespace is None:
            with self._session.store.reader() as reader:
                namespace = _known_namespace(reader, relation_names(artifacts))
        capture = capture_dbt(
            artifacts,
            namespace=namespace,
            job_namespace=job_namespace,
            project_dir=project_dir,
            revision=revision,
            now=now(),
            progress=progress,
        )
        if not dry_run:
            self._session.ingest_many(capture.events)
        return capture

    def scan(
        self,
        path: Path,
        *,
        dialect: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ScanResult:
        """Read a repository without running it, and register the lineage in its code."""
        repository = Repository(path)
        with self._session.reading() as view:
            names = scan_catalog(view, namespace, repository)
            names = msgspec.structs.replace(names, dialect=dialect)
            result = scan_repository(repository, names, progress=progress)
        if not dry_run:
            self._session.ingest_many(list(result.events(now(), find_revision(path))))
        return result

    def register_asset(
        self,
        asset_type: str,
        name: str,
        *,
        source_ref: str = "",
        upstream_assets: Sequence[str] = (),
        source: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> RegisteredAsset:
        """Register a dataset or job by hand; its inputs and outputs are read from its code.

        The code is `source`, or the file that `source_ref` names in the repository, if there is
        one.
        """
        with self._session.reading() as view:
            identities = view.graph.nodes.identities
            names = scan_catalog(view, namespace)
            registrar = Registrar(view.reader, identities, names, self._session.repository)
            asset = AssetRegistration(
                asset_type=asset_type,
                name=name,
                source_ref=source_ref,
                upstream=registrar.upstream(upstream_assets),
                source=source,
            )
            done = registrar.register(asset, now())
        self._session.ingest(done.events)
        with self._session.reading() as view:
            return render_registration(done, Assets(view.reader, view.graph.nodes))


def scan_catalog(
    view: CatalogSnapshot, namespace: str, repository: Repository | None = None
) -> ScanCatalog:
    """Return the names and columns for readers of code, with those of a repository's models."""
    known = CatalogNames(view.reader, view.graph.nodes.identities, namespace)
    dbt = DbtNames(view.reader, DBT_NAMESPACE)
    if repository is not None:
        dbt.read_manifests(repository, partial(_known_namespace, view.reader))
    return ScanCatalog(
        namespace=namespace,
        find=lambda table: dbt.find(table) or known.find(table),
        columns_of=known.columns_of_dataset,
        job_at=dbt.job_at,
        tests_of=dbt.tests_of,
        exposure=dbt.exposure,
    )


def _known_namespace(reader: CatalogReader, tables: Sequence[str]) -> str | None:
    """Return the one namespace in which the catalog has datasets of these whole names."""
    known = {
        node.namespace
        for table in tables
        for node in reader.nodes.named(table).values()
        if isinstance(node, DatasetId) and node.name == table
    }
    return known.pop() if len(known) == 1 else None


def read_sql(
    sql: str,
    *,
    names: Callable[[str], DatasetId],
    dialect: str | None = None,
    schema: Callable[[str], Sequence[str] | None] | None = None,
    job: str | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    description: str = "",
    path: str = "",
    ran: bool = False,
) -> tuple[SqlCapture, Event]:
    """Return the lineage in SQL and the event that registers it; `names` resolves its tables."""
    lineage = parse_sql_lineage(sql, dialect=dialect, schema=schema)
    names = find_connector_tables(lineage).names(names)
    job_id = JobId(namespace, job or _job_name(lineage, sql))
    event = render_sql_event(
        lineage,
        SqlJob(job_id, sql, description, path),
        now(),
        names,
        run=str(uuid.uuid4()) if ran else None,
    )
    has_lineage = bool(lineage.inputs or lineage.outputs)
    return SqlCapture(job=str(job_id), lineage=lineage, registered=has_lineage), event


def _job_name(lineage: SqlLineage, sql: str) -> str:
    """Return a name for a script, from its outputs or else from its text."""
    if lineage.outputs:
        return f"sql.{'+'.join(lineage.outputs)}"
    return f"sql.{hashlib.sha256(sql.encode()).hexdigest()[:12]}"
