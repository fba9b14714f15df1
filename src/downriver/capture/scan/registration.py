"""Registered assets: their names, and the jobs read from their code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import CodeJob
from downriver.capture.scan.scanner import ScanCatalog, ScanResult, scan_repository, scan_text
from downriver.model.assets import JOB_TYPES
from downriver.model.ids import DatasetId, JobId, short_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.scan.repository import Repository

_INTEGRATIONS = {
    "dag": ("AIRFLOW", "DAG"), "task": ("AIRFLOW", "TASK"), "spark_job": ("SPARK", "JOB"),
    "dbt_model": ("DBT", "MODEL"),
}  # fmt: skip
_SUFFIXES = (".sql", ".py", ".ipynb")


class AssetRegistration(msgspec.Struct, kw_only=True):
    """An asset to register. `upstream` are the datasets and jobs it declares as inputs."""

    asset_type: str
    name: str
    source_ref: str = ""
    upstream: dict[str, DatasetId | JobId] = {}
    source: str | None = None

    @property
    def is_job(self) -> bool:
        """Whether the asset is a job and not a dataset."""
        return self.asset_type in JOB_TYPES


def candidate_names(source_ref: str) -> list[str]:
    """Return the names that the catalog may use for a URL."""
    _, separator, rest = source_ref.partition("://")
    if not separator:
        return []
    parts = [part for part in rest.split("/") if part]
    return [source_ref, ".".join(parts), ".".join(parts[1:])] if len(parts) > 1 else [source_ref]


def can_be_at(dataset: DatasetId, source_ref: str) -> bool:
    """Whether a dataset can be at a URL: a table of a database is not in a bucket."""
    scheme = dataset.namespace.partition("://")[0]
    return "://" not in dataset.namespace or source_ref.startswith(f"{scheme}://")


def read_asset_code(
    asset: AssetRegistration, repository: Repository | None, names: ScanCatalog
) -> ScanResult | None:
    """Read the code of an asset: its `source`, or its file in the repository.

    Returns None when there is no code. A file outside of the repository is never read.
    """
    hinted = msgspec.structs.replace(names, find=_hinted(asset, names.find))
    if asset.source is not None:
        path = asset.source_ref if asset.source_ref.endswith(_SUFFIXES) else _made_up_path(asset)
        return scan_text(path, asset.source, hinted, as_models=not asset.is_job)
    path = asset.source_ref.removeprefix("./")
    if repository is None or not path.endswith(_SUFFIXES):
        return None
    file = repository.find_ending(path)
    if file is None:
        return None
    return scan_repository(repository, hinted, only=[file], as_models=not asset.is_job)


def _made_up_path(asset: AssetRegistration) -> str:
    ending = ".sql" if asset.asset_type in ("dbt_model", "table", "view") else ".py"
    return f"{asset.name}{ending}"


def _hinted(
    asset: AssetRegistration, find: Callable[[str], DatasetId | None]
) -> Callable[[str], DatasetId | None]:
    """Return a lookup of table names that searches the declared upstream datasets first."""

    def find_table(table: str) -> DatasetId | None:
        wanted = table.casefold()
        fitting = {
            node
            for name, node in asset.upstream.items()
            if isinstance(node, DatasetId) and _may_mean(wanted, name, node)
        }
        return fitting.pop() if len(fitting) == 1 else find(table)

    return find_table


def _may_mean(wanted: str, name: str, node: DatasetId) -> bool:
    known = node.name.casefold().replace("/", ".")
    ends = f".{wanted}".endswith(f".{known}") or f".{known}".endswith(f".{wanted}")
    return ends or short_name(wanted) in (name.casefold(), short_name(known))


def make_asset_job(asset: AssetRegistration, job_id: JobId, scan: ScanResult | None) -> CodeJob:
    """Return one job with the lineage of an asset's code and its declared upstream assets."""
    integration, kind = _INTEGRATIONS.get(asset.asset_type, ("ASSET", asset.asset_type.upper()))
    job = CodeJob(id=job_id, integration=integration, kind=kind, path="", line=1)
    parts = scan.jobs if scan is not None else []
    if parts:
        job.path, job.line = parts[0].path, min(part.line for part in parts)
    for part in parts:
        _add(job, part)
    written = [part for part in parts if part.sql]
    if len(written) == 1:
        job.sql, job.dialect, job.raw = written[0].sql, written[0].dialect, written[0].raw
        job.line = written[0].line
    for node in asset.upstream.values():
        if isinstance(node, DatasetId):
            job.add_input(node)
        elif node not in job.after:
            job.after.append(node)
    return job


def _add(job: CodeJob, part: CodeJob) -> None:
    for dataset in part.inputs:
        job.add_input(dataset)
    for dataset in part.outputs:
        job.add_output(dataset)
    job.add_references(part.references)
    for spot in part.spots:
        job.add_blind_spot(spot)
    job.edges += part.edges
    job.owners = list(dict.fromkeys([*job.owners, *part.owners]))
    job.tags = list(dict.fromkeys([*job.tags, *part.tags]))
    job.description = job.description or part.description
