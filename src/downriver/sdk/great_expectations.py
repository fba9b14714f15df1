"""Great Expectations: an action that records each run of a checkpoint."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal, Optional

from great_expectations.checkpoint import ValidationAction

from downriver.capture.check_results.great_expectations import parse_validation
from downriver.capture.emit import guarded
from downriver.capture.functions.libraries import table_at
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.events import dataset, run_event
from downriver.openlineage.facets.dataset import ASSERTIONS, QualityAssertion, render_assertions
from downriver.openlineage.facets.job import JOB_TYPE, render_job_type
from downriver.openlineage.naming import dataset_at
from downriver.sdk.decorators import resolve_offline
from downriver.sdk.delivery import flush_shared, shared_emitter
from downriver.sdk.orchestrators.task_run import job_namespace, run_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.check_results.great_expectations import ValidationResult

_FLUSH_SECONDS = 10.0


class LineageAction(ValidationAction):
    """Records the results of a checkpoint as checks of the datasets that it validated.

    `dataset` names the data where Great Expectations does not know it, as for a frame in memory.
    """

    # Great Expectations evaluates these annotations.
    type: Literal["downriver"] = "downriver"
    name: str = "downriver"
    dataset: Optional[str] = None  # noqa: UP045 (its pydantic reads no `str | None`)

    def run(self, checkpoint_result: Any, action_context: Any = None) -> dict[str, Any]:
        """Record a run of a checkpoint. An error is logged and does not fail the checkpoint."""
        answer: dict[str, Any] = {"datasets": [], "unread": []}
        with guarded("reading a result of Great Expectations"):
            checks = _Checks(checkpoint_result, self.dataset)
            answer = {"datasets": list(map(str, checks.by_dataset)), "unread": checks.unread}
            checks.emit()
        return answer


class _Checks:
    """The results of one run of a checkpoint, by dataset."""

    def __init__(self, result: Any, stated: str | None) -> None:
        self._checkpoint = result.checkpoint_config
        self._definitions = {str(d.id): d for d in self._checkpoint.validation_definitions}
        self._stated = stated
        self.by_dataset: dict[DatasetId, list[QualityAssertion]] = {}
        self.unread: list[str] = []
        self._ended_at = 0
        for validation, content in _validations(result):
            assertions = self.by_dataset.setdefault(self._dataset(validation, content), [])
            assertions += validation.assertions
            self.unread += validation.unread
            self._ended_at = max(self._ended_at, validation.at or 0)

    def _dataset(self, validation: ValidationResult, content: dict[str, Any]) -> DatasetId:
        """Return the validated dataset: a table has the address of its database."""
        if self._stated is not None:
            return _table(self._stated)
        meta = content.get("meta") or {}
        path = (meta.get("batch_spec") or {}).get("path")
        if path:
            return dataset_at(path if "://" in path else os.path.abspath(path))
        definition = self._definitions.get(str(meta.get("validation_id")))
        get_engine = getattr(getattr(definition, "data_source", None), "get_engine", None)
        if get_engine is None:
            return _table(validation.asset)
        return table_at(validation.asset, get_engine(), _table)

    def emit(self) -> None:
        """Send the run, and wait until it is sent or spooled: the process may end next."""
        at = self._ended_at or time.time_ns() // 1000
        name = str(self._checkpoint.name)
        job = JobId(job_namespace("great-expectations"), name)
        inputs = [
            dataset(each, input_facets={ASSERTIONS: render_assertions(assertions)})
            for each, assertions in self.by_dataset.items()
        ]
        facets = {JOB_TYPE: render_job_type("GREAT_EXPECTATIONS", "CHECKPOINT")}
        run = run_id("great-expectations", job.namespace, name, at)
        shared_emitter().emit(run_event(job, run, "COMPLETE", at, inputs=inputs, facets=facets))
        flush_shared(_FLUSH_SECONDS)


def _validations(result: Any) -> Iterator[tuple[ValidationResult, dict[str, Any]]]:
    for run_result in result.run_results.values():
        content = run_result.to_json_dict()
        yield parse_validation(content), content


def _table(name: str) -> DatasetId:
    node = resolve_offline(name)
    return node if isinstance(node, DatasetId) else DatasetId(node.namespace, node.name)
