"""A finding starts actions on entities downstream of it only, once, and with a record."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import dataset_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, micros, output, run, schema, tagged, told
from tests.unit.http.test_app import TestClient
from tests.webhook import running_hook

from downriver.errors import InvalidRequestError
from downriver.govern.triggers import parse_triggers
from downriver.govern.watch import WatchConfig
from downriver.http import build_app
from downriver.model.trust.triggers import ActionState

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.service import Lineage

MODEL = {"datasetType": {"datasetType": "MODEL"}}


def shop(day: float, **users: str) -> list[dict]:
    features = {**schema(mail="text"), **derives(mail="users.email")}
    ages = {**schema(n="int"), **derives(n="users.age")}
    return [
        dataset_event("users", schema(**users)),
        *run("featurize", day, reads=["users"], writes=[output("features", features)]),
        *run("count", day, reads=["users"], writes=[output("ages", ages)]),
        *run("train", day, reads=["features"], writes=[output("churn", MODEL)]),
        *run("fit", day, reads=["ages"], writes=[output("age_model", {**MODEL, **tagged("x")})]),
    ]


EVENTS = [
    *shop(0, email="text", age="int"),
    *run("load", 0, writes=[output("users", schema(email="text", age="int"))]),
    *run("load", 1, writes=[output("users", schema(mail_address="text", age="int"))]),
]


def rule(**given: Any) -> dict[str, Any]:
    return {"name": "retrain", "downstream": {"types": ["model"]}, "command": ["true"], **given}


def watched(lineage: Lineage) -> None:
    lineage.govern.monitor(WatchConfig()).check(micros(1, 3))


def test_only_what_the_column_reaches_is_a_target(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        found = lineage.triggers(parse_triggers([rule()]), done=False)
        assert [(a.target_name, a.state) for a in found.actions] == [("churn", ActionState.PLANNED)]
        (cause, *_) = found.actions[0].causes
        assert cause.certainty == "dataset"  # train has no column lineage
        assert cause.path[0].endswith("users:email")
        assert [spot.kind for spot in found.blind_spots if "train" in spot.message]
        assert not found.complete
        assert not lineage.triggers.history().actions


def test_column_lineage_is_certain(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule(downstream={"names": ["features", "ages"]})])
        (action,) = lineage.triggers(rules, done=False).actions
        assert action.target_name == "features"
        assert {cause.certainty for cause in action.causes} == {"column"}


def test_an_action_is_started_once_and_recorded(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule(command=["echo", "{name}"])])
        assert len(lineage.triggers(rules).actions) == 1
        assert lineage.triggers(rules).actions == []
        (done,) = lineage.triggers.runner(rules).run_due()
        assert (done.state, done.result) == (ActionState.DONE, "churn")
        assert lineage.triggers.runner(rules).run_due() == []
        assert lineage.triggers.history(state="done").actions == [done]


def test_a_later_finding_waits_for_the_pause(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule(at_most_every="24h")])
        early = micros(1, 4)
        lineage.triggers(rules, at=early)
        lineage.ingest(
            [json.dumps(e).encode() for e in run("train", 1, reads=["features"], state="FAIL")]
        )
        lineage.govern.monitor(WatchConfig()).check(micros(1, 6))
        failed = parse_triggers([rule(at_most_every="24h", downstream={"names": ["churn"]})])
        assert lineage.triggers(failed, at=early + 3_600_000_000).actions == []
        assert len(lineage.triggers(failed, at=early + 25 * 3_600_000_000).actions) == 1


def test_a_failed_action_is_tried_again_and_then_given_up(tmp_path: Path) -> None:
    now = micros(2)
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule(command=["sh", "-c", "echo no; exit 3"], attempts=2)])
        lineage.triggers(rules, at=now)
        (tried,) = lineage.triggers.runner(rules, lambda: now).run_due()
        assert (tried.state, tried.result) == (ActionState.WAITING, "exit code 3: no")
        assert lineage.triggers.runner(rules, lambda: now + 1).run_due() == []
        (ended,) = lineage.triggers.runner(rules, lambda: now + 60_000_000).run_due()
        assert (ended.state, ended.attempts) == (ActionState.FAILED, 2)


def test_an_interrupted_action_runs_again(tmp_path: Path) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule()])
        lineage.triggers(rules, at=micros(2))
        with lineage.store.ledger() as ledger:  # a process that dies
            assert ledger.triggers.claim(micros(2), micros(2, 1)) is not None
        assert lineage.triggers.runner(rules, lambda: micros(2, 0.5)).run_due() == []
        (done,) = lineage.triggers.runner(rules, lambda: micros(2, 2)).run_due()
        assert (done.state, done.attempts) == (ActionState.DONE, 2)


def test_a_webhook_gets_the_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running_hook() as hook, told(tmp_path, EVENTS) as lineage:
        monkeypatch.setenv("HOOK", hook.url)
        watched(lineage)
        rules = parse_triggers([rule(command=[], webhook="${HOOK}")])
        lineage.triggers(rules)
        (done,) = lineage.triggers.runner(rules).run_due()
        assert done.result == "answered 200"
        assert hook.url not in done.action
        assert hook.posts[0][1]["action"]["target_name"] == "churn"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"command": []}, "triggers[0]"),
        ({"downstream": {}}, "triggers[0].downstream"),
        ({"command": [], "webhook": "http://x"}, "triggers[0].webhook"),
        ({"at_most_every": "soon"}, "triggers[0].at_most_every"),
        ({"wrong": 1}, "triggers"),
    ],
)
def test_a_wrong_rule_is_an_error_that_names_the_field(given: dict, field: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse_triggers([rule(**given)])
    assert caught.value.field == field


def test_cli_and_http(tmp_path: Path) -> None:
    with told(tmp_path / ".downriver", EVENTS) as lineage:
        watched(lineage)
        with TestClient(build_app(lineage)) as client:
            asked = {"triggers": [rule()], "entity": "users.age", "kind": "column_dropped"}
            found = client.post("/v1/triggers/test", json=asked).json()
            assert [a["target_name"] for a in found["actions"]] == ["age_model"]
            bad = client.post("/v1/triggers/test", json={**asked, "triggers": [{"name": "x"}]})
            assert bad.status_code == 400
    assert downriver("triggers", "run", cwd=tmp_path).returncode == 2
    (tmp_path / "downriver.yml").write_text(json.dumps({"triggers": [rule(command=["false"])]}))
    dry = downriver("triggers", "run", "--dry-run", "--json", cwd=tmp_path)
    assert [a["state"] for a in json.loads(dry.stdout)["actions"]] == ["planned"]
    assert downriver("triggers", "run", cwd=tmp_path).returncode == 0  # it is tried again later
    listed = json.loads(downriver("triggers", "list", "--json", cwd=tmp_path).stdout)
    assert [a["state"] for a in listed["actions"]] == ["waiting"]
    with told(tmp_path / ".downriver", []) as lineage, TestClient(build_app(lineage)) as client:
        assert client.get("/v1/triggers").json()["total"] == 1
        assert client.get("/v1/triggers", params={"state": "x"}).status_code == 400


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "run {name}"],
        ["/bin/bash", "-ec", "run '{target}'"],
        ["timeout", "5", "bash", "-c", "run {name}"],
        ["python3", "-c", "run('{name}')"],
        ["C:\\Windows\\cmd.exe", "/c", "run {name}"],
        ["ssh", "host", "run {name}"],
        ["{name}"],
    ],
)
def test_a_name_is_no_code_of_a_command(command: list[str]) -> None:
    with pytest.raises(InvalidRequestError, match=r"command: .* is run as code"):
        parse_triggers([rule(command=command)])


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", 'run "$1"', "run", "{name}"],
        ["airflow", "dags", "trigger", "-c", '{"model": "{name}"}', "retrain"],
        ["python3", "retrain.py", "{name}"],
    ],
)
def test_a_name_may_be_an_argument(command: list[str]) -> None:
    assert parse_triggers([rule(command=command)])[0].command == command


def test_a_name_is_no_option_of_a_command(tmp_path: Path) -> None:
    events = [
        *run("featurize", 0, reads=["users"], writes=[output("--upload-pack=evil", MODEL)]),
        *run("load", 0, writes=[output("users", schema(email="text"))]),
        *run("load", 1, writes=[output("users", schema(mail_address="text"))]),
    ]
    with told(tmp_path, events) as lineage:
        watched(lineage)
        for separator, state in (("x", ActionState.FAILED), ("--", ActionState.DONE)):
            rules = parse_triggers(
                [rule(name=separator, attempts=1, command=["echo", separator, "{name}"])]
            )
            lineage.triggers(rules)
            (done,) = lineage.triggers.runner(rules).run_due()
            assert done.state is state
            assert "--upload-pack=evil" in done.result


def test_a_command_over_its_time_limit_ends_with_its_child_processes(tmp_path: Path) -> None:
    late = tmp_path / "late"
    script = f"(sleep 1.5; touch '{late}') & wait"
    given = rule(command=["sh", "-c", script], timeout="1s", attempts=1)
    with told(tmp_path / "store", EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([given])
        lineage.triggers(rules)
        (done,) = lineage.triggers.runner(rules).run_due()
    assert (done.state, done.result) == (ActionState.FAILED, "did not end within 1s")
    time.sleep(1)
    assert not late.exists()


def test_findings_that_were_not_compared_make_the_answer_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with told(tmp_path, EVENTS) as lineage:
        watched(lineage)
        rules = parse_triggers([rule(when={"kinds": ["run_late"]})])
        assert lineage.triggers(rules, done=False).complete
        monkeypatch.setattr("downriver.service.trust.triggers._FINDINGS", 1)
        found = lineage.triggers(rules, done=False)
        assert (found.findings, found.complete) == (1, False)
