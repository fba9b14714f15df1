"""A session's job is named by its caller, its configuration or its parent, in that order."""

from __future__ import annotations

import json

import msgspec
import pytest

from downriver.capture.spark.context import RunContext, read_context
from downriver.model.ids import JobId, RunId

RUN = "3f2b6c1e-0d3b-4c55-8f0a-2f6f0a1f9a11"
ROOT = "9a1d5a52-6a8e-4a0e-9a3c-0f4c2b1d7e22"


def context(
    conf: dict[str, str] | None = None,
    environ: dict[str, str] | None = None,
    job: str | None = None,
    namespace: str | None = None,
) -> RunContext:
    known = conf or {}
    return read_context(
        lambda key: known.get(key, ""), environ or {}, app="app", job=job, namespace=namespace
    )


def test_by_default_the_job_has_the_name_of_the_application() -> None:
    found = context()
    assert found.own.job == JobId("spark", "app")
    assert (found.parent, found.facets()) == (None, {})


def test_arguments_win_over_the_configuration() -> None:
    conf = {"spark.downriver.job": "of conf", "spark.downriver.namespace": "conf"}
    assert context(conf, job="mine", namespace="here").own.job == JobId("here", "mine")
    assert context(conf).own.job == JobId("conf", "of conf")


def test_openlineage_settings_are_read() -> None:
    conf = {"spark.openlineage.appName": "daily", "spark.openlineage.namespace": "etl"}
    assert context(conf).own.job == JobId("etl", "daily")


def test_a_parent_in_the_configuration() -> None:
    conf = {
        "spark.openlineage.parentRunId": RUN,
        "spark.openlineage.parentJobName": "dag.task",
        "spark.openlineage.parentJobNamespace": "airflow",
        "spark.openlineage.rootParentRunId": ROOT,
        "spark.openlineage.rootParentJobName": "dag",
        "spark.openlineage.rootParentJobNamespace": "airflow",
    }
    found = context(conf, {"OPENLINEAGE_PARENT_ID": f"other/job/{ROOT}"})
    assert found.own.job == JobId("airflow", "app")
    assert found.parent == RunId(JobId("airflow", "dag.task"), RUN)
    assert found.root == RunId(JobId("airflow", "dag"), ROOT)
    facet = msgspec.json.decode(found.facets()["parent"])
    assert facet["job"] == {"namespace": "airflow", "name": "dag.task"}
    assert facet["root"]["run"] == {"runId": ROOT}


def test_a_parent_in_the_environment() -> None:
    environ = {"OPENLINEAGE_PARENT_ID": f"https://airflow/prod/dag.task/{RUN}"}
    assert context(environ=environ).parent == RunId(JobId("https://airflow/prod", "dag.task"), RUN)


def test_a_parent_and_its_root_as_json_in_the_environment() -> None:
    given = {
        "parent": {"run": {"runId": RUN}, "job": {"namespace": "a", "name": "task"}},
        "root": {"run": {"runId": ROOT}, "job": {"namespace": "a", "name": "dag"}},
    }
    found = context(environ={"OPENLINEAGE_CONTEXT": json.dumps(given)})
    assert found.parent == RunId(JobId("a", "task"), RUN)
    assert found.root == RunId(JobId("a", "dag"), ROOT)


@pytest.mark.parametrize("broken", ["{", "[]", '{"parent": 1}', '{"parent": {"run": {}}}'])
def test_an_invalid_parent_is_ignored(broken: str) -> None:
    assert context(environ={"OPENLINEAGE_CONTEXT": broken}).parent is None


@pytest.mark.parametrize("broken", ["", "job", "job/run", "/job/run"])
def test_an_invalid_parent_id_is_ignored(broken: str) -> None:
    assert context(environ={"OPENLINEAGE_PARENT_ID": broken}).parent is None


def test_an_action_is_a_part_of_the_block_and_the_block_of_the_application() -> None:
    app = context()
    block = app.named("churn.features")
    action = block.within("out")
    assert block.own.job == JobId("spark", "churn.features")
    assert (block.parent, block.root) == (app.own, app.own)
    assert action.own.job == JobId("spark", "churn.features.out")
    assert (action.parent, action.root) == (block.own, app.own)
    assert len({app.own.run, block.own.run, action.own.run}) == 3
