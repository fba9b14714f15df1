"""Kubeflow Pipelines: compiled pipelines (version 2), with tasks, artifacts and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.capture.entries import CatalogExport, ExportedJob, ExportedTable
from downriver.errors import InvalidRequestError
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.facets.custom import BlindSpotEntry
from downriver.openlineage.naming import dataset_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMESPACE = "kubeflow"
_KINDS = {"system.Model": "MODEL", "system.Dataset": "TABLE"}


def parse_kubeflow(text: str, name: str) -> CatalogExport:
    """Return the tasks of a compiled pipeline as jobs, and its artifacts as datasets."""
    try:
        content = load_values(text)
    except YamlError as exc:
        raise InvalidRequestError("FILE", f"{name}:{exc.line}: {exc.reason}") from exc
    title = _at(content, "pipelineInfo", "name")
    if not isinstance(title, str) or not isinstance(_at(content, "root", "dag"), dict):
        reason = f"{name}: no pipelineInfo and root.dag: not a pipeline that KFP compiled"
        raise InvalidRequestError("FILE", reason)
    return _Pipeline(content, title).export()


class _Pipeline:
    def __init__(self, content: dict[str, Any], title: str) -> None:
        self._content = content
        self._title = title
        self._export = CatalogExport(_NAMESPACE)

    def export(self) -> CatalogExport:
        """Return the tasks of the pipeline and of the pipelines inside it."""
        self._read_dag(self._content["root"], self._title, {})
        return self._export

    def _read_dag(self, component: Any, path: str, given: dict[str, DatasetId]) -> None:
        """Read the tasks of a pipeline. `given` has the artifacts that its caller passes in."""
        tasks = _at(component, "dag", "tasks")
        made = {
            (name, key): artifact
            for name, task in _items(tasks)
            for key, artifact in self._outputs(name, task, path)
        }
        for name, task in _items(tasks):
            if self._importer(task) is not None:
                continue
            inputs = self._inputs(task, made, given)
            inner = _at(self._content, "components", str(_at(task, "componentRef", "name")))
            if isinstance(_at(inner, "dag"), dict):
                self._read_dag(inner, f"{path}.{name}", inputs)
            upstream = [
                other
                for other in _at(task, "dependentTasks") or ()
                if self._importer(_at(tasks, other)) is None
            ]
            outputs = [artifact for (owner, _), artifact in made.items() if owner == name]
            self._add_job(f"{path}.{name}", upstream, list(inputs.values()), outputs)

    def _add_job(
        self,
        name: str,
        upstream: list[str],
        inputs: list[DatasetId],
        outputs: list[DatasetId],
    ) -> None:
        job = ExportedJob(id=JobId(_NAMESPACE, name), kind="TASK", inputs=inputs)
        job.outputs = {artifact: {} for artifact in outputs}
        home = name.rpartition(".")[0]
        job.upstream = [JobId(_NAMESPACE, f"{home}.{other}") for other in upstream]
        if not inputs and outputs:
            message = f"task {name} has no input artifacts: what it reads is in its code"
            job.blind_spots.append(BlindSpotEntry("unknown_inputs", message))
        self._export.jobs.append(job)

    def _outputs(self, name: str, task: Any, path: str) -> Iterator[tuple[str, DatasetId]]:
        component = _at(self._content, "components", str(_at(task, "componentRef", "name")))
        imported = self._importer(task)
        for key, definition in _items(_at(component, "outputDefinitions", "artifacts")):
            kind = str(_at(definition, "artifactType", "schemaTitle"))
            artifact = DatasetId(_NAMESPACE, f"{path}.{name}.{key}")
            if imported:
                artifact = dataset_at(imported)
            self._export.tables.append(ExportedTable(id=artifact, kind=_KINDS.get(kind, "FILE")))
            yield key, artifact

    def _importer(self, task: Any) -> str | None:
        """Return the location that a task imports; "" if it is known only at run time."""
        component = _at(self._content, "components", str(_at(task, "componentRef", "name")))
        label = str(_at(component, "executorLabel"))
        importer = _at(self._content, "deploymentSpec", "executors", label, "importer")
        if not isinstance(importer, dict):
            return None
        constant = _at(task, "inputs", "parameters", "uri", "runtimeValue", "constant")
        return str(constant or _at(importer, "artifactUri", "constant") or "")

    def _inputs(
        self,
        task: Any,
        made: dict[tuple[str, str], DatasetId],
        given: dict[str, DatasetId],
    ) -> dict[str, DatasetId]:
        datasets = {}
        for key, source in _items(_at(task, "inputs", "artifacts")):
            output = _at(source, "taskOutputArtifact")
            place = str(_at(output, "producerTask")), str(_at(output, "outputArtifactKey"))
            artifact = made.get(place) or given.get(str(_at(source, "componentInputArtifact")))
            if artifact is not None:
                datasets[key] = artifact
        return datasets


def _items(mapping: Any) -> list[tuple[str, Any]]:
    return list(mapping.items()) if isinstance(mapping, dict) else []


def _at(value: Any, *keys: str) -> Any:
    """Return the value at a path of keys, or None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
