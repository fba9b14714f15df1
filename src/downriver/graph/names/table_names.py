"""Matches table names in code to datasets of the catalog and of dbt manifests."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.capture.dataset_names import dataset_in_storage
from downriver.capture.dbt import list_exposures, list_names, read_artifacts
from downriver.errors import DownriverError
from downriver.graph.names.resolution import Entity, find_entity
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import parse_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.scan import Repository
    from downriver.graph.index.identities import Identities
    from downriver.store import CatalogReader


class CatalogNames:
    """Finds tables by the names that code has for them."""

    def __init__(self, reader: CatalogReader, identities: Identities, namespace: str) -> None:
        self._reader = reader
        self._identities = identities
        self._namespace = namespace
        self._known: dict[str, Entity | None] = {}

    def dataset_for(self, table: str) -> DatasetId:
        """Return the one dataset a table name fits, or a new one in the namespace."""
        known = self.find(table) or dataset_in_storage(table)
        return known or DatasetId(self._namespace, table)

    def find(self, table: str) -> DatasetId | None:
        """Return the one dataset a table name fits."""
        entity = self._find(table)
        return entity.id if entity is not None and isinstance(entity.id, DatasetId) else None

    def columns_of(self, table: str) -> list[str] | None:
        """Return the columns of the current schema of a table, if one is known."""
        entity = self._find(table)
        columns = self._reader.facets.schema(entity.node) if entity is not None else []
        return [column.path for column in columns if "." not in column.path] or None

    def columns_of_dataset(self, dataset: DatasetId) -> list[str] | None:
        """Return the columns of the current schema of a dataset, if one is known."""
        node = self._reader.nodes.find(dataset)
        columns = self._reader.facets.schema(node) if node is not None else []
        return [column.path for column in columns if "." not in column.path] or None

    def _find(self, table: str) -> Entity | None:
        if table not in self._known:
            # Many tables are unknown, and a search for similar names of each takes too long.
            self._known[table] = find_entity(f"dataset:{table}", self._reader, self._identities)
        return self._known[table]


_DBT = "dbt_project.yml"


class DbtNames:
    """The jobs and tables of dbt projects, from their manifests or else from the catalog."""

    def __init__(self, reader: CatalogReader, job_namespace: str) -> None:
        self._reader = reader
        self._job_namespace = job_namespace
        self._jobs: dict[str, JobId] = {}  # by the path of a model's file
        self._tables: dict[str, set[DatasetId]] = {}  # by every ending of their names
        self._makers: dict[DatasetId, JobId] = {}
        self._exposures: dict[str, tuple[JobId, DatasetId]] = {}

    def read_manifests(
        self, repository: Repository, namespace_of: Callable[[Sequence[str]], str | None]
    ) -> None:
        """Read the manifests of a repository's projects, where dbt has left them."""
        for path in repository.files():
            if PurePosixPath(path).name != _DBT:
                continue
            root = PurePosixPath(path).parent
            manifest = repository.find((root / "target" / "manifest.json").as_posix())
            if manifest is None:
                continue
            try:
                artifacts = read_artifacts(manifest)
            except DownriverError:
                continue  # the model files contain most of the text
            self._exposures.update(list_exposures(artifacts, self._job_namespace))
            for name in list_names(artifacts, namespace_of, self._job_namespace):
                if name.path:
                    self._jobs[(root / name.path).as_posix()] = name.job
                self._makers[name.dataset] = name.job
                self._add_table(name.dataset)

    def _add_table(self, dataset: DatasetId) -> None:
        parts = dataset.name.casefold().split(".")
        for at in range(len(parts)):
            self._tables.setdefault(".".join(parts[at:]), set()).add(dataset)

    def find(self, table: str) -> DatasetId | None:
        """Return the one table of a manifest that a name fits."""
        candidates = self._tables.get(table.casefold(), set())
        return next(iter(candidates)) if len(candidates) == 1 else None

    def job_at(self, path: str, name: str) -> JobId | None:
        """Return the job of a model by its file, from a manifest or from the catalog."""
        job = self._jobs.get(path)
        if job is not None:
            return job
        for number, node in self._reader.nodes.named(name).items():
            if isinstance(node, JobId) and node.namespace == self._job_namespace:
                code = parse_code(self._reader.facets.of(number))
                if code is not None and code.path and path.endswith(code.path):
                    return node
        return None

    def tests_of(self, dataset: DatasetId) -> JobId | None:
        """Return the job of a table's tests, where dbt has one."""
        maker = self._makers.get(dataset) or self._known_maker(dataset)
        if maker is None:
            return None
        return JobId(maker.namespace, f"{maker.name.removesuffix('.snapshot')}.test")

    def exposure(self, name: str) -> tuple[JobId, DatasetId] | None:
        """Return the job and the dataset of an exposure, where a manifest or the catalog has it."""
        if name in self._exposures:
            return self._exposures[name]
        jobs, datasets = [], []
        for node in self._reader.nodes.named(name).values():
            if isinstance(node, JobId) and node.name.startswith("exposure."):
                jobs += [node] if node.namespace == self._job_namespace else []
            elif isinstance(node, DatasetId) and node.namespace.startswith("dbt://"):
                datasets += [node] if node.name == f"exposures/{name}" else []
        return (jobs[0], datasets[0]) if len(jobs) == len(datasets) == 1 else None

    def _known_maker(self, dataset: DatasetId) -> JobId | None:
        """Return the dbt job in the catalog that has the name of its table."""
        short = dataset.name.rpartition(".")[2]
        for node in self._reader.nodes.named(short).values():
            if isinstance(node, JobId) and node.namespace == self._job_namespace:
                return node
        return None
