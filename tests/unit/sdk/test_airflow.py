"""What the decorator for Airflow records when a task ends by an exception. Airflow is replaced."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from downriver.sdk.orchestrators import airflow

if TYPE_CHECKING:
    from downriver.sdk.orchestrators.task_run import TaskRun


class TaskDeferred(BaseException):
    """The exception of Airflow with this name."""


class AirflowSkipException(Exception):  # noqa: N818
    """The exception of Airflow with this name."""


class AirflowRescheduleException(Exception):  # noqa: N818
    """The exception of Airflow with this name."""


@pytest.mark.parametrize(
    ("error", "states"),
    [
        (TaskDeferred(), []),
        (AirflowRescheduleException(), []),
        (AirflowSkipException(), ["ABORT"]),
        (ValueError(), ["FAIL"]),
        (None, ["COMPLETE"]),
    ],
)
def test_only_a_failed_task_is_recorded_as_failed(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None, states: list[str]
) -> None:
    instance = SimpleNamespace(
        dag_id="shop", task_id="load", run_id="r", map_index=-1, try_number=1, start_date=None
    )
    sdk = ModuleType("airflow.sdk")
    sdk.get_current_context = lambda: {"task": SimpleNamespace(), "ti": instance}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "airflow", ModuleType("airflow"))
    monkeypatch.setitem(sys.modules, "airflow.sdk", sdk)
    recorded: list[TaskRun] = []
    monkeypatch.setattr(airflow, "record_task", recorded.append)

    @airflow.apply_lineage(outlets=["orders"])
    def load() -> None:
        if error is not None:
            raise error

    if error is None:
        load()
    else:
        with pytest.raises(type(error)):
            load()
    assert [run.state for run in recorded] == states
